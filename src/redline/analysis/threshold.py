"""The maximum stable learning rate of each arm and depth: per seed an interval of the grid, over
seeds a posterior.

Per seed: the split of the 0/1 outcomes along the grid with the fewest misfits, since the boundary
is fractal (2402.06184) and no single first failure decides. Ties widen the interval, and so does a
missing trial. "None", "at least" and "unknown" are results: no number stands in for them.
"""

from collections.abc import Mapping
from math import inf, log10
from typing import Any

import numpy as np
import polars as pl

from redline.analysis.comparable import ARM_KEY, PEAK_LR, SEED
from redline.analysis.intervals import MANY_SEEDS
from redline.analysis.isotonic import rising
from redline.analysis.outcome import (
    BEST_LOSS,
    DIVERGED,
    OPTIMUM_LR,
    UNSTABLE,
    below_noise,
    d2,
)
from redline.analysis.posterior import SIGMA_SCALE, posterior, ragged
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

ESTIMATE_LR = "estimate_lr"  # posterior median of the mean threshold
ESTIMATE_LOWER, ESTIMATE_UPPER = "estimate_lower", "estimate_upper"  # its 95 % interval
ESTIMATE_CENSORED = "estimate_censored"
ED10_LR = "ed10_lr"  # unstable in 10 % of seeds, model-dependent; 10 or more seeds only
SPEARMAN_KARBER_LR = "spearman_karber_lr"  # a check without a model; null when an end is open

TIER_KEY = (*ARM_KEY, TIER)


def tiers(analysis: Analysis) -> Mapping[str, pl.Expr]:
    """Tier -> which trials count as unstable.

    `unstable` is the headline; `usable` measures from the best loss of all arms, which turns a
    quality gap into a limit and is therefore a row of its own.
    """

    def degraded(delta: float) -> pl.Expr:
        # A loss that the noise could explain is no outcome, neither stable nor unstable.
        in_noise = pl.col(d2(delta)) & pl.col(below_noise(delta)).fill_null(value=False)
        return pl.when(~in_noise | pl.col(DIVERGED)).then(pl.col(DIVERGED) | pl.col(d2(delta)))

    above = pl.col(PEAK_LR) > pl.col(OPTIMUM_LR)
    worse = pl.col(Column.FINAL_LOSS) > pl.col(BEST_LOSS) + analysis.delta[-1]
    return {
        UNSTABLE: degraded(analysis.delta[-1]),
        DIVERGED: pl.col(DIVERGED),
        **{f"degraded_{delta:g}": degraded(delta) for delta in analysis.delta[:-1]},
        USABLE: pl.col(DIVERGED) | (worse & above),
    }


def seed_thresholds(outcomes: pl.DataFrame, flags: Mapping[str, pl.Expr]) -> pl.DataFrame:
    """One row a (control, n_layer, arm, tier, seed): its interval and its misfits.

    `flags` are `tiers(analysis)` or some of them.
    `lower_lr` is -inf where the seed is unstable from the start of its grid, `upper_lr` is inf
    where it is stable up to the end.
    """
    keys = [*TIER_KEY, SEED]
    flagged = _by_tier(outcomes, flags)
    n_stable = (~pl.col("is_unstable")).sum().over(keys)
    # The cut after a row leaves the unstable ones up to it and the stable ones behind it misfit.
    seen = pl.col("is_unstable").cum_sum().over(keys)
    place = pl.int_range(1, pl.len() + 1).over(keys)
    misfits = seen.cast(pl.Int64) + n_stable.cast(pl.Int64) - (place - seen.cast(pl.Int64))
    cuts = flagged.with_columns(
        misfits.alias("_misfit"),
        n_stable.cast(pl.Int64).alias("_before_all"),
        pl.col(PEAK_LR).shift(-1).over(keys).fill_null(inf).alias("_next"),
    ).with_columns(
        pl.min_horizontal(pl.col("_misfit").min().over(keys), "_before_all").alias("_fewest")
    )
    best = pl.col("_misfit") == pl.col("_fewest")
    none_before = pl.col("_before_all").first() == pl.col("_fewest").first()
    return (
        cuts.group_by(keys)
        .agg(
            pl.when(none_before)
            .then(-inf)
            .otherwise(pl.col(PEAK_LR).filter(best).first())
            .alias(LOWER_LR),
            pl.coalesce(pl.col("_next").filter(best).last(), pl.col(PEAK_LR).first()).alias(
                UPPER_LR
            ),
            pl.col("_fewest").first().alias(N_MISFIT),
            pl.col(TESTED_FROM).first(),
            pl.col(TESTED_TO).first(),
            pl.len().cast(pl.Int64).alias(N_RATE),
        )
        .sort(keys)
    )


def thresholds(
    outcomes: pl.DataFrame, flags: Mapping[str, pl.Expr], scale: float = SIGMA_SCALE
) -> pl.DataFrame:
    """One row a (control, n_layer, arm, tier): the interval of the median seed, and the posterior.

    `flags` are `tiers(analysis)` or some of them, `scale` is the prior scale of the seeds' spread.
    `censored` is `>=` when half or more of the seeds are stable up to the top of the grid, `<` when
    they are unstable from its start, and `?` when both ends are open. Open ends are null.
    `estimate_censored` is the same for the posterior, also when its interval leaves the grid: then
    only one of its limits is a statement. One seed has no posterior.
    """
    seeds = seed_thresholds(outcomes, flags)
    found = seeds.group_by(TIER_KEY, maintain_order=True).agg(
        # The lower median below and the upper one above: with an even number of seeds the wider.
        pl.col(LOWER_LR).quantile(0.5, "lower"),
        pl.col(UPPER_LR).quantile(0.5, "higher"),
        pl.col(LOWER_LR).min().alias(LOWEST_LR),
        pl.col(UPPER_LR).max().alias(HIGHEST_LR),
        pl.col(TESTED_FROM).min(),
        pl.col(TESTED_TO).max(),
        pl.len().cast(pl.Int64).alias(N_SEED),
        pl.col(N_MISFIT).sum(),
        pl.col(N_RATE).max(),
        pl.col(LOWER_LR).alias("_lower"),
        pl.col(UPPER_LR).alias("_upper"),
    )
    found = found.with_columns(
        _open_ends(pl.col(LOWER_LR) == -inf, pl.col(UPPER_LR) == inf).alias(CENSORED)
    )
    found = _with_estimates(found, scale).join(
        _spearman_karber(outcomes, flags), on=TIER_KEY, how="left", maintain_order="left"
    )
    ends = (LOWER_LR, UPPER_LR, LOWEST_LR, HIGHEST_LR)
    return found.with_columns(
        pl.when(pl.col(name).is_finite()).then(name).alias(name) for name in ends
    ).drop("_lower", "_upper", N_RATE)


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


def estimate_text(row: Mapping[str, Any]) -> str:
    """The posterior of a row of `thresholds` in words; empty for one seed."""
    if row[N_SEED] < 2:
        return ""
    match row[ESTIMATE_CENSORED]:
        case "?":
            return "unknown"
        case ">=":
            return f">= {row[ESTIMATE_LOWER]:.2g}" if row[ESTIMATE_LOWER] else "unknown"
        case "<":
            return f"<= {row[ESTIMATE_UPPER]:.2g}" if row[ESTIMATE_UPPER] else "unknown"
        case _:
            limits = f"{row[ESTIMATE_LOWER]:.2g} to {row[ESTIMATE_UPPER]:.2g}"
            return f"{row[ESTIMATE_LR]:.2g} ({limits})"


N_RATE = "_n_rate"


def _by_tier(outcomes: pl.DataFrame, flags: Mapping[str, pl.Expr]) -> pl.DataFrame:
    """A row for each trial and tier, ascending in LR, with `is_unstable`.

    Noise can leave no outcome: such a trial counts as missing, which widens the interval.
    """
    # The split is sought above the best LR: a trial that dies below it belongs to no boundary.
    counts = pl.col(PEAK_LR) >= pl.col(OPTIMUM_LR)
    judged = outcomes.select(
        *ARM_KEY,
        SEED,
        PEAK_LR,
        *((flag & counts).alias(tier) for tier, flag in flags.items()),
    )
    index = [*ARM_KEY, SEED, PEAK_LR]
    return (
        judged.unpivot(index=index, variable_name=TIER, value_name="is_unstable")
        .with_columns(
            pl.col(PEAK_LR).min().over([*TIER_KEY, SEED]).alias(TESTED_FROM),
            pl.col(PEAK_LR).max().over([*TIER_KEY, SEED]).alias(TESTED_TO),
        )
        .drop_nulls("is_unstable")
        .sort([*TIER_KEY, SEED, PEAK_LR])
    )


def _open_ends(below: pl.Expr, above: pl.Expr) -> pl.Expr:
    return (
        pl.when(below & above)
        .then(pl.lit(UNKNOWN))
        .when(above)
        .then(pl.lit(AT_LEAST))
        .when(below)
        .then(pl.lit(BELOW))
        .otherwise(pl.lit(INSIDE))
    )


def _with_estimates(found: pl.DataFrame, scale: float) -> pl.DataFrame:
    if found.is_empty():
        numbers = (ESTIMATE_LR, ESTIMATE_LOWER, ESTIMATE_UPPER, ED10_LR)
        return found.with_columns(
            *(pl.lit(None, pl.Float64).alias(name) for name in numbers),
            pl.lit(None, pl.String).alias(ESTIMATE_CENSORED),
        )
    lower, upper = (_log(ragged(found[name].to_list())) for name in ("_lower", "_upper"))
    bottom, top = (_log(found[name].to_numpy()) for name in (TESTED_FROM, TESTED_TO))
    step = (top - bottom) / np.maximum(found[N_RATE].to_numpy() - 1, 1)
    # One rate alone has no step: half a decade to both sides is as wide as its neighbours would be.
    step = np.where(step > 0, step, 0.5)
    fit = posterior(lower, upper, bottom - step, top + step, scale)
    low, high = fit.lower, fit.upper
    few = np.isnan(lower).sum(axis=1) > lower.shape[1] - 2
    alone = few.copy()
    half = 0.5 * (~np.isnan(lower)).sum(axis=1)
    lost_below = (lower == -inf).sum(axis=1) >= half
    lost_above = (upper == inf).sum(axis=1) >= half
    # A median of seeds that are mostly beyond the grid would be the prior's: there is none.
    few |= lost_below | lost_above
    open_below, open_above = lost_below | (low < bottom), lost_above | (high > top)
    many = found[N_SEED].to_numpy() >= MANY_SEEDS
    columns = {
        ESTIMATE_LR: np.where(few, np.nan, 10**fit.median),
        ESTIMATE_LOWER: np.where(alone | lost_below | np.isinf(low), np.nan, 10**low),
        ESTIMATE_UPPER: np.where(alone | lost_above | np.isinf(high), np.nan, 10**high),
        ED10_LR: np.where(many & ~few, 10**fit.ed10, np.nan),
    }
    return (
        found.with_columns(
            *(pl.Series(name, values, nan_to_null=True) for name, values in columns.items()),
            pl.Series("_open_below", open_below),
            pl.Series("_open_above", open_above),
        )
        .with_columns(
            _open_ends(pl.col("_open_below"), pl.col("_open_above")).alias(ESTIMATE_CENSORED)
        )
        .drop("_open_below", "_open_above")
    )


def _log(values: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(values == -inf, -inf, np.log10(np.where(values == -inf, 1.0, values)))


def _spearman_karber(outcomes: pl.DataFrame, flags: Mapping[str, pl.Expr]) -> pl.DataFrame:
    """The mean threshold from the isotonic share of unstable seeds at each LR."""
    shares = (
        _by_tier(outcomes, flags)
        .group_by([*TIER_KEY, PEAK_LR])
        .agg(pl.col("is_unstable").mean().alias("share"), pl.len().alias("n"))
        .sort([*TIER_KEY, PEAK_LR])
        .group_by(TIER_KEY, maintain_order=True)
        .agg(PEAK_LR, "share", "n")
    )
    found = [
        _mean_threshold(rates, share, n)
        for rates, share, n in shares.select(PEAK_LR, "share", "n").iter_rows()
    ]
    return shares.select(TIER_KEY).with_columns(
        pl.Series(SPEARMAN_KARBER_LR, found, dtype=pl.Float64)
    )


def _mean_threshold(rates: list[float], share: list[float], n: list[int]) -> float | None:
    curve = rising(share, n)
    if curve[0] > 0 or curve[-1] < 1:
        return None
    logs = np.array([log10(rate) for rate in rates])
    return float(10 ** np.sum(np.diff(curve) * (logs[1:] + logs[:-1]) / 2))
