"""The necessity boundary: below which peak LR QK-norm can be dropped, above which it is needed.

Paired delta = loss of the plain arm - loss of the arm, over the seeds that finished in both, each
loss being min(final, initial). Positive: the arm helps. The fixed-sequence tests of protocol
section 8 climb from both ends of the range in which the arm is stable in most seeds; they need no
further correction. Two seeds or fewer decide nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from math import log10
from typing import Any

import numpy as np
import polars as pl

from redline.analysis.comparable import (
    ARM_KEY,
    CELL_KEY,
    DEPTH_KEY,
    PEAK_LR,
    PLAIN,
    SEED,
    refuse,
)
from redline.analysis.intervals import MIN_SEEDS, summarised, with_interval
from redline.analysis.isotonic import rising
from redline.analysis.outcome import CAPPED_LOSS, UNSTABLE
from redline.config.analysis import Analysis
from redline.store.schema import Column

DELTA = "delta"
MEAN_DELTA, DELTA_SD, MIN_DELTA, N_PAIR = "mean_delta", "delta_sd", "min_delta", "n_pair"
LOWER, UPPER = "lower", "upper"  # 95 % t interval of the mean delta
MARGIN = "supported_margin"  # the smallest margin that the data support
N_PLAIN_ALONE, N_ARM_ALONE = "n_plain_alone_unstable", "n_arm_alone_unstable"  # discordant pairs
IN_RANGE = "in_range"
STATE, WHY = "state", "why"

DROPPABLE_TO, NEEDED_FROM = "droppable_to", "needed_from"  # X and Y
BAND_LOWER = "band_lower"  # X': the climb from below with m_nec; the band of LR_nec is (X', Y)
CROSSING = "crossing"  # isotonic delta crossed with m_nec, and how it is censored
CENSORED = "censored"
RANGE_TOP = "range_top"
N_SEED = "n_seed"

NEEDED, DROPPABLE, SMALL, HURTS = "needed", "droppable", "small benefit", "hurts"
UNDECIDED, BOTH_FAIL = "undecided", "beyond the range"

Row = dict[str, Any]


def paired_deltas(outcomes: pl.DataFrame) -> pl.DataFrame:
    """One row a (control, n_layer, arm, peak_lr, seed) that finished in the plain arm and in `arm`.

    `delta` is null where a trial was non-finite before its first step: it has no loss.

    Raises:
        UserError: two trials of one pair read other batches or were evaluated on other tokens.
    """
    keys = [*DEPTH_KEY, PEAK_LR, SEED]
    read = [name for name in (Column.BATCH_SHA256, Column.EVAL_SHA256) if name in outcomes.columns]
    sides = outcomes.select(*keys, Column.TRIAL_ID, Column.ARM, CAPPED_LOSS, UNSTABLE, *read)
    plain = sides.filter(pl.col(Column.ARM) == PLAIN).drop(Column.ARM)
    other = sides.filter(pl.col(Column.ARM) != PLAIN)
    pairs = other.join(plain, on=keys, suffix=f"_{PLAIN}")
    for name in read:
        refuse(pairs.filter(pl.col(name) != pl.col(f"{name}_{PLAIN}")), f"a pair differs in {name}")
    return pairs.select(
        *CELL_KEY,
        SEED,
        (pl.col(f"{CAPPED_LOSS}_{PLAIN}") - pl.col(CAPPED_LOSS)).alias(DELTA),
        (pl.col(f"{UNSTABLE}_{PLAIN}") & ~pl.col(UNSTABLE)).alias(N_PLAIN_ALONE),
        (pl.col(UNSTABLE) & ~pl.col(f"{UNSTABLE}_{PLAIN}")).alias(N_ARM_ALONE),
    ).sort(CELL_KEY)


def deltas(
    outcomes: pl.DataFrame, analysis: Analysis, expected: pl.DataFrame | None = None
) -> pl.DataFrame:
    """One row a (control, n_layer, arm, peak_lr): mean delta, its interval, and what it decides.

    A cell that is `expected` in both arms and has no pair yet keeps its row, undecided: no climb
    passes over it.

    `state` is needed, droppable, small benefit, hurts, undecided, or beyond the range; `why` says
    what an undecided state lacks.
    """
    pairs = paired_deltas(outcomes)
    if expected is not None:
        pairs = _with_empty_cells(pairs, expected)
    found = (
        pairs.group_by(CELL_KEY, maintain_order=True)
        .agg(
            *summarised(DELTA),
            pl.col(DELTA).min().alias(MIN_DELTA),
            pl.col(N_PLAIN_ALONE, N_ARM_ALONE).sum().cast(pl.Int64),
        )
        .join(range_tops(outcomes), on=ARM_KEY, how="left", maintain_order="left")
        .with_columns((pl.col(PEAK_LR) <= pl.col(RANGE_TOP)).fill_null(False).alias(IN_RANGE))
    )
    found = with_interval(found, LOWER, UPPER, MARGIN).rename(
        {"_n": N_PAIR, "_mean": MEAN_DELTA, "_sd": DELTA_SD}
    )
    states = [_state(row, analysis) for row in found.iter_rows(named=True)]
    return found.with_columns(
        pl.Series(STATE, [state for state, _ in states], dtype=pl.String),
        pl.Series(WHY, [why for _, why in states], dtype=pl.String),
    ).select(DELTA_COLUMNS)


def _with_empty_cells(pairs: pl.DataFrame, expected: pl.DataFrame) -> pl.DataFrame:
    """The pairs, and a row without a delta for each shared cell that has none."""
    cells = expected.select(CELL_KEY).unique()
    plain = cells.filter(pl.col(Column.ARM) == PLAIN).drop(Column.ARM)
    shared = cells.filter(pl.col(Column.ARM) != PLAIN).join(plain, on=[*DEPTH_KEY, PEAK_LR])
    empty = shared.join(pairs, on=CELL_KEY, how="anti")
    return pl.concat([pairs, empty], how="diagonal").sort(CELL_KEY, maintain_order=True)


def boundaries(deltas: pl.DataFrame, analysis: Analysis) -> pl.DataFrame:
    """One row a (control, n_layer, arm) that is compared: X, Y, the band, the crossing."""
    by_arm: dict[tuple[Any, ...], list[Row]] = {}
    for row in deltas.sort(PEAK_LR).iter_rows(named=True):
        by_arm.setdefault(tuple(row[name] for name in ARM_KEY), []).append(row)
    rows: list[Row] = []
    for key in sorted(by_arm):
        inside = [row for row in by_arm[key] if row[IN_RANGE]]
        crossing, censored = _crossing(inside, analysis.m_nec)
        row = dict(zip(ARM_KEY, key, strict=True)) | {
            DROPPABLE_TO: _last(inside, lambda row: _below(row, analysis.m_eq)),
            NEEDED_FROM: _last(inside[::-1], lambda row: _above(row, analysis.m_nec)),
            BAND_LOWER: _last(inside, lambda row: _below(row, analysis.m_nec)),
            CROSSING: crossing,
            CENSORED: censored,
            RANGE_TOP: inside[-1][PEAK_LR] if inside else None,
            N_SEED: min((row[N_PAIR] for row in inside), default=0),
        }
        rows.append(row)
    return pl.DataFrame(rows, schema=BOUNDARY_SCHEMA)


def range_tops(outcomes: pl.DataFrame) -> pl.DataFrame:
    """`range_top` of each arm: the highest peak LR at which it is stable in most seeds.

    Beyond it both arms fail and their difference means nothing.
    """
    return (
        outcomes.group_by(CELL_KEY)
        .agg((2 * pl.col(UNSTABLE).sum() < pl.len()).alias(IN_RANGE))
        .filter(IN_RANGE)
        .group_by(ARM_KEY)
        .agg(pl.col(PEAK_LR).max().alias(RANGE_TOP))
    )


def _state(row: Row, analysis: Analysis) -> tuple[str, str]:
    """What a cell decides by itself, and why if it is nothing."""
    m_nec, m_eq = analysis.m_nec, analysis.m_eq
    lower, upper = row[LOWER], row[UPPER]
    if not row[N_PAIR]:
        return UNDECIDED, _too_few(0)
    if not row[IN_RANGE]:
        return BOTH_FAIL, "the arm itself is not stable in most seeds from here on"
    if row[N_PAIR] < MIN_SEEDS:
        return UNDECIDED, _too_few(row[N_PAIR])
    if lower is None:
        return UNDECIDED, "the seeds do not differ at all: no spread, no test"
    if lower > m_nec:
        return NEEDED, ""
    if upper < -m_eq:
        return HURTS, ""
    if upper < m_eq:
        return DROPPABLE, ""
    if lower > m_eq and upper < m_nec:
        return SMALL, ""
    interval = f"the 95 % interval {lower:+.3f} to {upper:+.3f}"
    return UNDECIDED, f"{interval} is neither below {m_eq:g} nor above {m_nec:g}"


def _too_few(n: int) -> str:
    words = {0: "no pair of seeds has finished", 1: "one pair of seeds has no spread"}
    return words.get(n, "two pairs of seeds decide nothing")


def _decidable(row: Row) -> bool:
    return row[N_PAIR] >= MIN_SEEDS and row[LOWER] is not None


def _above(row: Row, margin: float) -> bool:
    # The one-sided test at .025 rejects delta <= margin when the lower 95 % limit lies above it.
    return _decidable(row) and row[LOWER] > margin


def _below(row: Row, margin: float) -> bool:
    return _decidable(row) and row[UPPER] < margin


def _last(rows: Iterable[Row], rejects: Callable[[Row], bool]) -> float | None:
    climbed = [row[PEAK_LR] for row in takewhile(rejects, rows)]
    return climbed[-1] if climbed else None


def _crossing(rows: Sequence[Row], margin: float) -> tuple[float | None, str]:
    """Where the isotonic mean delta crosses the margin, interpolated in log10 LR.

    `<` crossed from the start, `>=` never crossed: then the value is the end of the range.
    """
    known = [row for row in rows if row[MEAN_DELTA] is not None]
    if not known:
        return None, ""
    rates = [log10(row[PEAK_LR]) for row in known]
    curve = rising([row[MEAN_DELTA] for row in known], [row[N_PAIR] for row in known])
    if curve[0] > margin:
        return known[0][PEAK_LR], "<"
    if curve[-1] <= margin:
        return known[-1][PEAK_LR], ">="
    after = int(np.argmax(curve > margin))
    ends = slice(after - 1, after + 1)
    return float(10 ** np.interp(margin, curve[ends], rates[ends])), ""


DELTA_COLUMNS = (
    *CELL_KEY,
    N_PAIR,
    MEAN_DELTA,
    DELTA_SD,
    MIN_DELTA,
    LOWER,
    UPPER,
    MARGIN,
    N_PLAIN_ALONE,
    N_ARM_ALONE,
    IN_RANGE,
    STATE,
    WHY,
)
BOUNDARY_SCHEMA = (
    {**dict.fromkeys(ARM_KEY, pl.String()), "n_layer": pl.Int64()}
    | dict.fromkeys((DROPPABLE_TO, NEEDED_FROM, BAND_LOWER, CROSSING), pl.Float64())
    | {CENSORED: pl.String(), RANGE_TOP: pl.Float64(), N_SEED: pl.Int64()}
)
