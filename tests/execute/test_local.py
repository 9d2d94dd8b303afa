import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import fakes
import psutil
import pytest
from fake_run import FAKE
from fakes import KILLED, OUT_OF_MEMORY, RAISES, SLEEPS, make_store

from redline.execute import local, process
from redline.execute.plan import plan
from redline.execute.process import worker_environment
from redline.files import read_json
from redline.store import reader
from redline.store.schema import Status

RUN = str(Path(__file__).with_name("fake_run.py"))


def run(store, ids, *, n_worker=2, command=FAKE, **options):
    """Run with fake workers; the tally and the events."""
    events = []
    before = set(psutil.Process().children())
    tally = local.run(
        store,
        ids,
        study="s" * 16,
        n_worker=n_worker,
        on_event=events.append,
        command=command,
        **options,
    )
    assert set(psutil.Process().children()) <= before
    return tally, events


@contextlib.contextmanager
def start_run(store, n_worker=2):
    command = [sys.executable, RUN, str(store.root), str(n_worker)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        try:
            yield parent
        finally:
            for child in children_of(parent):
                child.kill()
            parent.kill()


def children_of(parent):
    try:
        return psutil.Process(parent.pid).children()
    except psutil.NoSuchProcess:
        return []


def statuses(store, ids):
    return Counter(plan(store, ids).statuses.values())


def wait_until(condition, within_s=10.0):
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_case_s08_a_second_run_trains_nothing_and_touches_nothing(tmp_path):
    """Searches ran finished cells again after a restart."""
    store, ids = make_store(tmp_path, seeds=range(6))
    tally, events = run(store, ids)
    assert tally.finished == 6
    assert Counter(event["event"] for event in events)["started"] == 6
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json*")}
    assert plan(store, ids).to_run() == []
    tally, _ = run(store, ids)  # even when somebody asks for it
    assert tally.skipped == 6
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json*")}
    assert after == before


def test_case_s08_x06_two_runs_on_one_store_train_each_trial_once(tmp_path):
    """Two searches on one storage chose the same points; a re-queued job was taken twice."""
    store, ids = make_store(tmp_path, seeds=range(6), n_step=200)
    with start_run(store) as one, start_run(store) as two:
        assert [one.wait(30), two.wait(30)] == [0, 0]
        started = [line for side in (one, two) for line in side.stdout if "started" in line]
    assert len(started) == len(set(started)) == 6
    assert all(len(reader.attempts(store, name)) == 1 for name in ids)
    assert statuses(store, ids) == {Status.FINISHED: 6}


def test_case_i01_i04_a_crash_leaves_the_others_alone_and_says_where_it_was(tmp_path):
    """Failures were shown at the end or nowhere, and with half of their coordinates."""
    store, ids = make_store(tmp_path, seeds=[0, RAISES, 1, 2])
    again = store.put_trial(fakes.make_trial(seed=RAISES, n_layer=4, qk_norm={}), fakes.TOKENS)
    tally, events = run(store, [*ids, again])
    assert (tally.finished, tally.crashed) == (3, 2)
    crashed = {event["trial_id"]: event for event in events if event["event"] == "crashed"}
    assert crashed.keys() == {ids[1], again}
    assert crashed[again]["trial"] == "qk_norm on, peak_lr 0.001, n_layer 4, seed 101"
    for name, event in crashed.items():
        log = Path(event["log"])
        assert log == store.attempts(name) / "1.log"
        assert "Traceback" in log.read_text()
        assert "the last words before the crash" in log.read_text()
    for name in plan(store, ids).missing:
        assert name in crashed


def test_case_x04_a_killed_or_exhausted_worker_is_replaced(tmp_path):
    """One out-of-memory cell ended the sweep; here its trial crashed and the others go on."""
    store, ids = make_store(tmp_path, seeds=[KILLED, OUT_OF_MEMORY, 0, 1])
    tally, events = run(store, ids, n_worker=1)
    assert (tally.finished, tally.crashed) == (2, 2)
    reasons = [event["reason"] for event in events if event["event"] == "crashed"]
    assert reasons == ["killed by signal 9 (out of memory?)", "MemoryError"]
    assert reader.last_error(store, ids[0]).endswith("killed by signal 9 (out of memory?)")
    assert plan(store, ids).to_retry() == ids[:2]
    pids = [reader.attempts(store, name)[0]["pid"] for name in ids]
    assert len(set(pids)) == 3
    assert pids[2] == pids[3]


def test_a_worker_that_cannot_start_is_a_crash_with_its_last_words(tmp_path):
    store, ids = make_store(tmp_path, seeds=range(2))
    command = [sys.executable, "-c", "import a_module_that_is_missing"]
    tally, events = run(store, ids, n_worker=1, command=command)
    assert tally.crashed == 2
    assert "exited with code 1: ModuleNotFoundError" in events[0]["reason"]
    assert statuses(store, ids) == {Status.PLANNED: 2}


def test_a_trial_that_takes_too_long_is_timed_out_and_can_be_retried(tmp_path):
    store, ids = make_store(tmp_path, seeds=[SLEEPS, 0])
    tally, events = run(store, ids, timeout_s=2.0)
    assert (tally.finished, tally.timed_out) == (1, 1)
    assert events[-1]["reason"] == "no end after 2 s"
    assert plan(store, ids).to_retry() == [ids[0]]


def test_case_s10_after_a_stop_at_the_first_failure_the_rest_is_planned(tmp_path):
    """An abort marked cells as ended that had never begun, and `retry` then found nothing."""
    store, ids = make_store(tmp_path, seeds=[0, RAISES, 1, 2, 3, 4])
    tally, _ = run(store, ids, n_worker=1, fail_fast=1)
    assert (tally.finished, tally.crashed, tally.not_started) == (1, 1, 4)
    found = plan(store, ids)
    assert found.to_run() == ids[2:]
    assert found.to_retry() == [ids[1]]
    _, events = run(store, found.to_retry(), n_worker=1)
    assert {event["trial_id"] for event in events} == {ids[1]}


def test_case_s09_only_the_missing_trial_is_trained(tmp_path):
    """The grid was called complete, and a deleted result was never queued again."""
    store, ids = make_store(tmp_path, seeds=range(3))
    run(store, ids)
    store.finished(ids[1]).unlink()
    assert plan(store, ids).missing == [ids[1]]
    _, events = run(store, plan(store, ids).to_run())
    assert {event["trial_id"] for event in events} == {ids[1]}
    assert plan(store, ids).missing == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_case_s13_an_interrupt_keeps_what_is_finished_and_leaves_no_child(tmp_path, number):
    """An interrupt handler saved a stale summary over 590 newer results."""
    store, ids = make_store(tmp_path, seeds=range(8), n_step=100)
    with start_run(store) as parent:
        finished = (line for line in parent.stdout if line.startswith("finished"))
        for _ in range(3):
            next(finished)
        children = psutil.Process(parent.pid).children(recursive=True)
        parent.send_signal(number)
        assert parent.wait(15) == 130
    assert len(children) == 2
    assert not any(child.is_running() for child in children)
    counts = statuses(store, ids)
    assert counts[Status.FINISHED] >= 3
    assert counts[Status.CRASHED] == counts[Status.RUNNING] == 0
    for name in ids:
        for attempt in reader.attempts(store, name):
            assert attempt["reason"] in ("", "terminated", "interrupted")
    left = plan(store, ids).to_run()
    assert len(left) == 8 - counts[Status.FINISHED]
    _, events = run(store, left)
    assert {event["trial_id"] for event in events} == set(left)
    assert statuses(store, ids) == {Status.FINISHED: 8}


def test_workers_leave_at_once_when_their_parent_is_killed(tmp_path):
    store, ids = make_store(tmp_path, seeds=[SLEEPS])
    ids.append(store.put_trial(fakes.make_trial(seed=SLEEPS, n_layer=4), fakes.TOKENS))
    with start_run(store) as parent:
        for _ in range(2):
            next(line for line in parent.stdout if line.startswith("progress"))
        time.sleep(0.5)  # both sleep now, so that no broken pipe tells them
        children = children_of(parent)
        parent.kill()
        assert len(children) == 2
        wait_until(lambda: not any(child.is_running() for child in children), within_s=5)
    assert statuses(store, ids) == {Status.PREEMPTED: 2}


def test_case_x08_a_stopped_machine_fails_and_doubles_no_trial(tmp_path):
    """Laptops slept in the middle of a sweep; jobs were declared dead and started again."""
    store, ids = make_store(tmp_path, seeds=range(4), n_step=300)
    with start_run(store) as parent:
        for _ in range(2):
            next(line for line in parent.stdout if line.startswith("started"))
        everybody = [psutil.Process(parent.pid), *psutil.Process(parent.pid).children()]
        for each in everybody:
            each.suspend()
        assert statuses(store, ids)[Status.RUNNING] == 2
        tally, _ = run(store, plan(store, ids).to_run())
        assert tally.finished == 2
        for each in everybody:
            each.resume()
        assert parent.wait(20) == 0
    assert statuses(store, ids) == {Status.FINISHED: 4}
    assert all(len(reader.attempts(store, name)) == 1 for name in ids)


def test_case_x08_a_sleep_counts_as_one_tick_of_a_timeout_and_is_noted(tmp_path, monkeypatch):
    """After a night's sleep every trial was out of time."""
    store, ids = make_store(tmp_path, seeds=[0], n_step=600)
    jumps = itertools.chain([0, 0], itertools.repeat(90))
    monkeypatch.setattr(local.time, "monotonic", lambda real=time.monotonic: real() + next(jumps))
    tally, events = run(store, ids, timeout_s=20.0)
    assert tally.finished == 1
    assert any("nothing moved for 90 s" in event.get("text", "") for event in events)


def test_case_x01_all_workers_together_have_no_more_threads_than_asked_for(tmp_path, monkeypatch):
    """Every worker opened a pool as large as the machine: eight times slower."""
    monkeypatch.setenv("OMP_NUM_THREADS", "16")
    store, ids = make_store(tmp_path, seeds=range(2))
    run(store, ids)
    assert sum(read_json(store.provenance(name))["n_thread"] for name in ids) == 2
    code = "import torch; print(torch.get_num_threads())"
    command = [sys.executable, "-c", code]
    answer = subprocess.run(command, env=worker_environment(), capture_output=True, check=True)
    assert answer.stdout.strip() == b"1"


def test_case_x09_nothing_is_ever_forked(tmp_path, monkeypatch):
    """System libraries of macOS are not safe after a fork."""

    def forked():
        raise AssertionError("forked")

    monkeypatch.setattr(os, "fork", forked)
    store, ids = make_store(tmp_path, seeds=range(2))
    assert run(store, ids)[0].finished == 2


def test_no_more_workers_start_than_there_are_trials(tmp_path, monkeypatch):
    started = []
    real = process.Process

    def count(*args):
        started.append(real(*args))
        return started[-1]

    monkeypatch.setattr(local, "Process", count)
    store, ids = make_store(tmp_path, seeds=[0])
    run(store, ids, n_worker=8)
    assert len(started) == 1
    assert run(store, [])[0] == local.Tally(0, 0, 0, 0, 0, 0)


def test_an_error_of_the_listener_leaves_no_child_and_no_open_attempt(tmp_path):
    store, ids = make_store(tmp_path, seeds=[SLEEPS])
    before = set(psutil.Process().children())

    def on_event(event):
        raise RuntimeError("a fault of the listener")

    with pytest.raises(RuntimeError, match="listener"):
        local.run(store, ids, study="s", n_worker=1, on_event=on_event, command=FAKE)
    assert set(psutil.Process().children()) <= before
    assert statuses(store, ids) == {Status.PREEMPTED: 1}
    assert reader.attempts(store, ids[0])[0]["status"] == "preempted"


@pytest.mark.parametrize("n_kill", [4, pytest.param(60, marks=pytest.mark.slow)])
def test_kills_at_random_moments_lose_nothing_and_train_nothing_twice(tmp_path, n_kill):
    """Parents and single workers die by SIGKILL; the record equals that of an undisturbed run."""
    seeds, n_step = range(n_kill), 80
    calm, ids = make_store(tmp_path / "calm", seeds=seeds, n_step=n_step)
    run(calm, ids)
    store, _ = make_store(tmp_path / "killed", seeds=seeds, n_step=n_step)
    finished = {}
    for kill in range(n_kill):
        with start_run(store) as parent:
            parent.stdout.readline()
            time.sleep(random.uniform(0, 0.2))
            if kill % 2:
                for worker in children_of(parent)[:1]:
                    worker.kill()
                time.sleep(random.uniform(0, 0.4))
            workers = children_of(parent)
            parent.kill()
            wait_until(lambda gone=workers: not any(each.is_running() for each in gone))
        now = {name: _stamp(store, name) for name in ids if store.finished(name).exists()}
        assert finished.items() <= now.items()
        finished = now
    found = plan(store, ids)
    for name in found.to_retry():
        assert reader.attempts(store, name)[-1]["reason"].startswith("killed by signal 9")
    run(store, found.missing)
    for name in ids:
        assert reader.verify(store, name) == ()
        assert store.series(name).read_bytes() == calm.series(name).read_bytes()
        assert store.probes(name).read_bytes() == calm.probes(name).read_bytes()
        assert read_json(store.finished(name)) == read_json(calm.finished(name))


def _stamp(store, name):
    return store.finished(name).stat().st_mtime_ns, len(reader.attempts(store, name))


@pytest.mark.parametrize(("n_hit", "finished", "preempted"), [(1, 2, 0), (2, 1, 1)])
def test_a_worker_that_is_terminated_alone_has_its_trial_go_on_once_in_the_same_run(
    tmp_path, n_hit, finished, preempted
):
    store, ids = make_store(tmp_path, seeds=range(2), n_step=600)
    hit = set()

    def terminate(event):
        if event.get("trial_id") == ids[0] and event["event"] == "progress":
            pid = reader.attempts(store, ids[0])[-1]["pid"]
            if len(hit) < n_hit and pid not in hit:
                hit.add(pid)
                os.kill(pid, signal.SIGTERM)

    tally = local.run(store, ids, study="s" * 16, n_worker=2, on_event=terminate, command=FAKE)
    assert (tally.finished, tally.preempted) == (finished, preempted)
    assert [len(reader.attempts(store, name)) for name in ids] == [2, 1]


def test_a_worker_that_dies_before_it_begins_costs_its_trial_nothing(tmp_path):
    store, ids = make_store(tmp_path / "store", seeds=range(2))
    dies_once = f'mkdir "{tmp_path}/died" 2> /dev/null && exit 1; exec "$0" "$@"'
    tally, _ = run(store, ids, n_worker=1, command=["sh", "-c", dies_once, *FAKE])
    assert (tmp_path / "died").exists()
    assert (tally.finished, tally.crashed) == (2, 0)
    assert all(len(reader.attempts(store, name)) == 1 for name in ids)


def test_a_worker_that_can_never_start_ends_as_a_crash_and_not_in_a_loop(tmp_path):
    store, ids = make_store(tmp_path, seeds=range(2))
    command = (sys.executable, "-c", "raise SystemExit('no such library')")
    tally, events = run(store, ids, command=command)
    assert tally.crashed == 2
    reasons = {event["reason"] for event in events if event["event"] == "crashed"}
    assert reasons == {"the worker exited with code 1: no such library"}


def test_a_late_worker_is_never_given_another_trial(tmp_path):
    """`finished` is on its way while the time runs out: the next trial must not pay for it."""
    store, ids = make_store(tmp_path, seeds=range(2))
    pool = local._Pool(store, local.deque(ids), list(FAKE), 1, lambda event: None, None, 60.0)

    class Late:
        trial_id, verdict, pid, closed = ids[0], (Status.TIMED_OUT, "no end after 60 s"), 1, False

        def close(self):
            self.closed = True

    late = Late()
    pool.processes.append(late)
    pool._hear(late, {"event": "finished", "trial_id": ids[0]})
    assert late.closed
    assert late not in pool.processes
