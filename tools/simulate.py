"""Planted truth: how often the intervals of the analysis hold it, and how often a verdict is wrong.

Usage: python tools/simulate.py [--studies 2000] [--seeds 2 3 6 10] [--workers 2] [--random 0]

Each study is drawn by `planted.draw_world`, written as a table of trials and analysed by
`redline.analysis.findings.find`, as a real one is. Prints Markdown tables; the same arguments give
the same numbers on any number of workers.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from math import inf, log10
from multiprocessing import get_context
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

from planted import (
    M_EQ,
    M_NEC,
    OFF,
    ON,
    SCENARIOS,
    Truth,
    World,
    draw_world,
    tables,
    truth,
)
from redline.analysis import necessity as nec
from redline.analysis import optimum as opt
from redline.analysis import sensitivity as sens
from redline.analysis import threshold as thr
from redline.analysis.findings import Findings, find
from redline.analysis.hypotheses import SUPPORTED
from redline.analysis.losses import losses_by_arm
from redline.analysis.outcome import UNSTABLE
from redline.study.spec import default_analysis

BATCH = 50
N_RESAMPLE = 500
REQUIRED = "model holds"
OTHER = "other shapes"
POSTERIOR, T = "posterior", "t"
MODELS = {POSTERIOR: ("sharp",), T: ("smooth",)}
"""Shapes that an estimator assumes: normal thresholds, or losses that seeds move without jumps."""
Row = dict[str, Any]
Place = tuple[World, Truth, int]


def simulate(
    n_study: int, seeds: Sequence[int], workers: int, random: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Every interval (quantity, n_seed, group, covered, width), and every verdict."""
    jobs = [
        (random, n_seed, batch, min(BATCH, n_study - batch * BATCH))
        for n_seed in seeds
        for batch in range(-(-n_study // BATCH))
    ]
    if workers == 1:
        parts = list(map(_batch, jobs))
    else:
        # A fork would copy the locks of polars' threads and wait for them for ever.
        with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
            parts = list(pool.map(_batch, jobs))
    intervals, verdicts = zip(*parts, strict=True)
    return pl.concat(intervals), pl.concat(verdicts)


def _batch(job: tuple[int, int, int, int]) -> tuple[pl.DataFrame, pl.DataFrame]:
    seed, n_seed, batch, n_study = job
    random = np.random.default_rng([seed, n_seed, batch])
    worlds = [draw_world(random, n_seed) for _ in range(n_study)]
    truths = [truth(world, random) for world in worlds]
    measured, design = tables(worlds, random)
    found = find(measured, design, default_analysis())
    places = _places(found, worlds, truths)
    intervals = [
        {"n_seed": n_seed, "group": _group(place[0], model), "quantity": quantity}
        | {"covered": covered, "width": width}
        for model, place, quantity, covered, width in _intervals(found, places, random)
    ]
    verdicts = [
        {"n_seed": n_seed, "name": h.name, "verdict": h.verdict, "scenario": world.scenario}
        | {"extra": world.extra, "shape": world.shape, "is_true": world.is_true(h.name)}
        for h in found.hypotheses
        for world in [places[h.control][0]]
    ]
    kinds = {"covered": pl.Boolean, "width": pl.Float64, "is_true": pl.Boolean}
    return (
        pl.DataFrame(intervals, schema_overrides=kinds),
        pl.DataFrame(verdicts, schema_overrides=kinds),
    )


def _group(world: World, model: str) -> str:
    if world.extra not in ("", "missing"):
        return world.extra
    return REQUIRED if world.shape in MODELS[model] else OTHER


def _places(
    found: Findings, worlds: Sequence[World], truths: Sequence[Truth]
) -> dict[str, tuple[World, Truth]]:
    """Setting -> its world and what is true there."""
    names = found.trials.select("control", "z_loss").unique().iter_rows()
    return {name: (worlds[i], truths[i]) for name, z in names for i in [round(z * 1e6)]}


def _intervals(
    found: Findings, places: dict[str, tuple[World, Truth]], random: np.random.Generator
) -> Iterator[tuple[str, tuple[World, Truth], str, bool, float | None]]:
    """(its model, place, quantity, whether it holds the truth, its width) of every interval."""
    yield from _thresholds(found, places)
    yield from _bootstraps(found, places, random)
    yield from _sensitivities(found, places)
    yield from _optima(found, places)
    yield from _deltas(found, places)
    yield from _bands(found, places)
    for h in found.hypotheses:
        place = places[h.control]
        world = place[0]
        if h.name == "H2" and h.parts[0].n > 1:
            true = float((world.theta[:, ON] - world.theta[:, OFF]).mean())
            yield (
                POSTERIOR,
                place,
                "H2 ratio, decades",
                *_held(true, h.parts[0].lower, h.parts[0].upper),
            )
        if h.name == "H3" and h.parts[0].lower is not None and SCENARIOS[world.scenario][3]:
            censored = "beyond" in h.parts[0].note
            name = f"H3 slope{', some censored' if censored else ''}, decades a doubling"
            yield POSTERIOR, place, name, *_held(world.trend, h.parts[0].lower, h.parts[0].upper)


def _held(true: float, lower: float | None, upper: float | None) -> tuple[bool, float | None]:
    """A limit that is not there is open."""
    low, high = (-inf if lower is None else lower), (inf if upper is None else upper)
    width = None if lower is None or upper is None else upper - lower
    return bool(low <= true <= high), width


def _index(world: World, row: Row) -> tuple[int, int]:
    return world.depths.index(row["n_layer"]), OFF if row["arm"] == "off" else ON


def _log(rate: float | None) -> float | None:
    return None if rate is None else log10(rate)


def _thresholds(found: Findings, places: dict[str, Any]) -> Iterator[Any]:
    rows = found.thresholds.filter(pl.col(thr.TIER) == UNSTABLE, pl.col(thr.N_SEED) > 1)
    for row in rows.iter_rows(named=True):
        place = places[row["control"]]
        true = float(place[0].theta[_index(place[0], row)])
        limits = _log(row[thr.ESTIMATE_LOWER]), _log(row[thr.ESTIMATE_UPPER])
        yield POSTERIOR, place, "highest stable LR, decades", *_held(true, *limits)


def _bootstraps(
    found: Findings, places: dict[str, Any], random: np.random.Generator
) -> Iterator[Any]:
    """The percentile bootstrap over seeds of the middles of their grid intervals."""
    flags = {UNSTABLE: thr.tiers(found.analysis)[UNSTABLE]}
    seeds = thr.seed_thresholds(found.trials, flags)
    inside = seeds.filter(pl.col(thr.LOWER_LR) > 0, pl.col(thr.UPPER_LR) < inf)
    middle = (pl.col(thr.LOWER_LR).log10() + pl.col(thr.UPPER_LR).log10()) / 2
    groups = inside.group_by("control", "n_layer", "arm").agg(middle.alias("middle"))
    whole = groups.filter(pl.col("middle").list.len() == found.trials["seed"].n_unique())
    whole = whole.sort("control", "n_layer", "arm")
    if whole.is_empty():
        return
    values = np.array(whole["middle"].to_list())
    limits = stats.bootstrap(
        (values,), np.mean, axis=-1, n_resamples=N_RESAMPLE, method="percentile", rng=random
    ).confidence_interval
    rows = whole.iter_rows(named=True)
    for row, lower, upper in zip(rows, limits.low, limits.high, strict=True):
        place = places[row["control"]]
        true = float(place[0].theta[_index(place[0], row)])
        yield POSTERIOR, place, "percentile bootstrap of it, decades", *_held(true, lower, upper)


def _sensitivities(found: Findings, places: dict[str, Any]) -> Iterator[Any]:
    rows = found.sensitivities.filter(pl.col(sens.GRID) == sens.STUDY_GRID, pl.col(sens.N_SEED) > 1)
    for row in rows.iter_rows(named=True):
        place = places[row["control"]]
        true = place[1].sensitivity
        depth, arm = _index(place[0], row)
        if row[sens.LOWER] is not None:
            limits = row[sens.LOWER], row[sens.UPPER]
            yield T, place, "LR sensitivity, nat", *_held(float(true[arm, depth]), *limits)
        if row[sens.DIFFERENCE_LOWER] is not None:
            limits = row[sens.DIFFERENCE_LOWER], row[sens.DIFFERENCE_UPPER]
            change = float(true[OFF, depth] - true[ON, depth])
            yield T, place, "LR sensitivity off - on, nat", *_held(change, *limits)


def _optima(found: Findings, places: dict[str, Any]) -> Iterator[Any]:
    chosen = {arm: opt.choices(losses) for arm, losses in losses_by_arm(found.trials).items()}
    for row in found.optima.iter_rows(named=True):
        place = places[row["control"]]
        depth, arm = _index(place[0], row)
        best = float(place[0].rates[int(place[1].mean[depth, arm].argmin())])
        # Rates are written with six digits.
        limits = log10(row[opt.LOWER_LR]) - 1e-4, log10(row[opt.UPPER_LR]) + 1e-4
        yield T, place, "best LR, decades", *_held(best, *limits)
        if row[opt.OWN_DELTA_LOWER] is not None:
            limits = row[opt.OWN_DELTA_LOWER], row[opt.OWN_DELTA_UPPER]
            sides = [chosen[row["control"], row["n_layer"], side] for side in ("off", "on")]
            true = _at_choices(place, depth, *sides)
            yield T, place, "off - on at the own best LR, nat", *_held(true, *limits)


def _at_choices(place: Any, depth: int, off: dict[int, float], on: dict[int, float]) -> float:
    """The true difference at the LRs that the other seeds chose for each seed."""
    world, true = place
    by_rate = {f"{10**rate:.6g}": true.mean[depth, :, i] for i, rate in enumerate(world.rates)}
    seeds = off.keys() & on.keys()
    pairs = [(by_rate[f"{off[s]:.6g}"][OFF], by_rate[f"{on[s]:.6g}"][ON]) for s in seeds]
    return float(np.mean([plain - other for plain, other in pairs]))


def _delta(place: Any, row: Row) -> tuple[float, bool]:
    """The true mean delta of a cell, and whether some of its seeds fail and others do not."""
    world, true = place
    depth = world.depths.index(row["n_layer"])
    rate = int(np.abs(world.rates - log10(row["peak_lr"])).argmin())
    is_mixed = bool(true.is_mixed[depth, :, rate].any())
    return float(true.mean[depth, OFF, rate] - true.mean[depth, ON, rate]), is_mixed


def _deltas(found: Findings, places: dict[str, Any]) -> Iterator[Any]:
    for row in found.deltas.filter(pl.col(nec.LOWER).is_not_null()).iter_rows(named=True):
        place = places[row["control"]]
        true, is_mixed = _delta(place, row)
        where = "some seeds jump" if is_mixed else "no seed jumps alone"
        yield T, place, f"delta where {where}, nat", *_held(true, row[nec.LOWER], row[nec.UPPER])


def _bands(found: Findings, places: dict[str, Any]) -> Iterator[Any]:
    """(X', Y) holds LR_nec where delta is below the margin at X' and above it at Y; X alone too."""
    for row in found.boundaries.filter(pl.col(nec.N_SEED) > 2).iter_rows(named=True):
        place = places[row["control"]]
        low, high, drop = row[nec.BAND_LOWER], row[nec.NEEDED_FROM], row[nec.DROPPABLE_TO]
        below = low is None or _delta(place, row | {"peak_lr": low})[0] <= M_NEC
        above = high is None or _delta(place, row | {"peak_lr": high})[0] >= M_NEC
        width = None if low is None or high is None else log10(high / low)
        yield T, place, "band of the necessary LR (X', Y), decades", below and above, width
        right = drop is None or _delta(place, row | {"peak_lr": drop})[0] <= M_EQ
        yield T, place, "droppable up to X", right, None


def coverage_table(intervals: pl.DataFrame) -> pl.DataFrame:
    """Coverage in per cent and mean width by quantity, group and number of seeds."""
    found = intervals.group_by("quantity", "group", "n_seed", maintain_order=True).agg(
        pl.len().alias("n"),
        (100 * pl.col("covered").mean()).alias("coverage"),
        pl.col("width").mean(),
    )
    order = {REQUIRED: 0, OTHER: 1}
    rank = pl.col("group").replace_strict(order, default=2, return_dtype=pl.Int64)
    return found.sort(rank, "group", "quantity", "n_seed")


def verdict_table(verdicts: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Share of studies in which a false hypothesis was supported, and a true one."""
    scored = verdicts.drop_nulls("is_true")
    supported = pl.col("verdict") == SUPPORTED
    return (
        scored.group_by("name", "n_seed", *keys)
        .agg(
            (~pl.col("is_true")).sum().alias("n_false"),
            (100 * supported.filter(~pl.col("is_true")).mean()).alias("wrongly_supported"),
            pl.col("is_true").sum().alias("n_true"),
            (100 * supported.filter(pl.col("is_true")).mean()).alias("rightly_supported"),
        )
        .sort("name", *keys, "n_seed")
    )


def _markdown(frame: pl.DataFrame) -> str:
    with pl.Config(
        tbl_formatting="ASCII_MARKDOWN",
        tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True,
        tbl_rows=-1,
        tbl_width_chars=200,
        fmt_str_lengths=60,
        float_precision=2,
    ):
        return str(frame)


def _wide(table: pl.DataFrame) -> pl.DataFrame:
    """One row a quantity and group: `coverage % (mean width)` for each number of seeds."""
    cell = pl.format("{} ({})", pl.col("coverage").round(1), pl.col("width").round(2))
    shown = pl.when(pl.col("width").is_null()).then(pl.col("coverage").round(1).cast(pl.String))
    text = table.with_columns(shown.otherwise(cell).alias("cell"))
    return text.pivot("n_seed", index=["group", "quantity"], values="cell").fill_null("")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--studies", type=int, default=2000, help="for each number of seeds")
    parser.add_argument("--seeds", type=int, nargs="+", default=[2, 3, 6, 10])
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--random", type=int, default=0)
    given = parser.parse_args()
    start = time.monotonic()
    intervals, verdicts = simulate(given.studies, given.seeds, given.workers, given.random)
    print(f"{given.studies} studies for each of {given.seeds} seeds, random {given.random}\n")
    print("Coverage in % (mean width)\n")
    print(_markdown(_wide(coverage_table(intervals))))
    print("\nVerdicts, in % of studies\n")
    print(_markdown(verdict_table(verdicts)))
    print("\nby scenario\n")
    print(_markdown(verdict_table(verdicts, "scenario").drop("n_true")))
    print(f"{time.monotonic() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
