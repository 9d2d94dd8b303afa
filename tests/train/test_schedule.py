"""The learning rate of every step."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.train.schedule import lr


def schedule(n_step, warmup, peak=1.0, min_lr=0.0):
    train = SimpleNamespace(peak_lr=peak, warmup_step=warmup, n_step=n_step, min_lr=min_lr)
    return [lr(train, step) for step in range(1, n_step + 1)]


def test_case_t01_the_first_update_has_a_learning_rate():
    """nanoGPT#443: warm-up started at 0, so the first update did nothing and was paid for."""
    assert schedule(10, 4, min_lr=0.1)[:5] == pytest.approx(
        [0.25, 0.5, 0.75, 1.0, 0.9397], abs=1e-4
    )


@given(
    n_step=st.integers(1, 50),
    warmup=st.integers(1, 50),
    peak=st.floats(1e-6, 10),
    floor=st.floats(0, 1),
)
def test_case_t02_the_largest_value_is_the_peak_and_the_last_is_the_floor(
    n_step, warmup, peak, floor
):
    """torchtitan#1284: two +1 corrections, and the swept 'LR' was never reached."""
    warmup = min(warmup, n_step)
    values = schedule(n_step, warmup, peak, floor * peak)
    assert max(values) == peak == values[warmup - 1]
    assert all(0 < value <= peak for value in values[: n_step - 1])
    assert values[-1] == pytest.approx(floor * peak if n_step > warmup else peak)


def test_case_t05_the_schedule_is_a_pure_function_of_the_step(make_trial):
    """pytorch#171515: chained schedulers restarted after a resume; a closed form cannot."""
    train = make_trial(train__n_step=30).train
    forwards = [lr(train, step) for step in range(1, 31)]
    backwards = [lr(train, step) for step in range(30, 0, -1)]
    assert forwards == backwards[::-1]


def test_it_reproduces_the_learning_rates_of_nanogpt():
    """Warm-up 10 of 60 steps, peak 0.01, floor 0.001: a recorded nanoGPT run."""
    values = schedule(60, 10, 0.01, 0.001)
    expected = {1: 0.001, 10: 0.01, 11: 0.00999112, 20: 0.00914058, 57: 0.00107971, 60: 0.001}
    assert {k: values[k - 1] for k in expected} == pytest.approx(expected, abs=1e-8)
