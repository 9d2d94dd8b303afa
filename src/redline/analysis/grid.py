"""Which trials a study or a foreign sweep expects, what is missing, and its grid of learning rates.

"Missing" is a set difference between the expected trials and the finished ones, never a count.
"""

from collections.abc import Collection, Sequence
from itertools import pairwise
from math import log10

import polars as pl

from redline.analysis.comparable import (
    CONTROL,
    DEPTH_KEY,
    PEAK_LR,
    SEED,
    TRIAL_KEY,
    setting_fields,
    setting_name,
)
from redline.config.analysis import SAME_LR
from redline.store.schema import Column

LOG_UNIFORM = 0.1


def expected_trials(planned: pl.DataFrame, outcomes: pl.DataFrame) -> pl.DataFrame:
    """The planned trials with `control`, named as the finished ones name their settings.

    A trial that has not finished has no token hash yet: it takes the setting of its siblings.
    """
    setting = setting_fields(planned, hashes=False)
    named = planned.join(
        outcomes.select(Column.TRIAL_ID, CONTROL), on=Column.TRIAL_ID, how="left"
    ).with_columns(
        pl.coalesce(
            CONTROL,
            pl.col(CONTROL).drop_nulls().first().over(setting),
            setting_name(planned, setting),
        )
    )
    # A table of another tool can hold an unfinished trial twice: it is missing once.
    return named.select(Column.TRIAL_ID, *TRIAL_KEY).unique(TRIAL_KEY, maintain_order=True)


def full_product(expected: pl.DataFrame) -> pl.DataFrame:
    """Every combination of arm, peak LR and seed that a depth of a sweep without a plan has."""
    every = expected.select(DEPTH_KEY).unique()
    for axis in (Column.ARM, PEAK_LR, SEED):
        every = every.join(expected.select(*DEPTH_KEY, axis).unique(), on=list(DEPTH_KEY))
    return every.join(expected, on=list(TRIAL_KEY), how="left").sort(TRIAL_KEY)


def missing_trials(expected: pl.DataFrame, outcomes: pl.DataFrame) -> pl.DataFrame:
    """The expected trials without a result."""
    return expected.join(outcomes, on=list(TRIAL_KEY), how="anti").sort(TRIAL_KEY)


def is_log_uniform(rates: Sequence[float]) -> bool:
    """Whether the steps of an ascending grid agree within 10 % in log10."""
    steps = [log10(b / a) for a, b in pairwise(rates)]
    return not steps or max(steps) <= (1 + LOG_UNIFORM) * min(steps)


def matching(rates: Collection[float], points: Sequence[float]) -> list[float] | None:
    """The rates that match `points` one by one; None if a point has none."""
    found = [[r for r in rates if abs(log10(r / p)) <= SAME_LR] for p in points]
    return [near[0] for near in found] if all(found) else None
