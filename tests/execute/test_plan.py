import shutil

from fakes import make_store, make_trial, record

from redline.execute.plan import describe, plan
from redline.store import attempts
from redline.store.schema import Status


def test_run_takes_planned_and_preempted_trials_and_retry_takes_failed_ones(tmp_path):
    store, ids = make_store(tmp_path, seeds=range(5))
    record(store, ids[0])
    attempts.begin(store, ids[1], "s", {})
    attempts.end(attempts.begin(store, ids[2], "s", {}), Status.CRASHED)
    attempts.end(attempts.begin(store, ids[3], "s", {}), Status.TIMED_OUT)
    found = plan(store, ids[::-1])
    assert list(found.statuses) == ids[::-1]
    assert found.to_run() == [ids[4], ids[1]]
    assert found.to_retry() == [ids[3], ids[2]]
    assert found.counts[Status.FINISHED] == 1
    assert found.counts[Status.RUNNING] == 0
    assert sum(found.counts.values()) == 5


def test_case_s09_a_result_that_is_gone_is_missing_by_name(tmp_path):
    """Sweeps counted the runs that they had issued and called a grid with holes complete."""
    store, ids = make_store(tmp_path, seeds=range(6))
    for name in ids:
        record(store, name)
    assert plan(store, ids).missing == []
    shutil.rmtree(store.trial_dir(ids[3]))
    found = plan(store, ids)
    assert found.missing == found.to_run() == [ids[3]]
    assert found.counts[Status.FINISHED] == 5


def test_a_damaged_trial_is_missing_and_neither_run_nor_retried(tmp_path):
    store, ids = make_store(tmp_path, seeds=[0])
    record(store, ids[0])
    store.series(ids[0]).unlink()
    found = plan(store, ids)
    assert found.missing == ids
    assert found.to_run() == found.to_retry() == []


def test_case_i04_a_trial_is_described_by_all_its_coordinates():
    """A failure was reported with the first changed option only."""
    trial = make_trial(seed=4, n_layer=8, qk_norm={"gain": "frozen"}, peak_lr=3e-3)
    assert describe(trial) == "qk_norm on gain=frozen, peak_lr 0.003, n_layer 8, seed 4"
