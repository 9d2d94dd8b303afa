from math import inf, log2, log10

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lifelines import LogNormalAFTFitter
from scipy import stats

from redline.analysis.slope import Crossing, crossing, page_trend, slope

GRID = np.arange(-3.5, -0.4, 0.25)


def seen(seed, n_layer, place, *, grid=GRID):
    """A crossing at `place` as the grid shows it."""
    at = int(np.searchsorted(grid, place))
    if at == 0:
        return Crossing(seed, n_layer, -inf, grid[0], None)
    if at == len(grid):
        return Crossing(seed, n_layer, grid[-1], inf, None)
    return Crossing(seed, n_layer, grid[at - 1], grid[at], float(place))


def planted(trend, *, n_seed=6, depths=(2, 4, 8), at_two=-1.4, sd=0.1, random=0):
    draw = np.random.default_rng(random)
    return [
        seen(seed, n, at_two + trend * log2(n / 2) + sd * draw.standard_normal())
        for seed in range(n_seed)
        for n in depths
    ]


def test_a_seed_crosses_where_its_isotonic_delta_passes_the_margin():
    found = crossing(0, 2, {1e-3: 0.0, 1e-2: 0.05, 1e-1: 0.15}, 0.1)
    assert (found.lower, found.upper) == pytest.approx((-2, -1))
    assert found.at == pytest.approx(-1.5)


def test_a_dip_is_averaged_before_the_crossing_is_read():
    """0.2 and 0.1 pool to 0.15: the curve passes 0.1 between 0.001 and 0.01."""
    found = crossing(0, 2, {1e-3: 0.0, 1e-2: 0.2, 1e-1: 0.1}, 0.1)
    assert found.at == pytest.approx(-3 + 0.1 / 0.15)


def test_beyond_the_grid_a_crossing_is_censored():
    never, at_once = ({1e-3: d, 1e-2: d} for d in (0.0, 0.5))
    assert crossing(0, 2, never, 0.1) == Crossing(0, 2, log10(1e-2), inf, None)
    assert crossing(0, 2, at_once, 0.1) == Crossing(0, 2, -inf, log10(1e-3), None)


def test_a_planted_trend_is_found_and_none_is_not():
    falling, flat = slope(planted(-0.25, n_seed=8)), slope(planted(0.0, n_seed=8))
    assert falling.found.upper < 0
    assert falling.found.lower < -0.25 < falling.found.upper
    assert falling.p < 0.01
    assert flat.found.lower < 0 < flat.found.upper
    assert flat.p > 0.05


def test_the_mean_is_that_of_least_squares_lines_and_its_interval_holds_their_t_interval():
    crossings = planted(-0.2, n_seed=5)
    x = np.log2([2, 4, 8])
    slopes = [
        np.polyfit(x, [one.at for one in crossings if one.seed == seed], 1)[0] for seed in range(5)
    ]
    found = slope(crossings)
    assert found.found.mean == pytest.approx(np.mean(slopes))
    lower, upper = stats.t.interval(0.95, 4, np.mean(slopes), stats.sem(slopes))
    assert found.found.lower <= lower + 1e-9
    assert found.found.upper >= upper - 1e-9
    assert found.p >= stats.ttest_1samp(slopes, 0, alternative="less").pvalue - 1e-12


def test_seeds_that_agree_on_what_the_grid_made_of_them_prove_nothing():
    """A jump lands at one place of its step in every seed: the slope is the grid's, not theirs.

    Both depths fail within a quarter of a decade, in neighbouring steps; no trend at all fits too.
    """
    grid = (-2.0, -1.75, -1.5)
    crossings = [
        one
        for seed in range(6)
        for one in (
            Crossing(seed, 2, grid[1], grid[2], -1.7 + 1e-3 * seed),
            Crossing(seed, 4, grid[0], grid[1], -1.95 + 2e-3 * seed),
        )
    ]
    found = slope(crossings)
    by_seed = [-0.25 + 1e-3 * seed for seed in range(6)]
    lower, upper = stats.t.interval(0.95, 5, np.mean(by_seed), stats.sem(by_seed))
    assert upper - lower < 0.01
    assert found.found.upper - found.found.lower > 0.1


def test_equal_slopes_in_all_seeds_have_the_interval_of_the_fit():
    crossings = [
        Crossing(seed, n, place - 0.1, place + 0.15, place)
        for seed in range(4)
        for n, place in ((2, -1.5), (4, -1.75))
    ]
    found = slope(crossings)
    assert found.found.lower < -0.25 < found.found.upper
    assert found.found.n == 4


def test_a_censored_crossing_is_fitted_by_intervals():
    crossings = planted(-0.25, n_seed=8, at_two=-0.45)
    assert any(one.at is None for one in crossings)
    found = slope(crossings)
    assert found.n_censored == sum(one.at is None for one in crossings)
    assert found.found.lower < -0.25 < found.found.upper


def test_the_fitted_line_is_that_of_lifelines():
    """With 300 seeds prior and likelihood agree: the slope of a log-normal AFT by intervals."""
    crossings = planted(-0.3, n_seed=300, at_two=-0.6)
    found = slope(crossings)
    assert found.n_censored > 0
    # lifelines takes positive times, and wants the log-normal's in natural logarithms.
    table = pd.DataFrame(
        {
            "lower": [10**one.lower if one.lower > -inf else 0.0 for one in crossings],
            "upper": [10**one.upper if one.upper < inf else np.inf for one in crossings],
            "x": [log2(one.n_layer) for one in crossings],
        }
    )
    fitter = LogNormalAFTFitter().fit_interval_censoring(table, "lower", "upper")
    expected = fitter.params_["mu_"]["x"] / np.log(10)
    error = fitter.standard_errors_["mu_"]["x"] / np.log(10)
    assert found.found.mean == pytest.approx(expected, abs=2e-3)
    assert found.found.upper - found.found.lower == pytest.approx(2 * 1.96 * error, rel=0.1)


@pytest.mark.parametrize(
    ("crossings", "why"),
    [
        ([], "no pair"),
        (planted(-0.2, depths=(2,)), "one depth"),
        (planted(-0.2, at_two=0.5), "more than half"),
    ],
)
def test_where_there_is_no_slope_it_is_said_why_and_what_it_needs(crossings, why):
    found = slope(crossings)
    assert found.found.mean is None
    assert found.p is None
    assert found.why.startswith(why)
    assert found.needs


def test_a_wider_prior_never_narrows_the_interval():
    crossings = planted(-0.2, n_seed=3, at_two=-0.5)
    assert slope(crossings).n_censored > 0
    narrow, wide = (slope(crossings, scale).found for scale in (0.075, 0.3))
    assert wide.upper - wide.lower > narrow.upper - narrow.lower


@given(st.floats(-1, 1), st.integers(0, 50))
def test_moving_every_crossing_along_leaves_the_slope(shift, random):
    crossings = planted(-0.2, n_seed=3, random=random)
    moved = [
        Crossing(c.seed, c.n_layer, c.lower + shift, c.upper + shift, c.at and c.at + shift)
        for c in crossings
    ]
    here, there = slope(crossings), slope(moved)
    assert there.found.mean == pytest.approx(here.found.mean, abs=1e-9)
    assert there.found.lower == pytest.approx(here.found.lower, abs=2e-3)


def test_pages_trend_is_the_largest_when_every_seed_falls():
    """Three seeds, ranks 3, 2, 1 against predicted 3, 2, 1: L = 3 x 14 = 42."""
    crossings = planted(-0.5, n_seed=3, sd=0.0)
    statistic, p, n = page_trend(crossings)
    assert (statistic, n) == (42, 3)
    assert p == pytest.approx(1 / 6**3)
    assert page_trend(planted(-0.5, depths=(2, 4))) is None
    assert page_trend(planted(-0.5, n_seed=1)) is None
