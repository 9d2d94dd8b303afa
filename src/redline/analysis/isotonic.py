"""The closest curve that never falls: how a noisy dose-response is read where it must rise."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression


def rising(values: Sequence[float], weights: Sequence[float] | None = None) -> NDArray[np.float64]:
    """Weighted least squares among the curves that never fall, in the order of `values`."""
    if all(a <= b for a, b in pairwise(values)):
        return np.array(values, dtype=np.float64)  # most curves rise already
    return isotonic_regression(values, weights=weights).x
