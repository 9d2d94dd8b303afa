"""Kill the whole run or one worker at random moments: nothing lost, nothing doubled, same bits."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter

import psutil
import pytest

from redline.session import open_session
from redline.store.tables import load

STUDY = """
title = "killed"
protocol = "nanogpt"
[model]
n_embd = 32
block_size = 16
[data]
n_train_token = 50_000
n_eval_token = 512
[train]
batch_size = 4
n_step = 500
[measure]
eval_every = 100
probe_every = 100
n_probe_row = 4
[axes]
peak_lr = [1e-3, 3e-2, 1e-1]
seed = [0, 1]
qk_norm = ["off", "on"]
"""


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "killed.toml"
    path.write_text(STUDY)
    return path


def start(study, store, verb="run"):
    options = ["--store", store, "--workers", "2", "--checkpoint-every", "0.2"]
    command = [sys.executable, "-m", "redline", verb, study, *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def finished(store):
    return {
        path.parent.name: path.stat().st_mtime_ns for path in store.glob("trials/*/finished.json")
    }


def children(process):
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


@pytest.mark.parametrize("n_to_kill", [5, pytest.param(20, marks=pytest.mark.slow)])
def test_kills_lose_nothing_and_double_nothing(study, tmp_path, n_to_kill):
    """The table after the kills equals that of an undisturbed run in everything but provenance."""
    quiet, killed = tmp_path / "quiet", tmp_path / "killed"
    assert start(study, quiet).wait() == 0
    chance = random.Random(0)
    seen, n_kill, verb = {}, 0, "run"
    while n_kill < n_to_kill:
        process = start(study, killed, verb)
        deadline = time.monotonic() + chance.uniform(2.0, 6.0)
        while time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.05)
        workers = children(process)
        if process.poll() is None and chance.random() < 0.5 and workers:
            victim = chance.choice(workers)
            victim.kill()
            n_kill += 1
            time.sleep(chance.uniform(0.1, 1.0))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            n_kill += 1
        process.wait()
        _, alive = psutil.wait_procs(workers, timeout=10)
        assert not alive, "a worker outlived the run"
        now = finished(killed)
        assert seen.items() <= now.items(), "a finished trial was lost or written again"
        seen = now
        verb = "retry" if verb == "run" else "run"
        if len(seen) == 12:  # all there: begin again in another store, until all kills are spent
            compare(study, quiet, killed)
            killed, seen, verb = tmp_path / f"killed-{n_kill}", {}, "run"
    for verb in ("run", "retry", "run"):
        assert start(study, killed, verb).wait() in (0, 1)
    compare(study, quiet, killed)


def compare(study, quiet, killed):
    session = open_session(str(study), quiet)
    ids = list(session.by_id)
    ours, theirs = (load(open_session(str(study), root).store, ids) for root in (killed, quiet))
    assert not ours.damaged
    for name in ("trials", "series", "probes"):
        assert getattr(ours, name).equals(getattr(theirs, name), null_equal=True), name
    steps = Counter(ours.series.select("trial_id", "step").iter_rows())
    assert max(steps.values()) == 1
    assert ours.trials.height == 12
    finals = [
        path
        for trial_id in ids
        for path in (killed / "trials" / trial_id / "attempts").glob("*.json")
        if '"finished"' in path.read_text()
    ]
    assert len(finals) <= len(ids), "a trial finished twice"
