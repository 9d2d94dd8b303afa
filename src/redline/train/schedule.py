"""The learning rate of every update: a pure function of the step."""

import math

from redline.config.trial import Train


def lr(train: Train, step: int) -> float:
    """Learning rate of update `step` (1-based): linear warm-up, then cosine.

    The peak is reached exactly at step `warmup_step`, `min_lr` at the last step. A schedule of
    one step is its peak.
    """
    peak, warmup = train.peak_lr, train.warmup_step
    if step <= warmup:
        return peak * (step / warmup)
    done = (step - warmup) / (train.n_step - warmup)
    fallen = 0.5 * (1 - math.cos(math.pi * done))
    # Written as a fall from the peak, so that no rounding lifts a value above it.
    return peak - fallen * (peak - train.min_lr)
