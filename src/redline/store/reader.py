"""What the files say about a trial: its status, its attempts, its last words, its damage."""

import json

from redline.store import claims, finished
from redline.store.attempts import attempts, last_log
from redline.store.layout import Store
from redline.store.schema import Column, Status

__all__ = ["attempts", "last_error", "last_log", "last_step", "status", "verify"]

TAIL_BYTES = 4096


def status(store: Store, trial_id: str) -> Status:
    """The execution status of a trial, from its files alone.

    `damaged` is seen here by sizes and by the seal of `finished.json`; `verify` reads every byte.
    """
    if store.finished(trial_id).exists():
        damaged = finished.looks_damaged(store, trial_id)
        return Status.DAMAGED if damaged else Status.FINISHED
    if claims.holder(store, trial_id) is not None:
        return Status.RUNNING
    history = attempts(store, trial_id)
    if not history:
        return Status.PLANNED
    # An attempt that ended as finished while finished.json is gone: somebody removed the result.
    last = Status(history[-1].get("status", Status.PREEMPTED))
    return Status.PLANNED if last is Status.FINISHED else last


def last_error(store: Store, trial_id: str, n_line: int = 12) -> str:
    """The last lines that the latest attempt printed: a traceback, if it crashed."""
    log = last_log(store, trial_id)
    if log is None or not log.exists():
        return ""
    return "\n".join(log.read_text("utf-8", errors="replace").splitlines()[-n_line:])


def last_step(store: Store, trial_id: str) -> int:
    """The last step whose row is on the disk; 0 before there is one."""
    path = store.series(trial_id)
    if not path.exists():
        return 0
    # The file may be large and its last line cut: the whole lines of its end are enough.
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        whole = [line for line in file.read().split(b"\n")[1:-1] if line]
    return json.loads(whole[-1])[Column.STEP] if whole else 0


def verify(store: Store, trial_id: str) -> tuple[str, ...]:
    """Names of the damaged files of a finished trial; empty if all is well or not finished."""
    if not store.finished(trial_id).exists():
        return ()
    return finished.damaged_files(store, trial_id)
