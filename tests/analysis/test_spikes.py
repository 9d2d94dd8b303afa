import numpy as np
import polars as pl
import pytest

from redline.analysis.spikes import rebounded, spike_steps, spikes, warmup_steps

NAN, INF = float("nan"), float("inf")
# Mean 2, population sd 0.1: a value spikes above 2.6 (2.602 with the sample sd).
CALM = [1.9, 2.1] * 64
FLAT = [1.0] * 200


def score(trials, table):
    return spikes(trials, table).row(0, named=True)


def steps(loss, grad_norm=None):
    grad_norm = FLAT[: len(loss)] if grad_norm is None else grad_norm
    return spike_steps(np.array(loss), np.array(grad_norm))


def test_a_spike_exceeds_six_sd_of_the_128_values_before_it():
    scored, spiked = steps([*CALM, 2.59, 2.5])
    assert scored.sum() == 2
    assert not spiked.any()
    assert steps([*CALM, 2.601])[1].tolist() == [False] * 128 + [True]


def test_the_current_value_is_no_part_of_its_own_window():
    # With itself in the window, no value can lie above sqrt(128) < 12 sd; without, 100 sd are seen.
    assert steps([*CALM, 12.0])[1][-1]


def test_a_flat_window_scores_nothing():
    scored, spiked = steps([1.0] * 128 + [9.0])
    assert not scored.any()
    assert not spiked.any()


def test_the_gradient_norm_alone_makes_a_spike():
    scored, spiked = steps([1.0] * 129, [*CALM, 5.0])
    assert scored.sum() == spiked.sum() == 1


@pytest.mark.parametrize("value", [NAN, INF])
def test_a_non_finite_value_is_a_spike_and_spoils_no_other_step(value):
    scored, spiked = steps([*CALM, value, 2.0], [*CALM, 2.0, 9.0])
    assert scored[128:].tolist() == [True, True]
    assert spiked[128:].tolist() == [True, True]


def test_the_score_counts_steps_after_the_warm_up_only(sweep, series):
    # 40 wild warm-up steps, 128 to fill the window, then 2 scored steps of which one spikes.
    loss = [50.0, 0.0] * 20 + [*CALM, 2.0, 3.0]
    row = score(sweep({("off", 0.01): [2.0]}), series("off-2-0.01-0", loss=loss))
    assert row["spike_score"] == 0.5
    assert row["first_spike_step"] == 170


def test_a_trial_with_no_scored_step_has_no_score(sweep, series):
    row = score(sweep({("off", 0.01): [2.0]}), series("off-2-0.01-0", loss=CALM))
    assert row["spike_score"] is None


def test_case_p07_the_precursor_stands_beside_the_spike(sweep, series):
    """P07 (marin-community/marin#1368): update norms doubled three steps before the loss spiked.

    The first spike is found no later than the loss jump, and the update norm before it is kept.
    """
    loss = CALM + CALM[:122] + [4.0, 4.0]
    update = [0.01] * 249 + [0.02] * 3
    table = series("off-2-0.01-0", loss=loss, update_norm=update)
    row = score(sweep({("off", 0.01): [2.0]}), table)
    assert row["first_spike_step"] == 251
    before = table.filter(pl.col("step").is_between(248, 251))["update_norm"]
    assert before.to_list() == [0.01, 0.01, 0.02, 0.02]


def test_a_rebound_is_half_a_nat_of_a_mean_over_16_steps():
    assert not rebounded(np.array([2.0] * 50 + [2.5] * 50))
    assert rebounded(np.array([2.0] * 50 + [2.51] * 50))
    # One step of 9.9 lifts the mean of 16 by 7.9 / 16 = 0.49 only.
    assert not rebounded(np.array([2.0] * 50 + [9.9] + [2.0] * 50))


def test_a_rebound_is_measured_from_the_minimum_and_not_the_start():
    assert rebounded(np.concatenate([np.linspace(5, 2, 100), [3.0] * 30]))


def test_the_warm_up_hides_its_own_rebound(sweep, series):
    loss = [1.0] * 20 + [5.0] * 20 + [2.0] * 60
    assert not score(sweep({("off", 0.01): [2.0]}), series("off-2-0.01-0", loss=loss))["rebounded"]


def test_a_nan_does_not_hide_a_later_rebound():
    assert rebounded(np.array([2.0] * 30 + [NAN] + [4.0] * 30))


def test_warm_up_steps_are_those_of_the_trial(trial, row, frame):
    # 0.1 * 25 = 2.5 rounds to the even 2, and 0.001 * 25 to at least one.
    changes = [{"train__n_step": 25}, {"train__n_step": 25, "train__warmup_fraction": 0.001}, {}]
    trials = frame([row(seed=i, **change) for i, change in enumerate(changes)])
    expected = [trial(**change).train.warmup_step for change in changes]
    assert trials.select(warmup_steps()).to_series().to_list() == expected == [2, 1, 40]
