"""Who works on a trial: an OS lock that dies with its process, and a heartbeat for other hosts.

The lock file stays empty, because some systems truncate it on open and others forbid reading it
while it is locked. The holder stands in a JSON file beside it, whose mtime is the heartbeat.
"""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Generator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from redline.files import UserError, read_json, write_json
from redline.store.layout import Store

HEARTBEAT_S = 20.0
FRESH_S = 120.0
"""A holder on another host counts as alive for this long after its last heartbeat."""

TAKE_WITHIN_S = 0.3
"""`holder` takes the lock for a moment to see whether its owner is dead; wait that out."""


class ClaimLostError(Exception):
    """This process slept so long that another host took the trial over."""


@dataclass(frozen=True)
class Claim:
    """The right to write to one trial."""

    path: Path
    token: str

    def check(self) -> None:
        """Make sure that the trial is still ours, as after a sleep of the machine.

        Raises:
            ClaimLostError: another process holds the trial now.
        """
        record = _read_holder(self.path)
        if record is None or record["token"] != self.token:
            taker = "nobody" if record is None else f"{record['host']}, pid {record['pid']}"
            raise ClaimLostError(f"the claim was lost: the trial now belongs to {taker}")


@contextlib.contextmanager
def claim(store: Store, trial_id: str) -> Generator[Claim | None, None, None]:
    """Hold a trial for the body of a `with`; None if somebody else holds it."""
    lock = _take(store, trial_id)
    if lock is None:
        yield None
        return
    mine = Claim(store.holder(trial_id), os.urandom(8).hex())
    stop = threading.Event()
    try:
        write_json(mine.path, _me(mine.token))
        threading.Thread(target=_beat, args=(mine, stop), daemon=True).start()
        yield mine
    finally:
        stop.set()
        with contextlib.suppress(ClaimLostError):
            mine.check()
            mine.path.unlink()
        lock.release()


def holder(store: Store, trial_id: str) -> dict[str, Any] | None:
    """Host, pid and start of the process that works on a trial; None if nobody does."""
    record = _read_holder(store.holder(trial_id))
    if record is None or _beats_elsewhere(store.holder(trial_id), record):
        return record
    lock = _lock(store, trial_id)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return record
    lock.release()
    return None


def _me(token: str) -> dict[str, Any]:
    since = datetime.now(UTC).isoformat(timespec="milliseconds")
    return {"host": socket.gethostname(), "pid": os.getpid(), "token": token, "since": since}


def _take(store: Store, trial_id: str) -> FileLock | None:
    lock = _lock(store, trial_id)
    try:
        lock.acquire(timeout=TAKE_WITHIN_S, poll_interval=0.02)
    except Timeout:
        return None
    # A shared file system without working locks gives the lock to everybody.
    path = store.holder(trial_id)
    record = _read_holder(path)
    if record is not None and _beats_elsewhere(path, record):
        lock.release()
        return None
    return lock


def _lock(store: Store, trial_id: str) -> FileLock:
    return FileLock(str(store.lock(trial_id)), thread_local=False)


def _beats_elsewhere(path: Path, record: dict[str, Any]) -> bool:
    if record["host"] == socket.gethostname():
        return False
    try:
        return time.time() - path.stat().st_mtime < FRESH_S
    except FileNotFoundError:
        return False


def _beat(mine: Claim, stop: threading.Event) -> None:
    while not stop.wait(HEARTBEAT_S):
        # A claim that was lost is noticed by the writer; a late beat must not speak for its taker.
        with contextlib.suppress(OSError, ClaimLostError):
            mine.check()
            os.utime(mine.path)


def _read_holder(path: Path) -> dict[str, Any] | None:
    try:
        return read_json(path)
    except (FileNotFoundError, UserError):
        return None
