import json
import os
import subprocess
import sys
import threading
import time

import pytest
from fakes import make_store

from redline.store import claims, reader
from redline.store.claims import ClaimLostError, claim, holder
from redline.store.schema import Status

HOLD = """
import sys, time
from pathlib import Path
from redline.store.claims import claim
from redline.store.layout import Store
with claim(Store(Path(sys.argv[1])), sys.argv[2]) as held:
    print("held", held is not None, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def trial(tmp_path):
    store, (name,) = make_store(tmp_path, seeds=[0])
    return store, name


def pretend_other_host(store, name, age_s):
    path = store.holder(name)
    path.write_text(json.dumps({"host": "elsewhere", "pid": 1, "token": "t", "since": ""}))
    then = time.time() - age_s
    os.utime(path, (then, then))


def test_a_trial_has_one_holder_at_a_time(trial):
    with claim(*trial) as first:
        assert first is not None
        with claim(*trial) as second:
            assert second is None
        assert holder(*trial)["pid"] == os.getpid()
        assert reader.status(*trial) is Status.RUNNING
    assert holder(*trial) is None
    with claim(*trial) as third:
        assert third is not None


def test_a_claim_dies_with_its_process(trial):
    store, name = trial
    command = [sys.executable, "-c", HOLD, str(store.root), name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held True\n"
        assert holder(store, name)["pid"] == other.pid
        with claim(store, name) as held:
            assert held is None
        other.kill()
    assert holder(store, name) is None
    with claim(store, name) as held:
        assert held is not None


def test_a_fresh_heartbeat_of_another_host_holds_even_where_locks_do_not_work(trial):
    pretend_other_host(*trial, age_s=5)
    assert holder(*trial)["host"] == "elsewhere"
    with claim(*trial) as held:
        assert held is None


def test_a_host_that_was_silent_for_long_loses_the_trial(trial):
    pretend_other_host(*trial, age_s=claims.FRESH_S + 5)
    assert holder(*trial) is None
    with claim(*trial) as held:
        assert held is not None


def test_the_heartbeat_goes_on_while_the_trial_is_held(trial, monkeypatch):
    monkeypatch.setattr(claims, "HEARTBEAT_S", 0.01)
    store, name = trial
    with claim(store, name):
        os.utime(store.holder(name), (0, 0))
        deadline = time.monotonic() + 5
        while store.holder(name).stat().st_mtime == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert time.time() - store.holder(name).stat().st_mtime < 5


def test_looking_at_a_trial_never_makes_a_claim_fail(trial):
    store, name = trial
    # What a killed process leaves: only then does a look take the lock.
    store.holder(name).write_text(
        json.dumps({"host": os.uname().nodename, "pid": 1, "token": "t", "since": ""})
    )
    stop = threading.Event()

    def look():
        while not stop.is_set():
            holder(store, name)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for _ in range(30):
            with claim(store, name) as held:
                assert held is not None
    finally:
        stop.set()
        thread.join()


def test_case_x08_a_sleeper_that_was_replaced_notices_and_leaves_the_claim_alone(trial):
    """A laptop slept, another host took its trial over; awake again it must not train it twice."""
    store, name = trial
    with claim(store, name) as held:
        held.check()
        pretend_other_host(store, name, age_s=0)
        with pytest.raises(ClaimLostError, match="elsewhere"):
            held.check()
    assert holder(store, name)["host"] == "elsewhere"
