"""The history of a trial's execution: one JSON file and one log for each attempt."""

import os
import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from redline.files import read_json, write_json
from redline.store.layout import Store
from redline.store.schema import Status


@dataclass(frozen=True)
class Attempt:
    """One try at a trial: `record` says when, where and how it ended, `log` what it printed."""

    record: Path

    @property
    def log(self) -> Path:
        return self.record.with_suffix(".log")


def begin(store: Store, trial_id: str, study: str, provenance: dict[str, Any]) -> Attempt:
    """Open the next attempt; the caller holds the claim. Without an end it counts as preempted.

    Every attempt keeps its provenance: a resumed trial may have seen two machines or versions.
    """
    directory = store.attempts(trial_id)
    directory.mkdir(exist_ok=True)
    earlier = _records(store, trial_id)
    number = int(earlier[-1].stem) + 1 if earlier else 1
    attempt = Attempt(directory / f"{number}.json")
    start = {
        "started": _now().isoformat(timespec="milliseconds"),
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "study": study,
        "provenance": provenance,
    }
    write_json(attempt.record, start)
    return attempt


def end(
    attempt: Attempt,
    status: Status,
    *,
    reason: str = "",
    first_step: int | None = None,
    last_step: int | None = None,
) -> None:
    """Write how an attempt ended and which steps it did (None: it did none)."""
    start = read_json(attempt.record)
    ended = _now()
    close = {
        "ended": ended.isoformat(timespec="milliseconds"),
        "status": status,
        "reason": reason,
        "elapsed_s": (ended - datetime.fromisoformat(start["started"])).total_seconds(),
        "first_step": first_step,
        "last_step": last_step,
    }
    write_json(attempt.record, start | close)


def began(store: Store, trial_id: str, pid: int) -> Attempt | None:
    """The latest attempt that process `pid` of this host began, if it began one."""
    for record in reversed(_records(store, trial_id)):
        content = read_json(record)
        if content["pid"] == pid and content["host"] == socket.gethostname():
            return Attempt(record)
    return None


def end_of_dead(store: Store, trial_id: str, pid: int, status: Status, reason: str) -> Path | None:
    """End the attempt that process `pid` of this host left open; its log, if it began one."""
    attempt = began(store, trial_id, pid)
    if attempt is None:
        return None
    if "ended" not in read_json(attempt.record):
        with attempt.log.open("a") as log:
            log.write(f"{reason}\n")
        end(attempt, status, reason=reason)
    return attempt.log


def attempts(store: Store, trial_id: str) -> list[dict[str, Any]]:
    """Every attempt at a trial in order, as `attempts/N.json` has it."""
    return [read_json(record) for record in _records(store, trial_id)]


def last_log(store: Store, trial_id: str) -> Path | None:
    """The log of the latest attempt."""
    records = _records(store, trial_id)
    return Attempt(records[-1]).log if records else None


def _records(store: Store, trial_id: str) -> list[Path]:
    return sorted(store.attempts(trial_id).glob("[0-9]*.json"), key=lambda path: int(path.stem))


def _now() -> datetime:
    return datetime.now(UTC)
