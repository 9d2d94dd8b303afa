"""The losses of a sweep by arm, peak LR and seed, for what is computed seed by seed."""

import polars as pl

from redline.analysis.comparable import ARM_KEY, PEAK_LR, SEED
from redline.analysis.outcome import CAPPED_LOSS

ArmKey = tuple[str, int, str]
"""Setting, depth and arm."""
Losses = dict[float, dict[int, float]]
"""Peak LR, ascending -> seed -> min(final loss, initial loss)."""


def losses_by_arm(outcomes: pl.DataFrame) -> dict[ArmKey, Losses]:
    """Every loss that there is; a trial that was non-finite before its first step has none."""
    found: dict[ArmKey, Losses] = {}
    rows = outcomes.drop_nulls(CAPPED_LOSS).sort([*ARM_KEY, PEAK_LR, SEED])
    for control, n_layer, arm, rate, seed, loss in rows.select(
        *ARM_KEY, PEAK_LR, SEED, CAPPED_LOSS
    ).iter_rows():
        found.setdefault((control, n_layer, arm), {}).setdefault(rate, {})[seed] = loss
    return found
