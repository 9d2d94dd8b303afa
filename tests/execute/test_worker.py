import errno
import os
import subprocess
import sys

import fakes
import pytest
from fakes import DIVERGES, RAISES, make_store, record

from redline import files
from redline.execute import worker as module
from redline.execute.plan import plan
from redline.execute.worker import PreemptedError, Worker
from redline.store import reader
from redline.store.claims import claim
from redline.store.schema import Status


def make_worker(store, events=None, train=fakes.train):
    emit = (lambda event: None) if events is None else events.append
    return Worker(store, "s" * 16, fakes.load, train, emit, checkpoint_every_s=30.0)


def failing(error):
    def train(*args, **kwargs):
        raise error

    return train


def test_a_trial_is_started_reported_and_finished(tmp_path):
    store, (name,) = make_store(tmp_path, seeds=[0])
    events = []
    last = make_worker(store, events).work(name)
    assert [events[0]["event"], events[1]["event"]] == ["started", "progress"]
    assert events[0]["trial"] == "qk_norm off, peak_lr 0.001, n_layer 2, seed 0"
    assert events[1].keys() == {"event", "trial_id", "step", "n_step", "loss", "tokens"}
    assert last["event"] == "finished"
    assert last["result"]["steps_done"] == 60
    assert reader.status(store, name) is Status.FINISHED
    (attempt,) = reader.attempts(store, name)
    assert (attempt["status"], attempt["first_step"], attempt["last_step"]) == ("finished", 0, 60)
    about = files.read_json(store.provenance(name))
    assert about.keys() >= {"host", "os", "cpu", "python", "torch", "numpy", "redline", "n_thread"}


def test_progress_comes_at_most_four_times_a_second(tmp_path, monkeypatch):
    store, (name,) = make_store(tmp_path, seeds=[0])
    now = iter(range(1000))
    monkeypatch.setattr(module.time, "monotonic", lambda: next(now) * 0.05)
    report_every = 5  # 0.25 s in ticks of 0.05 s
    events = []
    make_worker(store, events).work(name)
    progress = [event["step"] for event in events if event["event"] == "progress"]
    assert progress == list(range(0, 61, report_every))
    assert events[-1]["tokens"] == 60 * 16 * 64


def test_a_finished_trial_is_never_trained_again(tmp_path):
    store, (name,) = make_store(tmp_path, seeds=[0])
    record(store, name)
    before = {path: path.stat().st_mtime_ns for path in store.trial_dir(name).rglob("*")}
    event = make_worker(store, train=failing(AssertionError("trained"))).work(name)
    assert (event["event"], event["reason"]) == ("skipped", "it is finished")
    assert {path: path.stat().st_mtime_ns for path in store.trial_dir(name).rglob("*")} == before


def test_a_trial_that_runs_elsewhere_is_skipped(tmp_path):
    store, (name,) = make_store(tmp_path, seeds=[0])
    with claim(store, name):
        assert make_worker(store).work(name)["reason"] == "another process holds it"
    assert reader.attempts(store, name) == []


def test_a_trial_continues_from_its_checkpoint_with_the_same_record(tmp_path):
    store, (name,) = make_store(tmp_path / "broken", seeds=[RAISES])
    make_worker(store).work(name)
    twin, _ = make_store(tmp_path / "whole", seeds=[RAISES])
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patch:
        patch.setattr(fakes, "_happen", lambda seed, step: None)
        assert make_worker(store).work(name)["event"] == "finished"
        assert make_worker(twin).work(name)["event"] == "finished"
    assert [a["first_step"] for a in reader.attempts(store, name)] == [0, 11]
    assert store.series(name).read_bytes() == twin.series(name).read_bytes()
    assert store.probes(name).read_bytes() == twin.probes(name).read_bytes()
    assert files.read_json(store.finished(name)) == files.read_json(twin.finished(name))


def test_a_crash_keeps_its_traceback_and_what_was_printed(tmp_path):
    store, (name,) = make_store(tmp_path, seeds=[RAISES])
    event = make_worker(store).work(name)
    assert event["event"] == "crashed"
    assert event["reason"] == "RuntimeError: a fault at step 13"
    assert "seed 101" in event["trial"]
    assert 'raise RuntimeError("a fault at step 13")' in reader.last_error(store, name)
    assert event["log"].endswith("1.log")
    assert reader.status(store, name) is Status.CRASHED


def test_an_edited_trial_crashes_with_a_clear_sentence_and_is_not_trained(tmp_path):
    store, (name,) = make_store(tmp_path, seeds=[0])
    path = store.trial(name)
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1'))
    event = make_worker(store, train=failing(AssertionError("trained"))).work(name)
    assert event["event"] == "crashed"
    assert f"trial {name} was edited" in event["reason"]


def test_case_x04_out_of_memory_is_a_failure_that_ends_the_worker(tmp_path):
    """An out-of-memory cell ended the sweep, or poisoned the cells after it."""

    class OutOfMemoryError(RuntimeError):
        """What torch calls it."""

    cpu = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 8 bytes")
    for error in (MemoryError(), OutOfMemoryError("CUDA out of memory"), cpu):
        store, (name,) = make_store(tmp_path / type(error).__name__, seeds=[0])
        event = make_worker(store, train=failing(error)).work(name)
        assert event["event"] == "crashed"
        assert event["worker_ends"]
    assert not make_worker(store, train=failing(ValueError())).work(name)["worker_ends"]


def test_case_s02_a_full_disk_crashes_the_trial_by_that_name(tmp_path, monkeypatch):
    """The earlier checkpoint is intact and a later retry continues from it."""
    store, (name,) = make_store(tmp_path, seeds=[0])
    real = files._replace

    def full(path, content):
        if path.name == "step-00000020.bin":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(files, "_replace", full)
        assert make_worker(store).work(name)["reason"].startswith("disk full: ")
    assert reader.status(store, name) is Status.CRASHED
    assert [path.name for path in store.checkpoints(name).iterdir()] == ["step-00000010.bin"]
    assert make_worker(store).work(name)["event"] == "finished"
    assert reader.attempts(store, name)[-1]["first_step"] == 11


def test_an_attempt_whose_end_cannot_be_written_counts_as_preempted(tmp_path, monkeypatch):
    store, (name,) = make_store(tmp_path, seeds=[RAISES])

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module.attempts, "end", full)
        assert make_worker(store).work(name)["event"] == "crashed"
    assert reader.status(store, name) is Status.PREEMPTED


@pytest.mark.parametrize("step", ["claim", "attempt"])
def test_a_full_disk_before_an_attempt_is_a_crash_and_the_worker_goes_on(
    tmp_path, monkeypatch, step
):
    """Each further trial of the sweep cost a new worker."""
    store, ids = make_store(tmp_path, seeds=range(2))
    worker = make_worker(store)
    refused = {"claim": store.holder(ids[0]), "attempt": store.attempts(ids[0]) / "1.json"}[step]
    real = files._replace

    def full(path, content):
        if path == refused:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, content)

    monkeypatch.setattr(files, "_replace", full)
    event = worker.work(ids[0])
    assert event["event"] == "crashed"
    assert event["reason"].startswith("disk full: ")
    assert worker.work(ids[1])["event"] == "finished"
    assert plan(store, ids).to_run() == [ids[0]]


def test_a_log_that_cannot_be_opened_is_a_crash_by_that_name(tmp_path):
    store, (name,) = make_store(tmp_path, seeds=[0])
    (store.attempts(name) / "1.log").mkdir(parents=True)
    event = make_worker(store).work(name)
    assert event["event"] == "crashed"
    assert event["reason"].startswith("IsADirectoryError: ")


def test_every_attempt_keeps_the_provenance_it_ran_with(tmp_path, monkeypatch):
    """A trial that was resumed on another machine was recorded as a work of the second alone."""
    store, (name,) = make_store(tmp_path, seeds=[RAISES])
    for host in ("one", "two"):
        monkeypatch.setattr(module, "provenance", lambda executor, host=host: {"host": host})
        make_worker(store).work(name)
    hosts = [attempt["provenance"]["host"] for attempt in reader.attempts(store, name)]
    assert hosts == ["one", "two"]
    assert files.read_json(store.provenance(name)) == {"host": "two"}


def test_torch_has_the_one_thread_that_the_provenance_names():
    code = (
        "import sys, torch, redline.execute.worker as worker\n"
        "torch.set_num_threads(2)\n"
        "worker.run_until_done = lambda _: print(torch.get_num_threads())\n"
        "sys.argv[1:] = ['store', 'study', '30']\n"
        "worker.main()"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert answer.stderr.strip() == b"1"  # stdout is for events


def test_a_terminated_attempt_is_preempted_and_goes_on_later(tmp_path):
    store, (name,) = make_store(tmp_path, seeds=[0])
    assert make_worker(store, train=failing(PreemptedError())).work(name)["event"] == "preempted"
    assert plan(store, [name]).to_run() == [name]


def test_case_t09_a_diverged_trial_is_finished_and_never_retried(tmp_path):
    """A NaN run overwrote good checkpoints, or was taken for a crash and tried again for ever."""
    store, (name,) = make_store(tmp_path, seeds=[DIVERGES])
    event = make_worker(store).work(name)
    assert event["event"] == "finished"
    assert event["result"]["non_finite"] == "loss"
    found = plan(store, [name])
    assert found.statuses[name] is Status.FINISHED
    assert found.to_run() == found.to_retry() == []


def test_status_needs_no_polars_and_nothing_needs_torch_before_a_trial():
    code = (
        "import sys, redline.execute.local, redline.execute.worker\n"
        "assert 'polars' not in sys.modules\n"
        "import redline.store.tables\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
