"""Batches are a pure function of (seed, step)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.data.batches import Batches, evaluation_rows, window_order

TOKENS = np.arange(321, dtype=np.uint16)  # 20 windows of 16


@given(step=st.integers(1, 400), seed=st.integers(0, 2**62))
def test_a_row_is_a_window_and_its_targets(step, seed):
    rows = Batches(TOKENS, seed, batch_size=3, block_size=16)(step)
    assert rows.shape == (3, 17)
    assert (np.diff(rows, axis=1) == 1).all()
    assert (rows[:, 0] % 16 == 0).all()


def test_case_d13_an_epoch_visits_every_window_once_wherever_a_run_resumes():
    """streaming#437: after a resume the first batches came again, or the epoch was cut short."""
    straight = Batches(TOKENS, 7, batch_size=3, block_size=16)
    rows = [straight(step) for step in range(1, 61)]  # 180 windows: nine epochs
    resumed = Batches(TOKENS, 7, batch_size=3, block_size=16)
    for step in (41, 17, 60, 1):
        assert np.array_equal(resumed(step), rows[step - 1])
    starts = np.concatenate(rows)[:, 0].reshape(9, 20)
    assert all(sorted(epoch) == list(range(0, 320, 16)) for epoch in starts)
    assert len({tuple(epoch) for epoch in starts}) == 9


def test_the_order_of_windows_is_the_one_that_stored_trials_read():
    """numpy promises no stream for ever: an id must not come to mean another batch order."""
    message = "batch order moved: stored results cannot be repeated; pin numpy or raise SCHEMA"
    assert window_order(0, 0, 12).tolist() == [3, 7, 0, 10, 6, 11, 8, 4, 1, 5, 2, 9], message


def test_two_seeds_read_in_different_orders():
    a, b = (Batches(TOKENS, seed, 4, 16)(1) for seed in (0, 1))
    assert not np.array_equal(a, b)


@pytest.mark.parametrize("block_size", [16, 64])
def test_evaluation_covers_every_target_once(block_size):
    rows = evaluation_rows(TOKENS, block_size)
    assert np.array_equal(rows[:, 1:].ravel(), np.arange(1, 321))
