"""The maximum stable learning rate of each arm and depth, as intervals of the grid.

Per seed: the split of the 0/1 outcomes along the grid with the fewest misfits, since the boundary
is fractal (2402.06184) and no single first failure decides. Ties widen the interval, and so does a
missing trial. "None", "at least" and "unknown" are results: no number stands in for them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import polars as pl

from redline.analysis.comparable import ARM_KEY, PEAK_LR, SEED
from redline.analysis.outcome import (
    BEST_LOSS,
    DIVERGED,
    OPTIMUM_LR,
    UNSTABLE,
    below_noise,
    d2,
)
from redline.config.analysis import Analysis
from redline.store.schema import Column

TIER = "tier"
USABLE = "usable"
LOWER_LR, UPPER_LR = "lower_lr", "upper_lr"  # the median seed: stable at lower, unstable from upper
LOWEST_LR, HIGHEST_LR = "lowest_lr", "highest_lr"  # over all seeds
TESTED_FROM, TESTED_TO = "tested_from", "tested_to"
CENSORED = "censored"
N_SEED, N_MISFIT = "n_seed", "n_misfit"
AT_LEAST, BELOW, INSIDE, UNKNOWN = ">=", "<", "", "?"


@dataclass(frozen=True)
class Split:
    """Stable at `lower` (-inf: nowhere tested), unstable from `upper` (inf: nowhere tested)."""

    lower: float
    upper: float
    n_misfit: int


def split(rates: Sequence[float], unstable: Sequence[bool]) -> Split:
    """The split of one seed's outcomes, ascending in LR, with the fewest misfits."""
    misfits = [
        sum(unstable[:cut]) + sum(not bad for bad in unstable[cut:])
        for cut in range(len(unstable) + 1)
    ]
    fewest = min(misfits)
    first = misfits.index(fewest)
    last = len(misfits) - 1 - misfits[::-1].index(fewest)
    return Split(
        rates[first - 1] if first else -inf,
        rates[last] if last < len(rates) else inf,
        fewest,
    )


def tiers(analysis: Analysis) -> Mapping[str, pl.Expr]:
    """Tier -> which trials count as unstable.

    `unstable` is the headline; `usable` measures from the best loss of all arms, which turns a
    quality gap into a limit and is therefore a row of its own.
    """
    degraded = {
        f"degraded_{delta:g}": pl.col(DIVERGED) | (pl.col(d2(delta)) & ~pl.col(below_noise(delta)))
        for delta in analysis.delta[:-1]
    }
    above = pl.col(PEAK_LR) > pl.col(OPTIMUM_LR)
    worse = pl.col(Column.FINAL_LOSS) > pl.col(BEST_LOSS) + analysis.delta[-1]
    return {
        UNSTABLE: pl.col(UNSTABLE),
        DIVERGED: pl.col(DIVERGED),
        **degraded,
        USABLE: pl.col(DIVERGED) | (worse & above),
    }


def seed_thresholds(outcomes: pl.DataFrame, analysis: Analysis) -> pl.DataFrame:
    """One row a (control, n_layer, arm, tier, seed): its interval and its misfits."""
    rows: list[dict[str, Any]] = []
    for tier, flag in tiers(analysis).items():
        judged = outcomes.sort(PEAK_LR).select(*ARM_KEY, SEED, PEAK_LR, flag.alias(TIER))
        for key, trials in judged.group_by([*ARM_KEY, SEED]):
            *arm, seed = key
            # Noise can leave no verdict: a null outcome is a missing one, and widens the interval.
            known = trials.drop_nulls(TIER)
            found = split(known[PEAK_LR].to_list(), known[TIER].to_list())
            rows.append(
                dict(zip(ARM_KEY, arm, strict=True))
                | {TIER: tier, SEED: seed, LOWER_LR: found.lower, UPPER_LR: found.upper}
                | {TESTED_FROM: trials[PEAK_LR].min(), TESTED_TO: trials[PEAK_LR].max()}
                | {N_MISFIT: found.n_misfit}
            )
    return pl.DataFrame(rows, schema=_SEED_SCHEMA).sort([*ARM_KEY, TIER, SEED])


def thresholds(outcomes: pl.DataFrame, analysis: Analysis) -> pl.DataFrame:
    """One row a (control, n_layer, arm, tier): the interval of the median seed, and the extremes.

    `censored` is `>=` when half or more of the seeds are stable up to the top of the grid, `<` when
    they are unstable from its start, and `?` when both ends are open. Open ends are null.
    """
    # The lower median below and the upper one above: with an even number of seeds the wider.
    middle = {
        LOWER_LR: pl.col(LOWER_LR).quantile(0.5, "lower"),
        UPPER_LR: pl.col(UPPER_LR).quantile(0.5, "higher"),
    }
    found = (
        seed_thresholds(outcomes, analysis)
        .group_by([*ARM_KEY, TIER], maintain_order=True)
        .agg(
            *(value.alias(name) for name, value in middle.items()),
            pl.col(LOWER_LR).min().alias(LOWEST_LR),
            pl.col(UPPER_LR).max().alias(HIGHEST_LR),
            pl.col(TESTED_FROM).min(),
            pl.col(TESTED_TO).max(),
            pl.len().cast(pl.Int64).alias(N_SEED),
            pl.col(N_MISFIT).sum(),
        )
    )
    open_below, open_above = pl.col(LOWER_LR) == -inf, pl.col(UPPER_LR) == inf
    censored = (
        pl.when(open_below & open_above)
        .then(pl.lit(UNKNOWN))
        .when(open_above)
        .then(pl.lit(AT_LEAST))
        .when(open_below)
        .then(pl.lit(BELOW))
        .otherwise(pl.lit(INSIDE))
    )
    ends = (LOWER_LR, UPPER_LR, LOWEST_LR, HIGHEST_LR)
    return found.with_columns(censored.alias(CENSORED)).with_columns(
        pl.when(pl.col(name).is_finite()).then(name).alias(name) for name in ends
    )


def interval_text(row: Mapping[str, Any]) -> str:
    """The interval of a row of `thresholds` in words."""
    lower, upper = row[LOWER_LR], row[UPPER_LR]
    match row[CENSORED]:
        case "?":
            return "unknown: the outcomes have no split"
        case ">=":
            top = " (highest tested)" if lower == row[TESTED_TO] else ""
            return f">= {lower:g}{top}"
        case "<":
            bottom = " (lowest tested)" if upper == row[TESTED_FROM] else ""
            return f"none: below {upper:g}{bottom}"
        case _:
            return f"between {lower:g} and {upper:g}"


_SEED_SCHEMA = (
    {**dict.fromkeys(ARM_KEY, pl.String()), "n_layer": pl.Int64()}
    | {TIER: pl.String(), SEED: pl.Int64()}
    | dict.fromkeys((LOWER_LR, UPPER_LR, TESTED_FROM, TESTED_TO), pl.Float64())
    | {N_MISFIT: pl.Int64()}
)
