"""One row a cell: what the finished trials of an arm at one depth and peak LR measured."""

import polars as pl

from redline.analysis.comparable import CELL_KEY, N_LAYER, SEED
from redline.analysis.headline import (
    EARLY_MAX_LOGIT,
    MAX_OUTLIER_RATIO,
    MIN_ENTROPY,
    MIN_ENTROPY_NORMALISED,
    RUNNING_MAX_LOGIT,
)
from redline.analysis.outcome import (
    BEST_LOSS,
    CAPPED_LOSS,
    D0,
    DIVERGED,
    OUTCOME,
    SHORT_BUDGET,
    UNSTABLE,
    below_noise,
    labels,
)
from redline.analysis.spikes import SPIKE_SCORE
from redline.config.analysis import Analysis
from redline.store.schema import Column

MEAN_LOSS, LOSS_SD = "mean_loss", "loss_sd"
N_FINISHED, N_EXPECTED = "n_finished", "n_expected"
N_D0, N_DIVERGED, N_UNSTABLE = "n_d0", "n_diverged", "n_unstable"
N_NEVER_BEGAN = "n_never_began"

LOW, HIGH = "_low", "_high"
"""Suffixes of the ends of a spread: mean and one standard deviation, or lowest and highest seed."""

MEDIANS = (
    EARLY_MAX_LOGIT,
    RUNNING_MAX_LOGIT,
    MIN_ENTROPY,
    MIN_ENTROPY_NORMALISED,
    MAX_OUTLIER_RATIO,
    SPIKE_SCORE,
)


def cells(outcomes: pl.DataFrame, expected: pl.DataFrame, analysis: Analysis) -> pl.DataFrame:
    """One row for each (control, n_layer, arm, peak_lr), cells without a finished trial included.

    `outcomes` carry the headline measures, `expected` comes from `grid.expected_trials`.
    `mean_loss` counts a D0 as its initial loss, and `n_d0` says how often. Spreads are sample
    standard deviations over seeds, null for one seed; logits and the like are medians over seeds.
    """
    measured = outcomes.group_by(CELL_KEY).agg(
        pl.len().alias(N_FINISHED),
        pl.col(CAPPED_LOSS).mean().alias(MEAN_LOSS),
        pl.col(CAPPED_LOSS).std().alias(LOSS_SD),
        pl.col(D0).sum().alias(N_D0),
        pl.col(DIVERGED).sum().alias(N_DIVERGED),
        pl.col(UNSTABLE).sum().alias(N_UNSTABLE),
        pl.col(CAPPED_LOSS).is_null().sum().alias(N_NEVER_BEGAN),
        pl.col(SHORT_BUDGET).any(),
        pl.col(BEST_LOSS, Column.BIGRAM_LOSS).first(),
        *(pl.col(below_noise(delta)).any() for delta in analysis.delta),
        pl.col(MEDIANS).median(),
        pl.col(MEDIANS).min().name.suffix(LOW),
        pl.col(MEDIANS).nan_max().name.suffix(HIGH),
        *((pl.col(OUTCOME) == label).sum().alias(f"n_{label}") for label in labels(analysis)),
    )
    seeds = expected.group_by(CELL_KEY).agg(pl.col(SEED).n_unique().alias(N_EXPECTED))
    table = seeds.join(measured, on=CELL_KEY, how="full", coalesce=True).with_columns(
        (pl.col(MEAN_LOSS) - pl.col(LOSS_SD)).alias(f"{MEAN_LOSS}{LOW}"),
        (pl.col(MEAN_LOSS) + pl.col(LOSS_SD)).alias(f"{MEAN_LOSS}{HIGH}"),
    )
    counts = [name for name in table.columns if name.startswith("n_") and name != N_LAYER]
    return table.with_columns(pl.col(counts).fill_null(0)).sort(CELL_KEY)
