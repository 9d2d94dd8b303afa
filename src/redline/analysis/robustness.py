"""How the verdict moves when an assumption does: one row for each change, everything else equal.

A change is another tier or delta, another margin, prior scale, reference, place of the best LR or
price of a non-finite end, or the loss of one seed or one learning rate.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from redline.analysis.comparable import ARM_KEY, CONTROL, N_LAYER, PEAK_LR, PLAIN, SEED
from redline.analysis.conclusions import Conclusions, conclude
from redline.analysis.necessity import DROPPABLE_TO, NEEDED_FROM
from redline.analysis.outcome import DIVERGED, OPTIMUM_LR, UNSTABLE, flagged, referred
from redline.analysis.threshold import (
    ESTIMATE_CENSORED,
    ESTIMATE_LOWER,
    ESTIMATE_LR,
    ESTIMATE_UPPER,
    TIER,
    USABLE,
    tiers,
)
from redline.config.analysis import Analysis
from redline.store.schema import Column

CHANGE = "change"
MOVES = "moves"  # what differs from the registered analysis: X, Y, H1, H2, H3
REGISTERED = "as registered"
FACTORS = (0.5, 2.0)
OTHER_DELTA = 0.5
NAMES = ("H1", "H2", "H3")
LIMIT_OF_PLAIN, LIMIT_OF_ARM = "limit_of_plain", "limit_of_arm"

Frames = tuple[pl.DataFrame, pl.DataFrame]
"""Judged trials and planned ones."""


@dataclass(frozen=True)
class _Change:
    """Another analysis of the same trials; `frames` gives its judged and planned trials."""

    name: str
    frames: Callable[[], Frames]
    analysis: Analysis
    registered_lr: Sequence[float] | None
    tier: str = UNSTABLE
    scale: float = 1.0


def robustness(
    judged: pl.DataFrame,
    planned: pl.DataFrame,
    registered_lr: Sequence[float] | None,
    analysis: Analysis,
) -> pl.DataFrame:
    """One row a (control, n_layer, arm, change), the registered analysis first.

    Takes the trials of `outcome.outcomes` and `grid.expected_trials`; X and Y are `droppable_to`
    and `needed_from`, `H1` to `H3` verdicts, the limits posterior medians of the highest stable LR.
    """
    rows: list[dict[str, Any]] = []
    for change in _changes(judged, planned, registered_lr, analysis):
        trials, expected = change.frames()
        flag = tiers(change.analysis)[change.tier]
        trials = trials.with_columns(flag.fill_null(value=False).alias(UNSTABLE))
        found = conclude(
            trials, expected, change.registered_lr, change.analysis, {UNSTABLE: flag}, change.scale
        )
        rows += _rows(change.name, found)
    return _with_moves(pl.DataFrame(rows, schema=SCHEMA))


def _changes(
    judged: pl.DataFrame,
    planned: pl.DataFrame,
    registered_lr: Sequence[float] | None,
    analysis: Analysis,
) -> Iterator[_Change]:
    base = _Change(REGISTERED, lambda: (judged, planned), analysis, registered_lr)

    def anew(trials: pl.DataFrame, expected: pl.DataFrame = planned) -> Frames:
        return flagged(referred(trials, registered_lr), analysis), expected

    yield base
    yield replace(base, name="only diverged counts as unstable", tier=DIVERGED)
    for delta in analysis.delta[:-1]:
        yield replace(base, name=f"unstable from delta {delta:g} on", tier=f"degraded_{delta:g}")
    if analysis.delta[-1] < OTHER_DELTA:
        wider = analysis.model_copy(update={"delta": (OTHER_DELTA,)})
        yield replace(
            base,
            name=f"unstable from delta {OTHER_DELTA:g} on",
            frames=lambda: (flagged(judged, wider), planned),
            analysis=wider,
        )
    yield replace(base, name="reference common to both arms", tier=USABLE)
    for name in ("m_nec", "m_eq"):
        for factor in FACTORS:
            value = factor * getattr(analysis, name)
            other = analysis.model_copy(update={name: value})
            if other.m_eq <= other.m_nec:
                yield replace(base, name=f"{name} {value:g}", analysis=other)
    for factor in FACTORS:
        yield replace(base, name=f"prior scales times {factor:g}", scale=factor)
    yield replace(
        base,
        name="losses capped at the bigram loss",
        frames=lambda: anew(
            judged.with_columns(pl.col(Column.BIGRAM_LOSS).alias(Column.INIT_LOSS))
        ),
    )
    for step, word in ((-1, "lower"), (1, "higher")):
        yield replace(
            base,
            name=f"best LR one step {word}",
            frames=lambda step=step: (flagged(_optimum_moved(judged, step), analysis), planned),
        )
    for seed in _each(planned, SEED):
        rest = pl.col(SEED) != seed
        yield replace(
            base,
            name=f"without seed {seed}",
            frames=lambda rest=rest: anew(judged.filter(rest), planned.filter(rest)),
        )
    for rate in _each(planned, PEAK_LR):
        rest = pl.col(PEAK_LR) != rate
        fewer = None if registered_lr is None else [lr for lr in registered_lr if lr != rate]
        yield replace(
            base,
            name=f"without peak LR {rate:g}",
            frames=lambda rest=rest: anew(judged.filter(rest), planned.filter(rest)),
            registered_lr=fewer,
        )


def _each(planned: pl.DataFrame, name: str) -> list[Any]:
    """The values of an axis, unless dropping one would leave nothing to vary."""
    values = planned[name].unique().sort().to_list()
    return values if len(values) > 2 else []


def _optimum_moved(judged: pl.DataFrame, step: int) -> pl.DataFrame:
    """The best LR of every arm moved by a step of its grid; at its end it stays."""
    grid = judged.select(*ARM_KEY, PEAK_LR).unique().sort(*ARM_KEY, PEAK_LR)
    beside = pl.col(PEAK_LR).shift(-step).over(ARM_KEY)
    moved = grid.with_columns(pl.coalesce(beside, PEAK_LR).alias("_moved"))
    return (
        judged.join(
            moved.rename({PEAK_LR: OPTIMUM_LR}),
            on=[*ARM_KEY, OPTIMUM_LR],
            how="left",
            maintain_order="left",
        )
        .with_columns(pl.col("_moved").alias(OPTIMUM_LR))
        .drop("_moved")
    )


def _rows(name: str, found: Conclusions) -> Iterator[dict[str, Any]]:
    verdicts = {(h.control, h.arm, h.name): h.verdict for h in found.hypotheses}
    limits = {
        (row[CONTROL], row[N_LAYER], row[Column.ARM]): _limit(row)
        for row in found.thresholds.filter(pl.col(TIER) == UNSTABLE).iter_rows(named=True)
    }
    for row in found.boundaries.iter_rows(named=True):
        control, n_layer, arm = (row[key] for key in ARM_KEY)
        yield (
            {key: row[key] for key in (*ARM_KEY, DROPPABLE_TO, NEEDED_FROM)}
            | {CHANGE: name}
            | {LIMIT_OF_PLAIN: limits.get((control, n_layer, PLAIN))}
            | {LIMIT_OF_ARM: limits.get((control, n_layer, arm))}
            | {h: verdicts.get((control, arm, h)) for h in NAMES}
        )


def _limit(row: dict[str, Any]) -> str | None:
    """The posterior median, or the limit that is known of it."""
    match row[ESTIMATE_CENSORED]:
        case "":
            value, sign = row[ESTIMATE_LR], ""
        case ">=":
            value, sign = row[ESTIMATE_LOWER], ">= "
        case "<":
            value, sign = row[ESTIMATE_UPPER], "<= "
        case _:
            return None
    return None if value is None else f"{sign}{value:.2g}"


def _with_moves(table: pl.DataFrame) -> pl.DataFrame:
    words = {DROPPABLE_TO: "droppable", NEEDED_FROM: "needed", **{name: name for name in NAMES}}
    base = table.filter(pl.col(CHANGE) == REGISTERED).select(*ARM_KEY, *words)
    both = table.join(base, on=list(ARM_KEY), how="left", suffix="_base", maintain_order="left")
    moved = [
        pl.when(pl.col(name).ne_missing(pl.col(f"{name}_base"))).then(pl.lit(word))
        for name, word in words.items()
    ]
    return both.with_columns(pl.concat_str(moved, separator=", ", ignore_nulls=True).alias(MOVES))[
        [*SCHEMA, MOVES]
    ]


SCHEMA = (
    {**dict.fromkeys(ARM_KEY, pl.String()), N_LAYER: pl.Int64(), CHANGE: pl.String()}
    | dict.fromkeys((DROPPABLE_TO, NEEDED_FROM), pl.Float64())
    | dict.fromkeys((LIMIT_OF_PLAIN, LIMIT_OF_ARM, *NAMES), pl.String())
)
