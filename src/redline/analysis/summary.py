"""The tables at the end of a run: one row a cell, and the paired difference of the arms."""

from collections.abc import Sequence

import polars as pl

from redline.analysis.comparable import (
    CELL_KEY,
    CONTROL,
    DEPTH_KEY,
    N_LAYER,
    PEAK_LR,
    SEED,
    SETTING,
    planned,
    refuse,
    setting_name,
)
from redline.analysis.headline import EARLY_MAX_LOGIT, MIN_ENTROPY, RUNNING_MAX_LOGIT
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
from redline.config.analysis import Analysis
from redline.config.trial import Trial
from redline.store.schema import Column

PLAIN = "off"

MEAN_LOSS, LOSS_SD = "mean_loss", "loss_sd"
N_FINISHED, N_EXPECTED = "n_finished", "n_expected"
N_D0, N_DIVERGED, N_UNSTABLE = "n_d0", "n_diverged", "n_unstable"
N_NEVER_BEGAN = "n_never_began"
MEAN_DELTA, DELTA_SD, MIN_DELTA, N_PAIR = "mean_delta", "delta_sd", "min_delta", "n_pair"


def cells(
    outcomes: pl.DataFrame,
    headlines: pl.DataFrame,
    expected: Sequence[tuple[str, Trial]],
    analysis: Analysis,
) -> pl.DataFrame:
    """One row for each (control, n_layer, arm, peak_lr), cells without a finished trial included.

    `mean_loss` counts a D0 as its initial loss, and `n_d0` says how often. Spreads are sample
    standard deviations over seeds, null for one seed; logits and entropy are medians over seeds.
    """
    finished = outcomes.join(headlines, on=Column.TRIAL_ID, how="left").group_by(CELL_KEY)
    measured = finished.agg(
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
        pl.col(EARLY_MAX_LOGIT, RUNNING_MAX_LOGIT, MIN_ENTROPY).median(),
        *((pl.col(OUTCOME) == label).sum().alias(f"n_{label}") for label in labels(analysis)),
    )
    table = _expected_seeds(outcomes, expected).join(
        measured, on=CELL_KEY, how="full", coalesce=True
    )
    counts = [name for name in table.columns if name.startswith("n_") and name != N_LAYER]
    return table.with_columns(pl.col(counts).fill_null(0)).sort(CELL_KEY)


def _expected_seeds(outcomes: pl.DataFrame, expected: Sequence[tuple[str, Trial]]) -> pl.DataFrame:
    # A trial that has not finished has no token hash yet: it takes the setting of its siblings.
    rows = planned(expected)
    rows = rows.join(
        outcomes.select(Column.TRIAL_ID, CONTROL), on=Column.TRIAL_ID, how="left"
    ).with_columns(
        pl.coalesce(
            CONTROL,
            pl.col(CONTROL).drop_nulls().first().over(SETTING),
            setting_name(rows, SETTING),
        )
    )
    return rows.group_by(CELL_KEY).agg(pl.col(SEED).n_unique().alias(N_EXPECTED))


def paired_deltas(outcomes: pl.DataFrame) -> pl.DataFrame:
    """Per (control, n_layer, arm, peak_lr): loss of the plain arm minus that of the arm.

    Positive: the arm helps. Only seeds that finished in both count, a diverged one at its initial
    loss. `min_delta` is the smallest over the seeds.

    Raises:
        UserError: two trials of one pair read other batches or were evaluated on other tokens.
    """
    keys = [*DEPTH_KEY, PEAK_LR, SEED]
    read = [name for name in (Column.BATCH_SHA256, Column.EVAL_SHA256) if name in outcomes.columns]
    losses = outcomes.select(*keys, Column.TRIAL_ID, Column.ARM, CAPPED_LOSS, *read)
    plain = losses.filter(pl.col(Column.ARM) == PLAIN).drop(Column.ARM)
    other = losses.filter(pl.col(Column.ARM) != PLAIN)
    delta = pl.col(f"{CAPPED_LOSS}_{PLAIN}") - pl.col(CAPPED_LOSS)
    pairs = other.join(plain, on=keys, suffix=f"_{PLAIN}")
    for name in read:
        refuse(pairs.filter(pl.col(name) != pl.col(f"{name}_{PLAIN}")), f"a pair differs in {name}")
    return (
        pairs.group_by(CELL_KEY)
        .agg(
            delta.count().alias(N_PAIR),
            delta.mean().alias(MEAN_DELTA),
            delta.std().alias(DELTA_SD),
            delta.min().alias(MIN_DELTA),
        )
        .sort(CELL_KEY)
    )
