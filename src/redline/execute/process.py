"""The parent's end of one worker: start it, feed it, hear it, stop it, say why it died."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
from queue import SimpleQueue
from typing import Any

from redline.execute.provenance import THREAD_VARIABLES
from redline.store.schema import Status

STOP_WITHIN_S = 10.0
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": "1000000000", "MALLOC_MMAP_THRESHOLD_": "1000000000"}
"""glibc would give large tensors back after each step and fault them in again: 300 faults a
step."""

Event = dict[str, Any]
Inbox = SimpleQueue["tuple[Process, Event | None]"]


class Process:
    """A fresh interpreter, started and never forked, with at most one trial in hand.

    Its events arrive in `inbox` as (process, event); (process, None) comes last, when it is dead.
    """

    def __init__(self, command: list[str], inbox: Inbox) -> None:
        self.trial_id: str | None = None
        self.busy_s = 0.0
        self.timed = False
        self.verdict: tuple[Status, str] | None = None
        # A file and not a pipe: nobody has to read it for the worker to go on.
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (`close` does)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=worker_environment(),
            text=True,
            encoding="utf-8",
        )
        self._reader = threading.Thread(target=self._read, args=(inbox,), daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def give(self, trial_id: str) -> None:
        """Hand over a trial. If the worker is dead, its last message in the inbox says so."""
        self.trial_id, self.busy_s, self.timed = trial_id, 0.0, False
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{trial_id}\n")
            self._process.stdin.flush()

    def kill_after(self, timeout_s: float) -> None:
        """Kill the worker if its trial takes longer; `verdict` then says how the attempt ended."""
        if self.busy_s > timeout_s and self.verdict is None:
            self.verdict = (Status.TIMED_OUT, f"no end after {timeout_s:g} s")
            self._process.kill()

    def dismiss(self) -> None:
        """Ask the worker to leave; an attempt that is in progress ends as preempted first."""
        if self.trial_id is not None:
            self._process.terminate()
        else:
            self._hang_up()

    def close(self) -> None:
        """Wait for a worker that is leaving, kill it if it does not, and let go of its files."""
        assert self._process.stdout is not None
        try:
            self._process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._hang_up()
        self._reader.join()
        self._process.stdout.close()
        self._stderr.close()

    def cause_of_death(self) -> str:
        """Why a worker died that should have gone on: its signal, or its last words."""
        code = self._process.wait()
        if code < 0:
            guess = " (out of memory?)" if -code == signal.SIGKILL else ""
            return f"killed by signal {-code}{guess}"
        self._stderr.seek(0)
        words = self._stderr.read().decode(errors="replace").strip().splitlines()
        return f"the worker exited with code {code}" + (f": {words[-1]}" if words else "")

    def _hang_up(self) -> None:
        # A worker whose stdin closes exits at once, in the middle of whatever it does.
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def _read(self, inbox: Inbox) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.endswith("\n"):  # a kill may cut the last one
                inbox.put((self, json.loads(line)))
        inbox.put((self, None))


def worker_environment() -> dict[str, str]:
    """The environment of a worker: one thread, since the pool has a worker for each core."""
    return dict(os.environ) | dict.fromkeys(THREAD_VARIABLES, "1") | KEEP_MEMORY
