import pytest
from fakes import make_store

from redline.config.cost import cost
from redline.execute.speed import seconds_per_flop
from redline.files import read_json, write_json
from redline.store import attempts
from redline.store.schema import Status


def attempt(store, trial_id, first_step, elapsed_s):
    made = attempts.begin(store, trial_id, "s", {})
    attempts.end(made, Status.FINISHED, first_step=first_step, last_step=20)
    write_json(made.record, read_json(made.record) | {"elapsed_s": elapsed_s})


def test_the_speed_is_that_of_whole_attempts_and_not_of_resumed_ones(tmp_path):
    store, ids = make_store(tmp_path, seeds=range(3))
    for trial_id, first_step, elapsed_s in zip(ids, (0, 0, 10), (4.0, 6.0, 1.0), strict=True):
        attempt(store, trial_id, first_step, elapsed_s)
    trials = {trial_id: store.read_trial(trial_id)[0] for trial_id in ids}
    flops = cost(trials[ids[0]]).flops
    assert seconds_per_flop(store, trials) == pytest.approx(5.0 / flops)


def test_without_a_whole_attempt_the_speed_is_not_known(tmp_path):
    store, ids = make_store(tmp_path, seeds=[0])
    trials = {trial_id: store.read_trial(trial_id)[0] for trial_id in ids}
    assert seconds_per_flop(store, trials) is None
    attempt(store, ids[0], 10, 1.0)
    assert seconds_per_flop(store, trials) is None
