import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from redline.analysis.posterior import (
    SIGMA_DF,
    SIGMA_SCALE,
    interval_log_mass,
    posterior,
    ragged,
    sigma_grid,
)

GRID = np.arange(-3.5, -0.01, 0.25)
LOW, HIGH = GRID[:1] - 0.25, GRID[-1:] + 0.25


def fit(lower, upper, scale=SIGMA_SCALE):
    return posterior(np.array([lower]), np.array([upper]), LOW, HIGH, scale)


def seen_on_the_grid(thresholds):
    """The interval of the grid into which each threshold falls, open beyond the grid."""
    at = np.searchsorted(GRID, thresholds)
    lower = np.where(at > 0, GRID[np.maximum(at - 1, 0)], -np.inf)
    return lower, np.where(at < len(GRID), GRID[np.minimum(at, len(GRID) - 1)], np.inf)


@given(st.floats(-30, 30), st.floats(0.001, 20))
def test_the_mass_of_an_interval_is_that_of_scipy(start, width):
    a, b = np.array([start]), np.array([start + width])
    side = stats.norm.sf if start > 0 else stats.norm.cdf
    expected = abs(side(b[0]) - side(a[0]))
    if expected > 1e-280:
        assert interval_log_mass(a, b)[0] == pytest.approx(math.log(expected), abs=1e-6)


def test_the_mass_of_an_open_interval_and_of_all():
    one = np.array([0.0])
    assert interval_log_mass(one, one + np.inf)[0] == pytest.approx(math.log(0.5))
    assert interval_log_mass(one - np.inf, one)[0] == pytest.approx(math.log(0.5))
    assert interval_log_mass(one - np.inf, one + np.inf)[0] == pytest.approx(0.0)


def test_the_likelihood_is_that_of_scipys_censored_fit():
    """With one fixed sigma the posterior of mu peaks where scipy's maximum likelihood stands."""
    lower, upper = [-2.0, -1.75, -1.75, -1.5], [-1.75, -1.5, -1.5, -1.25]
    data = stats.CensoredData(interval=list(zip(lower, upper, strict=True)))
    mu, sigma = stats.norm.fit(data)
    around = np.linspace(mu - 0.2, mu + 0.2, 401)
    mass = [
        interval_log_mass((np.array(lower) - m) / sigma, (np.array(upper) - m) / sigma).sum()
        for m in around
    ]
    assert around[int(np.argmax(mass))] == pytest.approx(mu, abs=2e-3)


def test_the_points_of_sigma_stand_for_the_prior():
    sigma, log_mass = sigma_grid(SIGMA_SCALE, 2000)
    cumulative = np.cumsum(np.exp(log_mass))
    assert cumulative[-1] == pytest.approx(1.0)
    for q in (0.1, 0.5, 0.9):
        expected = SIGMA_SCALE * stats.t.ppf(0.5 + q / 2, SIGMA_DF)
        assert np.interp(q, cumulative, sigma) == pytest.approx(expected, rel=0.05)


def test_the_posterior_by_a_sum_of_its_own():
    """Three seeds on a coarse grid against a sum written out here."""
    lower, upper = [-2.0, -2.0, -1.75], [-1.75, -1.75, -1.5]
    mu = np.linspace(LOW[0], HIGH[0], 4001)
    weight = np.zeros_like(mu)
    for sigma, log_mass in zip(*sigma_grid(SIGMA_SCALE, 400), strict=True):
        part = np.full_like(mu, np.exp(log_mass))
        for a, b in zip(lower, upper, strict=True):
            part *= stats.norm.cdf((b - mu) / sigma) - stats.norm.cdf((a - mu) / sigma)
        weight += part
    cumulative = np.cumsum(weight) / weight.sum()
    found = fit(lower, upper)
    for value, q in ((found.median, 0.5), (found.lower, 0.025), (found.upper, 0.975)):
        assert value[0] == pytest.approx(np.interp(q, cumulative, mu), abs=0.01)


def test_more_seeds_narrow_the_interval_and_a_wider_prior_widens_it():
    few, many = fit([-2.0] * 2, [-1.75] * 2), fit([-2.0] * 8, [-1.75] * 8)
    assert many.upper - many.lower < few.upper - few.lower
    wide = fit([-2.0] * 2, [-1.75] * 2, scale=2 * SIGMA_SCALE)
    assert wide.upper - wide.lower > few.upper - few.lower


def test_a_group_with_fewer_seeds_is_as_if_it_were_alone():
    both = posterior(
        ragged([[-2.0, -1.75], [-1.0]]),
        ragged([[-1.75, -1.5], [-0.75]]),
        np.repeat(LOW, 2),
        np.repeat(HIGH, 2),
    )
    alone = fit([-1.0], [-0.75])
    assert both.median[1] == pytest.approx(alone.median[0], abs=1e-12)
    assert both.upper[1] == pytest.approx(alone.upper[0], abs=1e-12)


def test_the_share_below_zero_is_one_half_where_the_evidence_is_symmetric():
    low, high = np.array([-2.0]), np.array([2.0])
    found = posterior(np.array([[-0.5, -0.5]]), np.array([[0.5, 0.5]]), low, high)
    assert found.p_not_positive[0] == pytest.approx(0.5, abs=1e-6)
    right = posterior(np.array([[0.5, 0.5]]), np.array([[1.0, 1.0]]), low, high)
    assert right.p_not_positive[0] < 0.05


@pytest.mark.parametrize("n_seed", [2, 3, 6, 10])
def test_planted_thresholds_are_covered(n_seed):
    """400 sweeps with a known mean threshold and a spread of 0.15 decade: 95 % hold it.

    The bound leaves room for 400 draws, a standard error of 1.1 %; the whole campaign is larger.
    """
    random = np.random.default_rng(n_seed)
    true = random.uniform(-2.8, -0.8, 400)
    lower, upper = seen_on_the_grid(true[:, None] + 0.15 * random.standard_normal((400, n_seed)))
    found = posterior(lower, upper, np.repeat(LOW, 400), np.repeat(HIGH, 400))
    covered = (found.lower <= true) & (true <= found.upper)
    assert covered.mean() > 0.92
