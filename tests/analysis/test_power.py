import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.power import TTestPower

from redline.analysis.power import MAX_SEEDS, in_words, seeds_needed


@pytest.mark.parametrize(("mean", "sd", "n"), [(0.2, 0.05, 3), (0.11, 0.05, 6), (0.02, 0.08, 10)])
def test_the_number_is_that_of_statsmodels(mean, sd, n):
    """For 80 % power of a one-sided test, with the upper 80 % limit of the sd."""
    high_sd = sd * math.sqrt((n - 1) / stats.chi2.ppf(0.2, n - 1))
    expected = TTestPower().solve_power(
        abs(mean - 0.1) / high_sd, alpha=0.025, power=0.8, alternative="larger"
    )
    assert seeds_needed(mean, sd, n, 0.1) == math.ceil(expected)


def test_a_mean_on_its_bound_is_never_decided():
    assert seeds_needed(0.1, 0.05, 6, 0.1) is None
    assert in_words(None) == f"more than {MAX_SEEDS} seeds"


def test_a_clear_mean_needs_the_fewest_seeds_that_decide():
    assert seeds_needed(10.0, 0.01, 3, 0.1) == 3


@pytest.mark.parametrize(("sd", "n"), [(0.0, 5), (0.1, 1)])
def test_without_a_spread_there_is_nothing_to_reckon_with(sd, n):
    assert seeds_needed(1.0, sd, n, 0.0) is None


@given(st.floats(0.02, 1), st.floats(0.01, 0.5), st.integers(2, 20), st.floats(1.01, 3))
def test_more_spread_never_needs_fewer_seeds(gap, sd, n, factor):
    few, many = (seeds_needed(gap, spread, n, 0.0) for spread in (sd, factor * sd))
    assert (few or MAX_SEEDS + 1) <= (many or MAX_SEEDS + 1)
