"""t intervals and one-sided t tests over seeds (protocol section 9), and what they cannot say."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, nan, sqrt
from typing import Any, cast

import numpy as np
import polars as pl
from scipy import special

LEVEL = 0.95
ALPHA = (1 - LEVEL) / 2
"""Level of the one-sided tests: a limit of the two-sided 95 % interval passes the margin."""

MIN_SEEDS = 3
"""With one seed there is no spread; with two, a verdict would rest on one degree of freedom."""
MANY_SEEDS = 10
"""From here on ED10 and a seed bootstrap say something (protocol, sections 7 and 9)."""

FLAT = 1e-12


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
    n = len(values)
    if n == 0:
        return Mean(0, None, None, None, None)
    mean = fsum(values) / n
    if n == 1:
        return Mean(1, mean, None, None, None)
    if _is_flat(values):
        return Mean(n, mean, 0.0, None, None)
    sd = _sd(values, mean)
    half = float(t_quantile(1 - ALPHA, n - 1)) * sd / sqrt(n)
    return Mean(n, mean, sd, mean - half, mean + half)


def p_greater(values: Sequence[float], bound: float) -> float:
    """One-sided p of `mean > bound`; NaN where the values give no interval."""
    n = len(values)
    if n < 2 or _is_flat(values):
        return nan
    mean = fsum(values) / n
    t = (mean - bound) / (_sd(values, mean) / sqrt(n))
    return float(special.stdtr(n - 1, -t))


def _sd(values: Sequence[float], mean: float) -> float:
    # A handful of seeds: numpy's overhead would be most of the analysis of a large table.
    return sqrt(fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def t_quantile(q: float, df: Any) -> Any:
    """The q quantile of Student's t with `df` degrees of freedom, a number or an array."""
    return cast("Any", special.stdtrit(df, q))


def summarised(name: str) -> tuple[pl.Expr, ...]:
    """For an aggregation of seeds: `_n`, `_mean`, `_sd` and `_span` of a column, nulls left out."""
    values = pl.col(name).drop_nulls()
    return (
        values.len().cast(pl.Int64).alias("_n"),
        values.mean().alias("_mean"),
        values.std().alias("_sd"),
        (
            values.max() - values.min() <= FLAT * pl.max_horizontal(pl.lit(1.0), values.abs().max())
        ).alias("_flat"),
    )


def with_interval(frame: pl.DataFrame, lower: str, upper: str, margin: str) -> pl.DataFrame:
    """Add the limits of `Mean` to a frame that `summarised` made, and the margin that it supports.

    The margin is the smallest that the data rule out: |mean| + t(.95, n-1) s / sqrt(n).
    """
    n = frame["_n"].to_numpy()
    with np.errstate(invalid="ignore"):
        df = np.maximum(n - 1, 1)
        wide, narrow = t_quantile(1 - ALPHA, df), t_quantile(LEVEL, df)
    given = (pl.col("_n") > 1) & ~pl.col("_flat")
    error = pl.col("_sd") / pl.col("_n").cast(pl.Float64).sqrt()
    half, short = pl.Series(wide, dtype=pl.Float64) * error, pl.Series(narrow) * error
    return frame.with_columns(
        pl.when(given).then(pl.col("_mean") - half).alias(lower),
        pl.when(given).then(pl.col("_mean") + half).alias(upper),
        pl.when(given).then(pl.col("_mean").abs() + short).alias(margin),
    )


def _is_flat(values: Sequence[float]) -> bool:
    """Whether all values are the same number, up to the rounding of their differences."""
    low, high = min(values), max(values)
    return high - low <= FLAT * max(1.0, abs(low), abs(high))
