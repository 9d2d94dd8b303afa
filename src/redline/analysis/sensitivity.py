"""Learning-rate sensitivity (2309.14322): how much of the best loss a wrong peak LR costs.

Per seed: mean over the grid of min(loss, l0) minus its minimum over the grid. The mean and the t
interval are over seeds. A seed with a missing cell is left out and named; refined points near a
boundary do not enter; and a stuck arm, which would score 0, has no sensitivity at all.
"""

from collections.abc import Sequence
from typing import Any

import polars as pl

from redline.analysis.comparable import ARM_KEY, DEPTH_KEY, PEAK_LR, PLAIN, SEED
from redline.analysis.grid import is_log_uniform, matching
from redline.analysis.intervals import mean_interval
from redline.analysis.outcome import CAPPED_LOSS, REFERENCE_LOSS
from redline.store.schema import Column

GRID = "grid"
STUDY_GRID, WORTSMAN_GRID = "study", "wortsman"
WORTSMAN = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1)

SENSITIVITY = "sensitivity"
LOWER, UPPER, N_SEED = "lower", "upper", "n_seed"
OF_MEAN_CURVE = "of_mean_curve"  # the value of the seed-mean curve, an extra
LEFT_OUT = "left_out"  # seeds with a missing cell
DIFFERENCE = "difference"  # plain arm - this arm, over the seeds that both have
DIFFERENCE_LOWER, DIFFERENCE_UPPER = "difference_lower", "difference_upper"
N_PAIR = "n_pair"
WHY = "why"  # why there is no value

Losses = dict[int, dict[float, float | None]]


def sensitivities(
    outcomes: pl.DataFrame, expected: pl.DataFrame, registered: Sequence[float] | None
) -> pl.DataFrame:
    """One row a (control, n_layer, arm, grid): sensitivity in nats and its paired difference.

    All arms of a depth are measured on the intersection of their expected grids. `registered` are
    the peak LRs of the study's axis; without it all of them count.
    """
    rows: list[dict[str, Any]] = []
    for key, planned in expected.group_by(DEPTH_KEY, maintain_order=True):
        depth = dict(zip(DEPTH_KEY, key, strict=True))
        trials = outcomes.filter(**depth)
        rates = _shared_rates(planned, registered)
        seeds = planned[SEED].unique().sort().to_list()
        wortsman = matching(rates, WORTSMAN)
        grids = {STUDY_GRID: rates} | ({WORTSMAN_GRID: wortsman} if wortsman else {})
        for grid, points in grids.items():
            arms = [
                depth | {GRID: grid} | _of_arm(trials.filter(arm=arm), arm, points, seeds)
                for arm in planned[Column.ARM].unique().sort().to_list()
            ]
            plain = next((row for row in arms if row[Column.ARM] == PLAIN), None)
            rows += [row | _paired(plain, row) for row in arms]
    return pl.DataFrame([{name: row[name] for name in SCHEMA} for row in rows], schema=SCHEMA).sort(
        [*ARM_KEY, GRID]
    )


def _shared_rates(planned: pl.DataFrame, registered: Sequence[float] | None) -> list[float]:
    by_arm = [set[float](arm[PEAK_LR]) for _, arm in planned.group_by(Column.ARM)]
    shared = set[float].intersection(*by_arm)
    return sorted(shared & set(registered) if registered else shared)


def _of_arm(
    trials: pl.DataFrame, arm: str, points: Sequence[float], seeds: Sequence[int]
) -> dict[str, Any]:
    losses: Losses = {seed: {} for seed in seeds}
    for seed, rate, loss in trials.select(SEED, PEAK_LR, CAPPED_LOSS).iter_rows():
        losses[seed][rate] = loss
    curves = {
        seed: [loss for rate in points if (loss := of_rate.get(rate)) is not None]
        for seed, of_rate in losses.items()
    }
    whole = {seed: curve for seed, curve in curves.items() if len(curve) == len(points)}
    why = _why_not(trials, points, whole)
    by_seed = {} if why else {seed: _sensitivity(curve) for seed, curve in whole.items()}
    found = mean_interval(list(by_seed.values()))
    mean_curve = [sum(of_rate) / len(whole) for of_rate in zip(*whole.values(), strict=True)]
    return {
        Column.ARM: arm,
        SENSITIVITY: found.mean,
        LOWER: found.lower,
        UPPER: found.upper,
        N_SEED: found.n,
        OF_MEAN_CURVE: None if why else _sensitivity(mean_curve),
        LEFT_OUT: sorted(losses.keys() - whole.keys()),
        WHY: why,
        "by_seed": by_seed,
    }


def _sensitivity(curve: Sequence[float]) -> float:
    return sum(curve) / len(curve) - min(curve)


def _why_not(trials: pl.DataFrame, points: Sequence[float], whole: dict[int, list[float]]) -> str:
    if len(points) < 2:
        return "the arms share fewer than two learning rates"
    if not is_log_uniform(points):
        return "the learning rates are not spaced evenly in log10"
    if not whole:
        return "no seed has finished at every learning rate"
    if (trials[REFERENCE_LOSS] >= trials[Column.BIGRAM_LOSS]).any():
        return "not meaningful: the arm's best loss does not beat bigram counts"
    return ""


def _paired(plain: dict[str, Any] | None, row: dict[str, Any]) -> dict[str, Any]:
    """The difference to the plain arm; the plain arm itself has none."""
    here: dict[int, float] = row["by_seed"]
    there: dict[int, float] = plain["by_seed"] if plain and plain is not row else {}
    found = mean_interval([there[seed] - here[seed] for seed in here.keys() & there.keys()])
    return {
        DIFFERENCE: found.mean,
        DIFFERENCE_LOWER: found.lower,
        DIFFERENCE_UPPER: found.upper,
        N_PAIR: found.n,
    }


_OF_ARM = (SENSITIVITY, LOWER, UPPER, OF_MEAN_CURVE)
_OF_PAIR = (DIFFERENCE, DIFFERENCE_LOWER, DIFFERENCE_UPPER)
SCHEMA = (
    {**dict.fromkeys(ARM_KEY, pl.String()), "n_layer": pl.Int64(), GRID: pl.String()}
    | dict.fromkeys((*_OF_ARM, *_OF_PAIR), pl.Float64())
    | {N_SEED: pl.Int64(), N_PAIR: pl.Int64(), LEFT_OUT: pl.List(pl.Int64()), WHY: pl.String()}
)
