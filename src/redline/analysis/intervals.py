"""t intervals and one-sided t tests over seeds (protocol section 9), and what they cannot say."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
from scipy import stats

LEVEL = 0.95
ALPHA = (1 - LEVEL) / 2
"""Level of the one-sided tests: a limit of the two-sided 95 % interval passes the margin."""

MIN_SEEDS = 3
"""With one seed there is no spread; with two, a verdict would rest on one degree of freedom."""


@dataclass(frozen=True)
class Mean:
    """The mean of n values and its 95 % t interval.

    The limits are null where the values cannot give any: one value, or values without any spread,
    which come from seeds that are no seeds or from rounding, and would make every test certain.
    """

    n: int
    mean: float | None
    sd: float | None
    lower: float | None
    upper: float | None


def mean_interval(values: Sequence[float]) -> Mean:
    """The mean of finite values over seeds with its t interval."""
    x = np.asarray(values, dtype=np.float64)
    n = len(x)
    if n == 0:
        return Mean(0, None, None, None, None)
    mean = float(x.mean())
    if n == 1:
        return Mean(1, mean, None, None, None)
    sd = float(x.std(ddof=1))
    if is_flat(x):
        return Mean(n, mean, 0.0, None, None)
    half = float(stats.t.ppf(1 - ALPHA, n - 1)) * sd / sqrt(n)
    return Mean(n, mean, sd, mean - half, mean + half)


def supported_margin(mean: Mean) -> float | None:
    """The smallest margin that the data support: |mean| + t(.95, n-1) s / sqrt(n)."""
    if mean.mean is None or mean.sd is None or mean.lower is None:
        return None
    return abs(mean.mean) + float(stats.t.ppf(0.95, mean.n - 1)) * mean.sd / sqrt(mean.n)


def p_greater(values: Sequence[float], bound: float) -> float:
    """One-sided p of `mean > bound`; NaN where the values give no interval."""
    x = np.asarray(values, dtype=np.float64)
    if len(x) < 2 or is_flat(x):
        return nan
    t = float(x.mean() - bound) / (float(x.std(ddof=1)) / sqrt(len(x)))
    return float(stats.t.sf(t, len(x) - 1))


def is_flat(values: np.ndarray) -> bool:
    """Whether all values are the same number, up to the rounding of their differences."""
    return bool(np.ptp(values) <= 1e-12 * max(1.0, float(np.abs(values).max())))
