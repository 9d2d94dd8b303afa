"""What the step-by-step series of a trial says: non-finite values, loss spikes, a rebound.

A non-finite value is the observation that Redline exists for. It is never skipped or replaced.
"""

import numpy as np
import polars as pl
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from redline.store.schema import Column

Floats = NDArray[np.float64]

SPIKE_SCORE, FIRST_SPIKE_STEP, REBOUNDED = "spike_score", "first_spike_step", "rebounded"
WARMUP_STEP = "warmup_step"

SPIKE_WINDOW = 128
SPIKE_SD = 6
FLAT_SD = 1e-10
REBOUND_WINDOW = 16
REBOUND_NAT = 0.5

REASONS = {
    Column.LOSS: "loss",
    Column.EVAL_LOSS: "loss",
    Column.GRAD_NORM: "grad_norm",
    Column.PARAM_NORM: "param_norm",
}


def first_non_finite(series: pl.DataFrame, probes: pl.DataFrame) -> pl.DataFrame:
    """Trial id, reason and step of the first non-finite value; no row where all are finite.

    A finite loss is no proof: gradients, parameters and logits count too (protocol section 6).
    """
    found = [_where_non_finite(series, name, reason) for name, reason in REASONS.items()]
    found.append(_where_non_finite(probes, Column.MAX_LOGIT, "logit"))
    # A stable sort keeps the loss as the reason when several measures go in the same step.
    return (
        pl.concat(found)
        .sort(Column.NON_FINITE_STEP, maintain_order=True)
        .group_by(Column.TRIAL_ID, maintain_order=True)
        .first()
    )


def _where_non_finite(frame: pl.DataFrame, name: str, reason: str) -> pl.DataFrame:
    return frame.filter(~pl.col(name).is_finite()).select(
        Column.TRIAL_ID,
        pl.col(Column.STEP).cast(pl.Int64).alias(Column.NON_FINITE_STEP),
        pl.lit(reason).alias(Column.NON_FINITE),
    )


def warmup_steps() -> pl.Expr:
    """Updates until the peak LR, as `Train.warmup_step` counts them (half to even)."""
    steps = (pl.col("warmup_fraction") * pl.col("n_step")).round(mode="half_to_even")
    return steps.clip(lower_bound=1).cast(pl.Int64).alias(WARMUP_STEP)


def spikes(trials: pl.DataFrame, series: pl.DataFrame) -> pl.DataFrame:
    """Per trial with a series: spike score, first spike, and whether the loss rebounded."""
    warmup = trials.select(Column.TRIAL_ID, warmup_steps())
    after = (
        series.join(warmup, on=Column.TRIAL_ID)
        .filter(pl.col(Column.STEP) > pl.col(WARMUP_STEP))
        .sort(Column.TRIAL_ID, Column.STEP)
    )
    rows: list[tuple[object, float | None, int | None, bool]] = []
    for (trial_id,), trial in after.group_by(Column.TRIAL_ID, maintain_order=True):
        loss = trial[Column.LOSS].to_numpy().astype(np.float64)
        grad_norm = trial[Column.GRAD_NORM].to_numpy().astype(np.float64)
        scored, spiked = spike_steps(loss, grad_norm)
        first = int(trial[Column.STEP][int(spiked.argmax())]) if spiked.any() else None
        score = float(spiked.sum() / scored.sum()) if scored.any() else None
        rows.append((trial_id, score, first, rebounded(loss)))
    return pl.DataFrame(
        rows,
        schema={
            Column.TRIAL_ID: pl.String,
            SPIKE_SCORE: pl.Float64,
            FIRST_SPIKE_STEP: pl.Int64,
            REBOUNDED: pl.Boolean,
        },
        orient="row",
    )


def spike_steps(loss: Floats, grad_norm: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which steps after warm-up are scored, and which of those spike (protocol section 5)."""
    (loss_scored, loss_spiked), (grad_scored, grad_spiked) = _exceeds(loss), _exceeds(grad_norm)
    return loss_scored | grad_scored, loss_spiked | grad_spiked


def _exceeds(values: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    scored = np.zeros(len(values), dtype=np.bool_)
    spiked = scored.copy()
    if len(values) <= SPIKE_WINDOW:
        return scored, spiked
    before = sliding_window_view(values[:-1], SPIKE_WINDOW)
    with np.errstate(invalid="ignore", over="ignore"):
        mean, sd = before.mean(axis=1), before.std(axis=1)
        usable = np.isfinite(mean) & np.isfinite(sd) & (sd >= FLAT_SD)
        now = values[SPIKE_WINDOW:]
        # NaN compares as False; a value beyond all numbers exceeds every line.
        high = (now > mean + SPIKE_SD * sd) | ~np.isfinite(now)
    scored[SPIKE_WINDOW:] = usable
    spiked[SPIKE_WINDOW:] = usable & high
    return scored, spiked


def rebounded(loss: Floats) -> bool:
    """Whether the mean of 16 steps after warm-up rose 0.5 nat above its running minimum."""
    if len(loss) < REBOUND_WINDOW:
        return False
    with np.errstate(invalid="ignore", over="ignore"):
        mean = sliding_window_view(loss, REBOUND_WINDOW).mean(axis=1)
        return bool(np.any(mean - np.fmin.accumulate(mean) > REBOUND_NAT))
