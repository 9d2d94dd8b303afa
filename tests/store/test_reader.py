import os

import pytest
from fakes import make_store, record

from redline.store import attempts, reader
from redline.store.claims import claim
from redline.store.schema import Status


@pytest.fixture
def one(tmp_path):
    store, (name,) = make_store(tmp_path, seeds=[0])
    return store, name


def flip(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


def test_the_status_follows_the_files_from_planned_to_finished(one):
    store, name = one
    assert reader.status(store, name) is Status.PLANNED
    with claim(store, name):
        attempt = attempts.begin(store, name, "s", {})
        assert reader.status(store, name) is Status.RUNNING
    assert reader.status(store, name) is Status.PREEMPTED
    attempts.end(attempt, Status.CRASHED, reason="KeyError: 'x'", first_step=0, last_step=7)
    assert reader.status(store, name) is Status.CRASHED
    attempts.end(attempts.begin(store, name, "s", {}), Status.TIMED_OUT)
    assert reader.status(store, name) is Status.TIMED_OUT
    record(store, name)
    assert reader.status(store, name) is Status.FINISHED


def test_attempts_are_numbered_and_say_who_when_and_how(one):
    store, name = one
    for _ in range(11):
        attempt = attempts.begin(store, name, "s", {"host": "here"})
        attempts.end(attempt, Status.CRASHED, reason="why", last_step=3)
    history = reader.attempts(store, name)
    assert len(history) == 11
    assert sorted(path.stem for path in store.attempts(name).glob("*.json"))[-1] == "9"
    assert history[-1].keys() == {
        *("started", "host", "pid", "study", "provenance"),
        *("ended", "status", "reason", "elapsed_s", "first_step", "last_step"),
    }
    assert history[-1]["elapsed_s"] >= 0
    assert history[-1]["started"].endswith("+00:00")


def test_the_last_error_is_the_end_of_the_latest_log(one):
    store, name = one
    assert reader.last_error(store, name) == ""
    attempts.begin(store, name, "s", {}).log.write_text("old\n")
    attempts.begin(store, name, "s", {}).log.write_text("".join(f"line {n}\n" for n in range(50)))
    assert reader.last_error(store, name, n_line=2) == "line 48\nline 49"


def test_the_parent_ends_the_attempt_of_a_dead_worker_once(one):
    store, name = one
    attempts.begin(store, name, "s", {})
    log = attempts.end_of_dead(store, name, os.getpid(), Status.CRASHED, "killed by signal 9")
    attempts.end_of_dead(store, name, os.getpid(), Status.PREEMPTED, "again")
    assert attempts.end_of_dead(store, name, -1, Status.CRASHED, "a stranger") is None
    assert [attempt["reason"] for attempt in reader.attempts(store, name)] == ["killed by signal 9"]
    assert log.read_text() == "killed by signal 9\n"


@pytest.mark.parametrize("file", ["trial.json", "series.jsonl", "probes.jsonl", "finished.json"])
def test_a_flipped_byte_in_a_finished_trial_is_named(one, file):
    store, name = one
    record(store, name)
    assert reader.verify(store, name) == ()
    path = store.trial_dir(name) / file
    for at in (0, path.stat().st_size // 2, -3):
        flip(path, at)
        assert reader.verify(store, name) == (file,)
        flip(path, at)
    assert reader.verify(store, name) == ()


def test_a_cut_or_missing_file_shows_in_the_status(one):
    store, name = one
    record(store, name)
    series = store.series(name)
    series.write_bytes(series.read_bytes()[:-20])
    assert reader.status(store, name) is Status.DAMAGED
    assert reader.verify(store, name) == ("series.jsonl",)
    series.unlink()
    assert reader.status(store, name) is Status.DAMAGED


def test_a_damaged_result_shows_in_the_status(one):
    store, name = one
    record(store, name)
    path = store.finished(name)
    for content in (path.read_text().replace("5.5", "5.4"), "[]", "{}", ""):
        path.write_text(content)
        assert reader.status(store, name) is Status.DAMAGED
        assert reader.verify(store, name) == ("finished.json",)


def test_a_removed_result_makes_the_trial_planned_again(one):
    store, name = one
    record(store, name)
    attempts.end(attempts.begin(store, name, "s", {}), Status.FINISHED)
    store.finished(name).unlink()
    assert reader.status(store, name) is Status.PLANNED
