"""The probe measures of a trial that fit in one row (protocol section 5).

A measure belongs to one step. Where that step was not probed, or the trial ended before it, the
value is null: a neighbouring step is another measure.
"""

import polars as pl

from redline.analysis.spikes import WARMUP_STEP, warmup_steps
from redline.store.schema import Column

EARLY_MAX_LOGIT = "early_max_logit"
WARMUP_40_MAX_LOGIT = "warmup_40_max_logit"
WARMUP_MAX_LOGIT = "warmup_max_logit"
RUNNING_MAX_LOGIT = "running_max_logit"
FINAL_ENTROPY, MIN_ENTROPY = "final_entropy", "min_entropy"
FINAL_ENTROPY_NORMALISED = "final_entropy_normalised"
MIN_ENTROPY_NORMALISED = "min_entropy_normalised"
MAX_OUTLIER_RATIO, MAX_KURTOSIS = "max_outlier_ratio", "max_kurtosis"


def headlines(trials: pl.DataFrame, probes: pl.DataFrame) -> pl.DataFrame:
    """One row a trial: max logits of layer 0 at three steps, their maximum over all, and the rest.

    Entropies are of the layer with the lowest mean, at the last update and over all probed steps;
    outliers and kurtosis are the highest over layers and probed steps.
    """
    moments = trials.select(Column.TRIAL_ID, "n_step", warmup_steps())
    measured = probes.join(moments, on=Column.TRIAL_ID).group_by(Column.TRIAL_ID)
    return moments.select(Column.TRIAL_ID).join(
        measured.agg(
            _first_layer_logit((0.02 * pl.col("n_step")).ceil()).alias(EARLY_MAX_LOGIT),
            _first_layer_logit((0.4 * pl.col(WARMUP_STEP)).ceil()).alias(WARMUP_40_MAX_LOGIT),
            _first_layer_logit(pl.col(WARMUP_STEP)).alias(WARMUP_MAX_LOGIT),
            # NaN is larger than all numbers here, as in a sort: a lost logit is no small one.
            pl.col(Column.MAX_LOGIT).nan_max().alias(RUNNING_MAX_LOGIT),
            _at_last_update(Column.ENTROPY).alias(FINAL_ENTROPY),
            pl.col(Column.ENTROPY).min().alias(MIN_ENTROPY),
            _at_last_update(Column.ENTROPY_NORMALISED).alias(FINAL_ENTROPY_NORMALISED),
            pl.col(Column.ENTROPY_NORMALISED).min().alias(MIN_ENTROPY_NORMALISED),
            pl.col(Column.OUTLIER_RATIO).nan_max().alias(MAX_OUTLIER_RATIO),
            pl.col(Column.KURTOSIS_MAX).nan_max().alias(MAX_KURTOSIS),
        ),
        on=Column.TRIAL_ID,
        how="left",
        maintain_order="left",
    )


def _first_layer_logit(step: pl.Expr) -> pl.Expr:
    here = (pl.col(Column.LAYER) == 0) & (pl.col(Column.STEP) == step)
    return pl.col(Column.MAX_LOGIT).filter(here).first()


def _at_last_update(name: str) -> pl.Expr:
    return pl.col(name).filter(pl.col(Column.STEP) == pl.col("n_step")).min()
