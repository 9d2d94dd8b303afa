from math import isnan, sqrt

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from redline.analysis.intervals import (
    ALPHA,
    Mean,
    mean_interval,
    p_greater,
    summarised,
    t_quantile,
    with_interval,
)

T_975_2 = 4.302653  # of a printed table: two degrees of freedom
T_95_2 = 2.919986

spread = st.lists(st.floats(-3, 3), min_size=2, max_size=8).filter(lambda x: np.ptp(x) > 1e-3)


def intervals_of(frame):
    groups = frame.group_by("cell", maintain_order=True).agg(*summarised("delta"))
    return with_interval(groups, "lower", "upper", "margin").rows(named=True)


def test_an_interval_by_hand():
    # Deviations from 0.2 are -0.1, 0 and 0.1: s = sqrt(0.02 / 2) = 0.1.
    found = mean_interval([0.1, 0.2, 0.3])
    assert (found.n, found.mean, found.sd) == (3, pytest.approx(0.2), pytest.approx(0.1))
    half = T_975_2 * 0.1 / sqrt(3)
    assert found.lower == pytest.approx(0.2 - half, abs=1e-6)
    assert found.upper == pytest.approx(0.2 + half, abs=1e-6)


@given(spread)
def test_an_interval_is_that_of_scipy(values):
    found = mean_interval(values)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (found.lower, found.upper) == pytest.approx(tuple(expected), rel=1e-9, abs=1e-12)


@given(spread, st.floats(-1, 1))
def test_a_one_sided_p_is_that_of_scipy(values, bound):
    expected = stats.ttest_1samp(values, bound, alternative="greater").pvalue
    assert p_greater(values, bound) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(spread, st.floats(-1, 1))
def test_the_lower_limit_passes_a_bound_where_the_one_sided_test_rejects(values, bound):
    found, p = mean_interval(values), p_greater(values, bound)
    assert (found.lower > bound) == (p < ALPHA) or p == pytest.approx(ALPHA, rel=1e-6)


def test_no_value_has_no_mean_and_one_value_has_no_spread():
    assert mean_interval([]) == Mean(0, None, None, None, None)
    assert mean_interval([0.4]) == Mean(1, 0.4, None, None, None)
    assert isnan(p_greater([0.4], 0.0))


@pytest.mark.parametrize("values", [[0.3, 0.3], [0.1 + 0.2, 0.3, 0.3], [0.0, 0.0, 0.0]])
def test_values_that_differ_by_rounding_alone_make_no_test_certain(values):
    found = mean_interval(values)
    assert (found.sd, found.lower, found.upper) == (0.0, None, None)
    assert isnan(p_greater(values, 0.1))


def test_a_small_but_real_spread_is_a_spread():
    assert mean_interval([0.3, 0.3 + 1e-9]).lower is not None


def test_two_seeds_have_an_interval_as_wide_as_one_degree_of_freedom_makes_it():
    # s = 0.2 / sqrt(2), t(.975, 1) = 12.7062: half = 12.7062 * 0.2 / 2.
    found = mean_interval([0.1, 0.3])
    assert found.upper - found.mean == pytest.approx(1.27062, abs=1e-5)


def test_a_quantile_is_that_of_a_printed_table():
    assert t_quantile(0.975, 2) == pytest.approx(T_975_2, abs=1e-6)
    assert t_quantile(0.95, 2) == pytest.approx(T_95_2, abs=1e-6)


def test_the_supported_margin_by_hand_is_narrower_than_the_interval():
    # |mean| + t(.95, n-1) s / sqrt(n), for a mean of -0.2 and s = 0.1.
    (row,) = intervals_of(pl.DataFrame({"cell": ["a"] * 3, "delta": [-0.1, -0.2, -0.3]}))
    assert row["margin"] == pytest.approx(0.2 + T_95_2 * 0.1 / sqrt(3), abs=1e-6)
    assert row["lower"] == pytest.approx(-0.2 - T_975_2 * 0.1 / sqrt(3), abs=1e-6)


@given(st.lists(st.lists(st.none() | st.floats(-3, 3), min_size=1, max_size=6), max_size=5))
def test_a_table_of_groups_has_the_interval_of_each_group(groups):
    """Nulls are no values; a group of one, of none and of equals has no limits."""
    rows = [(str(cell), value) for cell, of_cell in enumerate(groups) for value in of_cell]
    frame = pl.DataFrame(rows, {"cell": pl.String, "delta": pl.Float64}, orient="row")
    for row, values in zip(intervals_of(frame), groups, strict=True):
        one = mean_interval([value for value in values if value is not None])
        assert row["_n"] == one.n
        assert row["_mean"] == (None if one.mean is None else pytest.approx(one.mean, abs=1e-12))
        assert (row["lower"] is None) == (one.lower is None) == (row["margin"] is None)
        if one.lower is not None:
            limits = (row["lower"], row["upper"], row["_sd"])
            assert limits == pytest.approx((one.lower, one.upper, one.sd), abs=1e-9)
