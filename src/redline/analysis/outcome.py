"""What became of each trial: protocol section 6, computed from the stored tables alone.

A threshold can change without retraining, and a diverged trial is a measurement that stays in every
mean: where its loss is not finite or above the initial loss, the initial loss stands for it.
"""

from collections.abc import Sequence

import polars as pl

from redline.analysis.comparable import (
    ARM_KEY,
    CELL_KEY,
    DEPTH_KEY,
    PEAK_LR,
    comparable,
    refuse,
)
from redline.analysis.spikes import REBOUNDED, first_non_finite, spikes
from redline.config.analysis import Analysis
from redline.store.schema import Column

CAPPED_LOSS = "capped_loss"  # min(final loss, initial loss); the initial loss for D0
REFERENCE_LOSS = "reference_loss"  # R(arm, depth)
OPTIMUM_LR = "optimum_lr"  # LR_opt(arm, depth)
BEST_LOSS = "best_loss"  # R*(depth)
SEED_SD = "seed_sd"  # median within-cell sd over seeds at LR <= LR_opt; null without two seeds
SHORT_BUDGET = "short_budget"  # the bigram line lies within the margin of the best loss

D0, D1, D3, SLOW = "d0", "d1", "d3", "slow"
UNSTABLE, DIVERGED = "unstable", "diverged"
OUTCOME = "outcome"

NOISE_SD = 3


def d2(delta: float) -> str:
    """The flag column of a final loss more than `delta` above the arm's own reference."""
    return f"d2_{delta:g}"


def below_noise(delta: float) -> str:
    """The name of the column that says that the seeds scatter too much for `delta` to decide."""
    return f"below_noise_{delta:g}"


def labels(analysis: Analysis) -> tuple[str, ...]:
    """The values of `outcome`, worst first."""
    degraded = (f"degraded_{delta:g}" for delta in reversed(analysis.delta))
    return ("non_finite", "failed", *degraded, "below_noise", "spiked", "slow", "stable")


def outcomes(
    trials: pl.DataFrame,
    series: pl.DataFrame,
    probes: pl.DataFrame,
    analysis: Analysis,
    registered_lr: Sequence[float] | None = None,
) -> pl.DataFrame:
    """The trials with their references, flags and outcome; `non_finite` is filled from the series.

    The headline `unstable` is D0, D1 or D2 at the largest delta; `diverged` is D0 or D1.

    Raises:
        UserError: rows that cannot be compared, or a trial that ended early with all values finite.
    """
    frame = _with_non_finite(comparable(trials), series, probes)
    frame = frame.join(spikes(frame, series), on=Column.TRIAL_ID, how="left")
    return flagged(referred(frame, registered_lr), analysis)


def _with_non_finite(
    trials: pl.DataFrame, series: pl.DataFrame, probes: pl.DataFrame
) -> pl.DataFrame:
    seen = first_non_finite(series, probes)
    frame = trials.join(seen, on=Column.TRIAL_ID, how="left", suffix="_seen")
    bad_end = ~pl.col(Column.FINAL_LOSS).is_finite()
    frame = frame.with_columns(
        pl.coalesce(
            Column.NON_FINITE, f"{Column.NON_FINITE}_seen", pl.when(bad_end).then(pl.lit("loss"))
        ),
        pl.coalesce(
            Column.NON_FINITE_STEP,
            f"{Column.NON_FINITE_STEP}_seen",
            pl.when(bad_end).then(Column.STEPS_DONE),
        ),
    ).drop(f"{Column.NON_FINITE}_seen", f"{Column.NON_FINITE_STEP}_seen")
    finite = frame.filter(pl.col(Column.NON_FINITE).is_null())
    refuse(
        finite.filter(pl.col(Column.STEPS_DONE) < pl.col("n_step")),
        "training ended before n_step with all values finite, which is never compared,",
    )
    refuse(finite.filter(pl.col(Column.FINAL_LOSS).is_null()), "final_loss is missing")
    return frame


def referred(trials: pl.DataFrame, registered_lr: Sequence[float] | None) -> pl.DataFrame:
    """The trials with their capped loss and the references of their arm, anew if they have some."""
    d0 = pl.col(Column.NON_FINITE).is_not_null()
    init_loss = pl.col(Column.INIT_LOSS)
    trials = trials.with_columns(
        pl.when(d0)
        # Non-finite before the first step: there is no loss to count it at, so it is in no mean.
        .then(pl.when(init_loss.is_finite()).then(init_loss))
        .otherwise(pl.min_horizontal(Column.FINAL_LOSS, Column.INIT_LOSS))
        .alias(CAPPED_LOSS)
    )
    # References are those of the registered grid: more tries find a lower loss by luck. An arm that
    # stands on none of its points has no other reference than its own.
    on_grid = pl.col(PEAK_LR).is_in(list(registered_lr or ())) if registered_lr else pl.lit(True)
    referring = trials.filter(on_grid | ~on_grid.any().over(ARM_KEY))
    # Sorted by loss and then by LR, the first cell of an arm is its optimum: the lowest LR on ties.
    arms = (
        referring.group_by(CELL_KEY)
        .agg(pl.col(CAPPED_LOSS).mean(), pl.col(CAPPED_LOSS).std().alias(SEED_SD))
        .sort(CAPPED_LOSS, PEAK_LR, nulls_last=True)
        .group_by(ARM_KEY, maintain_order=True)
        .agg(
            pl.col(CAPPED_LOSS).first().alias(REFERENCE_LOSS),
            pl.col(PEAK_LR).first().alias(OPTIMUM_LR),
            pl.col(SEED_SD).filter(pl.col(PEAK_LR) <= pl.col(PEAK_LR).first()).median(),
        )
        .with_columns(pl.col(REFERENCE_LOSS).min().over(DEPTH_KEY).alias(BEST_LOSS))
    )
    known = [name for name in arms.columns if name not in ARM_KEY]
    return trials.drop(known, strict=False).join(
        arms, on=ARM_KEY, how="left", maintain_order="left"
    )


def flagged(trials: pl.DataFrame, analysis: Analysis) -> pl.DataFrame:
    """The trials with their flags and outcome, from their references."""
    loss, best, bigram = (pl.col(n) for n in (Column.FINAL_LOSS, BEST_LOSS, Column.BIGRAM_LOSS))
    d0 = pl.col(Column.NON_FINITE).is_not_null()
    above = pl.col(PEAK_LR) > pl.col(OPTIMUM_LR)
    failed = ~d0 & (loss > pl.max_horizontal(bigram, best + analysis.failed_margin))
    worse = {delta: ~d0 & (loss > pl.col(REFERENCE_LOSS) + delta) for delta in analysis.delta}
    noisy = {delta: NOISE_SD * pl.col(SEED_SD) > delta for delta in analysis.delta}
    # A delta below noise keeps its flag and decides nothing: neither label nor headline.
    high = {delta: worse[delta] & ~noisy[delta].fill_null(value=False) for delta in analysis.delta}

    d1 = failed & above
    degraded = {delta: high[delta] & above for delta in reversed(analysis.delta)}
    muted = above & pl.any_horizontal(*(worse[delta] & noisy[delta] for delta in analysis.delta))
    d3 = pl.col(REBOUNDED) & ~pl.any_horizontal(d0, d1, *degraded.values())
    slow = pl.any_horizontal(failed, *high.values()) & ~above
    ranked = zip(labels(analysis), (d0, d1, *degraded.values(), muted, d3, slow), strict=False)
    return trials.with_columns(
        d0.alias(D0),
        d1.alias(D1),
        *((worse[delta] & above).alias(d2(delta)) for delta in analysis.delta),
        *(noisy[delta].alias(below_noise(delta)) for delta in analysis.delta),
        d3.alias(D3),
        slow.alias(SLOW),
        (d0 | d1).alias(DIVERGED),
        (d0 | d1 | degraded[analysis.delta[-1]]).alias(UNSTABLE),
        (best > bigram - analysis.failed_margin).alias(SHORT_BUDGET),
        pl.coalesce(
            *(pl.when(flag).then(pl.lit(label)) for label, flag in ranked), pl.lit("stable")
        ).alias(OUTCOME),
    )
