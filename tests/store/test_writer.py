import errno
import itertools
import json
import os
import random
import subprocess
import sys
import time

import fakes
import pytest
from fakes import make_store, record

from redline import files
from redline.files import UserError, read_lines
from redline.store import reader, writer
from redline.store.claims import ClaimLostError, claim
from redline.store.schema import Status
from redline.store.writer import Recorder

SAVE = """
import sys, itertools
from pathlib import Path
from redline.store.claims import claim
from redline.store.layout import Store
from redline.store.writer import Recorder
store, name = Store(Path(sys.argv[1])), sys.argv[2]
with claim(store, name) as held:
    recorder = Recorder(store, name, claim=held, study="s")
    for step in itertools.count():
        recorder.step({"step": step})
        recorder.save(step, (f"{step:08d}" * 20_000).encode())
        print(step, flush=True)
"""


@pytest.fixture
def one(tmp_path):
    """A store, a trial and the recorder of its claim."""
    store, (name,) = make_store(tmp_path, seeds=[0])
    with claim(store, name) as held:
        recorder = Recorder(store, name, claim=held, study="s" * 16)
        yield store, name, recorder
        recorder.close()


def steps(path):
    return [row["step"] for row in read_lines(path)]


def write_steps(recorder, first, last):
    for step in range(first, last + 1):
        recorder.step({"step": step, "loss": float(step)})


def test_a_row_costs_less_than_50_microseconds(one):
    *_, recorder = one
    row = dict.fromkeys(("lr", "loss", "grad_norm", "param_norm", "update_norm"), 0.123456789)
    recorder.rewind(-1)
    costs = []
    for chunk in range(20):
        start = time.perf_counter()
        for step in range(chunk * 500, chunk * 500 + 500):
            recorder.step({"step": step, **row})
        costs.append((time.perf_counter() - start) / 500)
    assert min(costs) < 50e-6


def test_case_s11_a_resumed_series_has_every_step_once(one):
    """Loggers kept the rows between the checkpoint and the kill, or refused to write them again."""
    store, name, recorder = one
    write_steps(recorder, 0, 13)
    recorder.probe({"step": 5})
    recorder.probe({"step": 12})
    recorder.rewind(10)
    assert steps(store.probes(name)) == [5]
    write_steps(recorder, 11, 19)
    recorder.close()
    assert steps(store.series(name)) == list(range(20))


def test_an_attempt_that_does_not_rewind_starts_from_nothing(one):
    store, name, recorder = one
    store.series(name).write_text('{"step": 0}\n{"step": 1}\n')
    write_steps(recorder, 0, 3)
    recorder.close()
    assert steps(store.series(name)) == [0, 1, 2, 3]


def test_a_line_that_a_kill_cut_is_dropped(one):
    store, name, recorder = one
    store.series(name).write_text('{"step": 0}\n{"step": 1}\n{"step": 2, "lo')
    recorder.rewind(2)
    write_steps(recorder, 2, 3)
    recorder.close()
    assert steps(store.series(name)) == [0, 1, 2, 3]


def test_a_damaged_line_in_the_middle_is_named(one):
    store, name, recorder = one
    store.series(name).write_text('{"step": 0}\n{"st\n{"step": 2}\n')
    with pytest.raises(UserError, match="line 2 is damaged"):
        recorder.rewind(2)


def test_rows_are_on_the_disk_before_their_checkpoint(one, monkeypatch):
    store, name, recorder = one
    seen = []
    monkeypatch.setattr(
        writer, "write_atomic", lambda path, content: seen.append(steps(store.series(name)))
    )
    monkeypatch.setattr(os, "fsync", lambda fd, real=os.fsync: (seen.append("fsync"), real(fd)))
    recorder._open()
    seen.clear()
    write_steps(recorder, 0, 3)
    recorder.save(3, b"weights")
    assert seen == ["fsync", "fsync", [0, 1, 2, 3]]


def test_the_newest_two_checkpoints_are_kept_and_offered_newest_first(one):
    store, name, recorder = one
    for step in range(5):
        recorder.step({"step": step})
        recorder.save(step, str(step).encode())
    assert list(recorder.checkpoints()) == [b"4", b"3"]
    assert sorted(path.name for path in store.checkpoints(name).iterdir()) == [
        "step-00000003.bin",
        "step-00000004.bin",
    ]


def test_a_checkpoint_ahead_of_its_series_is_not_offered(one):
    store, name, recorder = one
    for step in range(4):
        recorder.step({"step": step})
        recorder.save(step, str(step).encode())
    store.series(name).write_text('{"step": 0}\n{"step": 1}\n{"step": 2}\n')
    assert list(recorder.checkpoints()) == [b"2"]


def test_case_s20_a_damaged_newest_checkpoint_costs_nothing_but_time(tmp_path):
    """A checkpoint existed before its content was complete, and resuming from it failed."""
    plain, (name,) = make_store(tmp_path / "plain", seeds=[0])
    record(plain, name)
    store, _ = make_store(tmp_path / "cut", seeds=[0])
    with claim(store, name) as held:
        recorder = Recorder(store, name, claim=held, study="s" * 16)
        fakes.train(fakes.make_trial(), None, recorder, 1.0)
        recorder.close()
        newest = sorted(store.checkpoints(name).iterdir())[-1]
        newest.write_bytes(newest.read_bytes()[:10])
    record(store, name)
    assert store.series(name).read_bytes() == plain.series(name).read_bytes()
    assert store.probes(name).read_bytes() == plain.probes(name).read_bytes()


def test_case_s01_a_kill_during_a_save_leaves_a_whole_checkpoint(tmp_path):
    """A trainer truncated its only checkpoint before the new one was written."""
    store, (name,) = make_store(tmp_path, seeds=[0])
    for _ in range(4):
        command = [sys.executable, "-c", SAVE, str(store.root), name]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as saver:
            assert saver.stdout.readline() == "0\n"
            time.sleep(random.uniform(0, 0.05))
            saver.kill()
            done = max([0, *map(int, saver.stdout.read().split())])
        with claim(store, name) as held:
            recorder = Recorder(store, name, claim=held, study="s")
            content = next(recorder.checkpoints()).decode()
        step = int(content[:8])
        assert step >= done
        assert content == f"{step:08d}" * 20_000
        assert steps(store.series(name))[: step + 1] == list(range(step + 1))


def fail(monkeypatch, code, times):
    """Let the next `times` writes of a checkpoint fail."""
    left = itertools.count(times, -1)
    real = files._replace

    def replace(path, content):
        if path.suffix == ".bin" and next(left) > 0:
            raise OSError(code, os.strerror(code))
        real(path, content)

    monkeypatch.setattr(files, "_replace", replace)
    monkeypatch.setattr(files, "RETRY_AFTER_S", (0.0, 0.0, 0.0))


def test_case_s02_a_transient_error_is_tried_again(one, monkeypatch):
    """One failed write of a network disk ended a long run."""
    *_, recorder = one
    fail(monkeypatch, errno.EIO, times=2)
    recorder.step({"step": 0})
    recorder.save(0, b"weights")
    assert list(recorder.checkpoints()) == [b"weights"]


def test_case_s02_a_save_that_fails_for_good_costs_the_checkpoint_only(one, monkeypatch, capsys):
    """Training goes on without the periodic checkpoint, and says so."""
    *_, recorder = one
    write_steps(recorder, 0, 1)
    recorder.save(1, b"earlier")
    fail(monkeypatch, errno.EIO, times=99)
    write_steps(recorder, 2, 2)
    recorder.save(2, b"later")
    assert "WARNING: no checkpoint at step 2" in capsys.readouterr().err
    assert list(recorder.checkpoints()) == [b"earlier"]


def test_case_s02_a_full_disk_is_raised_and_the_earlier_checkpoint_stays(one, monkeypatch):
    """Going on with a full disk would lose the series as well."""
    store, name, recorder = one
    write_steps(recorder, 0, 1)
    recorder.save(1, b"earlier")
    fail(monkeypatch, errno.ENOSPC, times=99)
    with pytest.raises(OSError, match="No space left"):
        recorder.save(1, b"later")
    assert list(recorder.checkpoints()) == [b"earlier"]
    assert [path.name for path in store.checkpoints(name).iterdir()] == ["step-00000001.bin"]


def test_a_finished_trial_keeps_its_record_and_drops_its_checkpoints(tmp_path):
    store, (name,) = make_store(tmp_path, seeds=[0])
    record(store, name)
    assert reader.status(store, name) is Status.FINISHED
    assert steps(store.series(name)) == list(range(61))
    assert not store.checkpoints(name).exists()
    finished = json.loads(store.finished(name).read_text())
    assert finished["files"].keys() == {"trial.json", "series.jsonl", "probes.jsonl"}
    assert finished["study"] == "s" * 16


def test_a_finished_trial_is_never_overwritten(tmp_path):
    store, (name,) = make_store(tmp_path, seeds=[0])
    record(store, name)
    before = store.finished(name).read_bytes()
    with pytest.raises(AssertionError, match="never overwritten"):
        record(store, name)
    assert store.finished(name).read_bytes() == before


@pytest.mark.parametrize("rows", [[0, 1, 3], [0, 1, 1, 2, 3], [1, 2, 3], [0, 1, 2]])
def test_a_series_with_a_gap_or_a_repetition_is_not_finished(one, rows):
    store, name, recorder = one
    for step in rows:
        recorder.step({"step": step})
    with pytest.raises(ValueError, match="without a gap"):
        recorder.finish(fakes._result(3))
    assert not store.finished(name).exists()


def test_a_result_that_lacks_a_column_is_refused(one):
    *_, recorder = one
    recorder.step({"step": 0})
    result = fakes._result(0)
    del result["final_loss"]
    with pytest.raises(ValueError, match="the result lacks final_loss"):
        recorder.finish(result)


def test_case_x08_a_gap_is_noted_and_the_claim_is_checked_after_it(one, monkeypatch, capsys):
    """A sleeping machine neither fails its trial nor goes on with one that it lost meanwhile."""
    store, name, recorder = one
    recorder.step({"step": 0})
    real = time.time
    monkeypatch.setattr(writer.time, "time", lambda: real() + 90)
    recorder.step({"step": 1})
    assert "no step for 90 s" in capsys.readouterr().err
    taker = {"host": "elsewhere", "pid": 1, "token": "t", "since": ""}
    store.holder(name).write_text(json.dumps(taker))
    monkeypatch.setattr(writer.time, "time", lambda: real() + 180)
    with pytest.raises(ClaimLostError, match="elsewhere"):
        recorder.step({"step": 2})


def test_a_lost_claim_can_finish_nothing(one):
    store, name, recorder = one
    recorder.step({"step": 0})
    store.holder(name).unlink()
    with pytest.raises(ClaimLostError, match="nobody"):
        recorder.finish(fakes._result(0))
    assert not store.finished(name).exists()
