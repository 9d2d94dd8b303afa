import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from redline.analysis.isotonic import rising

VALUES = st.lists(st.floats(-5, 5), min_size=1, max_size=12)


@given(VALUES, st.data())
def test_it_is_the_regression_of_scipy(values, data):
    weights = data.draw(st.lists(st.integers(1, 9), min_size=len(values), max_size=len(values)))
    expected = isotonic_regression(values, weights=weights).x
    assert rising(values, weights) == pytest.approx(expected, abs=1e-12)


@given(VALUES)
def test_a_curve_that_rises_is_left_as_it_is(values):
    assert list(rising(sorted(values))) == sorted(values)
    assert (np.diff(rising(values)) >= -1e-12).all()
