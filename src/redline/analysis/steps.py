"""How many steps training takes to reach a loss; a trial that never arrives is not dropped.

The threshold is that of the study, or the bigram loss of its corpus. A trial that never arrives, a
non-finite one included, is censored at `n_step` and not where it died: its death is informative,
and a censoring that is not would make early deaths look like early departures (protocol section 9).
"""

import polars as pl
from scipy import special

from redline.analysis.comparable import CELL_KEY, DEPTH_KEY, PEAK_LR, PLAIN, SEED
from redline.analysis.intervals import summarised, with_interval
from redline.config.analysis import Analysis
from redline.store.schema import Column

THRESHOLD = "threshold"
STEPS = "steps"  # null: it never arrived
RESTRICTED = "restricted_steps"  # min(steps, n_step)
N_TRIAL, N_ARRIVED = "n_trial", "n_arrived"
MEAN_STEPS, STEPS_LOWER, STEPS_UPPER = "mean_steps", "lower", "upper"
SAVED = "steps_saved"  # plain arm - this arm, over the seeds that both have
SAVED_LOWER, SAVED_UPPER, N_PAIR = "saved_lower", "saved_upper", "n_pair"
LOG_RANK_P = "log_rank_p"  # ignores the pairing: a description
STEP, SHARE, N_AT_RISK = "step", "share_not_arrived", "n_at_risk"


def steps_to_threshold(
    outcomes: pl.DataFrame, series: pl.DataFrame, analysis: Analysis
) -> pl.DataFrame:
    """One row a trial that was evaluated: the first evaluation at or below the threshold.

    A trial without a series, such as another tool's, has no row: an arrival is seen at evaluations
    alone.
    """
    threshold = pl.lit(analysis.loss_threshold, pl.Float64)
    trials = outcomes.select(
        Column.TRIAL_ID,
        *CELL_KEY,
        SEED,
        "n_step",
        pl.coalesce(threshold, Column.BIGRAM_LOSS).alias(THRESHOLD),
    ).drop_nulls(THRESHOLD)
    evaluated = series.drop_nulls(Column.EVAL_LOSS).join(trials, on=Column.TRIAL_ID)
    loss = pl.col(Column.EVAL_LOSS)
    arrived = loss.is_finite() & (loss <= pl.col(THRESHOLD))
    first = evaluated.group_by(Column.TRIAL_ID).agg(
        pl.col(Column.STEP).filter(arrived).min().cast(pl.Int64).alias(STEPS)
    )
    steps = trials.join(first, on=Column.TRIAL_ID, maintain_order="left")
    return steps.with_columns(pl.coalesce(STEPS, "n_step").cast(pl.Float64).alias(RESTRICTED))


def restricted_means(steps: pl.DataFrame) -> pl.DataFrame:
    """One row a (control, n_layer, arm, peak_lr): mean restricted steps, and the plain arm's lead.

    Intervals are t intervals over seeds; `steps_saved` is positive where the arm arrives sooner.
    """
    alone = _interval(
        steps.group_by(CELL_KEY).agg(
            *summarised(RESTRICTED),
            pl.len().cast(pl.Int64).alias(N_TRIAL),
            pl.col(STEPS).count().cast(pl.Int64).alias(N_ARRIVED),
            pl.col(THRESHOLD).first(),
            pl.col("n_step").max(),
        ),
        MEAN_STEPS,
        (STEPS_LOWER, STEPS_UPPER),
    ).drop("_n")
    # No mean of restricted steps lies beyond them.
    alone = alone.with_columns(
        pl.max_horizontal(STEPS_LOWER, 0).alias(STEPS_LOWER),
        pl.when(pl.col(STEPS_UPPER).is_not_null())
        .then(pl.min_horizontal(STEPS_UPPER, "n_step"))
        .alias(STEPS_UPPER),
    ).with_columns(pl.when(pl.col(STEPS_UPPER).is_not_null()).then(STEPS_LOWER).alias(STEPS_LOWER))
    saved = _interval(
        _pairs(steps).group_by(CELL_KEY).agg(*summarised(SAVED)), SAVED, (SAVED_LOWER, SAVED_UPPER)
    ).rename({"_n": N_PAIR})
    keys = list(CELL_KEY)
    table = alone.join(saved, on=keys, how="left").join(_log_ranks(steps), on=keys, how="left")
    return table.sort(CELL_KEY).select(*CELL_KEY, *COLUMNS)


def survival_curves(steps: pl.DataFrame) -> pl.DataFrame:
    """Kaplan-Meier: one row a (control, n_layer, arm, peak_lr, step) at which a trial left.

    It left by arriving or at its end. `share_not_arrived` holds from that step on; `n_at_risk` were
    still on their way before it.
    """
    survived = 1 - pl.col(N_ARRIVED) / pl.col(N_AT_RISK)
    return (
        _leaving(steps)
        .sort(*CELL_KEY, STEP)
        .with_columns(pl.col("_left").cum_sum(reverse=True).over(CELL_KEY).alias(N_AT_RISK))
        .with_columns(survived.cum_prod().over(CELL_KEY).alias(SHARE))
        .select(*CELL_KEY, STEP, SHARE, N_AT_RISK)
    )


def _interval(frame: pl.DataFrame, mean: str, limits: tuple[str, str]) -> pl.DataFrame:
    unused = ("_margin", "_sd", "_flat")
    return with_interval(frame, *limits, "_margin").drop(unused).rename({"_mean": mean})


def _pairs(steps: pl.DataFrame) -> pl.DataFrame:
    keys = [*DEPTH_KEY, PEAK_LR, SEED]
    plain = steps.filter(pl.col(Column.ARM) == PLAIN).select(*keys, RESTRICTED)
    other = steps.filter(pl.col(Column.ARM) != PLAIN)
    pairs = other.join(plain, on=keys, suffix=f"_{PLAIN}")
    saved = pl.col(f"{RESTRICTED}_{PLAIN}") - pl.col(RESTRICTED)
    return pairs.select(*CELL_KEY, SEED, saved.alias(SAVED))


def _leaving(steps: pl.DataFrame) -> pl.DataFrame:
    """Each cell's steps at which trials leave the risk set, and how many of those arrived."""
    return steps.group_by(*CELL_KEY, pl.col(RESTRICTED).alias(STEP)).agg(
        pl.len().cast(pl.Int64).alias("_left"),
        pl.col(STEPS).count().cast(pl.Int64).alias(N_ARRIVED),
    )


def _log_ranks(steps: pl.DataFrame) -> pl.DataFrame:
    """The log-rank p of each cell against the plain arm's, both of two or more trials.

    Counted for all cells at once, as `scipy.stats.logrank` counts for one. There is no p where
    nobody arrives, or all at one step.
    """
    leaving = _leaving(steps)
    shared = [*DEPTH_KEY, PEAK_LR]
    own = leaving.filter(pl.col(Column.ARM) != PLAIN)
    plain = leaving.filter(pl.col(Column.ARM) == PLAIN).drop(Column.ARM)
    opposite = own.select(CELL_KEY).unique().join(plain, on=shared)
    both = pl.concat(
        [own.with_columns(_own=pl.lit(1)), opposite.select(own.columns).with_columns(_own=0)]
    )
    risk = (
        both.group_by(*CELL_KEY, STEP)
        .agg(
            arrived=pl.col(N_ARRIVED).sum(),
            arrived_own=(pl.col(N_ARRIVED) * pl.col("_own")).sum(),
            left=pl.col("_left").sum(),
            left_own=(pl.col("_left") * pl.col("_own")).sum(),
        )
        .sort(*CELL_KEY, STEP)
        .with_columns(
            n=pl.col("left").cum_sum(reverse=True).over(CELL_KEY).cast(pl.Float64),
            n_own=pl.col("left_own").cum_sum(reverse=True).over(CELL_KEY).cast(pl.Float64),
        )
    )
    n, n_own, arrived = pl.col("n"), pl.col("n_own"), pl.col("arrived")
    # Of the last trial at risk nothing is left to chance: its variance would be 0 / 0.
    variance = arrived * n_own * (n - n_own) * (n - arrived) / (n**2 * pl.max_horizontal(n - 1, 1))
    tested = (
        risk.group_by(CELL_KEY)
        .agg(
            excess=(pl.col("arrived_own") - arrived * n_own / n).sum(),
            variance=variance.sum(),
            n_own=n_own.max(),
            n_plain=n.max() - n_own.max(),
        )
        .filter((pl.col("variance") > 0) & (pl.min_horizontal("n_own", "n_plain") > 1))
    )
    z = (tested["excess"].abs() / (2 * tested["variance"]).sqrt()).to_numpy()
    return tested.select(CELL_KEY).with_columns(pl.Series(LOG_RANK_P, special.erfc(z), pl.Float64))


COLUMNS = (
    THRESHOLD,
    N_TRIAL,
    N_ARRIVED,
    MEAN_STEPS,
    STEPS_LOWER,
    STEPS_UPPER,
    N_PAIR,
    SAVED,
    SAVED_LOWER,
    SAVED_UPPER,
    LOG_RANK_P,
)
