"""One interpreter that trains trials one after the other: `python -m redline.execute.worker`.

Trial ids arrive on stdin, one a line; events leave on stdout as JSON lines. Everything else that
is printed during an attempt goes to its log. When stdin closes, the parent is gone or has no more
work, and the worker exits at once.
"""

import contextlib
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from redline.config.trial import Trial
from redline.execute.plan import describe
from redline.execute.provenance import provenance
from redline.files import read_json, to_json, write_json
from redline.store import attempts
from redline.store.attempts import Attempt
from redline.store.claims import Claim, ClaimLostError, claim
from redline.store.layout import Store
from redline.store.schema import Column, Status
from redline.store.writer import DISK_FULL, Recorder

PROGRESS_EVERY_S = 0.25

Event = dict[str, Any]
Emit = Callable[[Event], None]


class PreemptedError(BaseException):
    """SIGTERM. Not an Exception, so that no training code takes it for a failure of its own."""


@dataclass(frozen=True)
class Worker:
    """What stays the same from trial to trial.

    `load(token_sha256)` returns a corpus and `train(trial, corpus, recorder, checkpoint_every_s)`
    the result record; `emit` takes the events of a trial in progress.
    """

    store: Store
    study: str
    load: Callable[[str], Any]
    train: Callable[..., dict[str, Any]]
    emit: Emit
    checkpoint_every_s: float

    def work(self, trial_id: str) -> Event:
        """Train one trial if it is free and unfinished; the last event says how that went.

        No failure to begin, to load or to train leaves as an exception: the trial has crashed.
        """
        with contextlib.ExitStack() as until_the_end:
            try:
                held = until_the_end.enter_context(claim(self.store, trial_id))
                if held is None:
                    return _event("skipped", trial_id, reason="another process holds it")
                if self.store.finished(trial_id).exists():
                    return _event("skipped", trial_id, reason="it is finished")
                attempt = attempts.begin(self.store, trial_id, self.study, provenance("local"))
                until_the_end.enter_context(_printing_to(attempt.log))
            except OSError as error:
                return _event(Status.CRASHED.value, trial_id, reason=_reason(error), log="")
            return self._attempt(trial_id, attempt, held)

    def _attempt(self, trial_id: str, attempt: Attempt, held: Claim) -> Event:
        recorder = Recorder(self.store, trial_id, claim=held, study=self.study)
        about: Event = {"log": str(attempt.log)}
        try:
            trial, tokens = self.store.read_trial(trial_id)
            about["trial"] = describe(trial)
            self.emit(_event("started", trial_id, **about, n_step=trial.train.n_step))
            write_json(self.store.provenance(trial_id), read_json(attempt.record)["provenance"])
            recorder.on_step = _progress(trial_id, trial, self.emit)
            corpus = self.load(tokens.token_sha256)
            result = self.train(trial, corpus, recorder, self.checkpoint_every_s)
            recorder.finish(result)
        except PreemptedError:
            status, about["reason"] = Status.PREEMPTED, "terminated"
        except ClaimLostError as error:
            status, about["reason"] = Status.PREEMPTED, str(error)
        except Exception as error:
            status, about["reason"] = Status.CRASHED, _reason(error)
            about["worker_ends"] = _is_out_of_memory(error)
            _keep_traceback(attempt.log)
        else:
            status, about["result"] = Status.FINISHED, result
        recorder.close()
        _end(attempt, status, about.get("reason", ""), recorder)
        return _event(status.value, trial_id, **about)


def serve(worker: Worker) -> int:
    """Work through the ids on stdin until it closes; return an exit code if it ends before."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which terminates us
    signal.signal(signal.SIGTERM, _preempt)
    ids: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read_ids, args=(ids,), daemon=True).start()
    try:
        while True:
            event = worker.work(ids.get())
            worker.emit(event)
            if event["event"] == Status.PREEMPTED:
                return 128 + signal.SIGTERM
            # Freed memory need not come back to the system: the next trial gets a new process.
            if event.get("worker_ends"):
                return 0
    except PreemptedError:
        return 128 + signal.SIGTERM


def emitter() -> Emit:
    """Take stdout for events alone; whatever else is printed there goes to stderr from now on."""
    file = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def emit(event: Event) -> None:
        try:
            file.write(to_json(event) + "\n")
            file.flush()
        except BrokenPipeError:
            os._exit(0)  # the parent is gone; this must not count as a crash of the trial

    return emit


def run_until_done(worker: Worker) -> NoReturn:
    """`serve`, then leave without the shutdown of the interpreter.

    A thread that waits for stdin makes that shutdown abort.
    """
    code = 1
    try:
        code = serve(worker)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def main() -> NoReturn:
    """Serve the store that the command line names, for the study with the given digest."""
    emit = emitter()
    from redline.data.tokens import load
    from redline.train.device import use_one_thread
    from redline.train.loop import train

    use_one_thread()

    root, study, checkpoint_every_s = sys.argv[1:]
    worker = Worker(Store(Path(root)), study, load, train, emit, float(checkpoint_every_s))
    run_until_done(worker)


def _read_ids(ids: "queue.SimpleQueue[str]") -> None:
    for line in sys.stdin:
        ids.put(line.strip())
    os._exit(0)


def _preempt(signum: int, frame: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise PreemptedError


def _event(kind: str, trial_id: str, **about: Any) -> Event:
    return {"event": kind, "trial_id": trial_id, **about}


def _progress(trial_id: str, trial: Trial, emit: Emit) -> Callable[[dict[str, Any]], None]:
    tokens_per_step = trial.train.batch_size * trial.model.block_size
    due = 0.0

    def report(row: dict[str, Any]) -> None:
        nonlocal due
        now = time.monotonic()
        if now < due:
            return
        due = now + PROGRESS_EVERY_S
        step = row[Column.STEP]
        emit(
            _event(
                "progress",
                trial_id,
                step=step,
                n_step=trial.train.n_step,
                loss=row.get(Column.LOSS),
                tokens=step * tokens_per_step,
            )
        )

    return report


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno in DISK_FULL:
        return f"disk full: {error}"
    return traceback.format_exception_only(error)[-1].strip()


def _is_out_of_memory(error: Exception) -> bool:
    # torch has a class of its own for accelerators and a bare RuntimeError for the CPU.
    named = type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in str(error)
    return isinstance(error, MemoryError) or named


def _keep_traceback(log: Path) -> None:
    with contextlib.suppress(OSError), log.open("a") as file:
        traceback.print_exc(file=file)


def _end(attempt: Attempt, status: Status, reason: str, recorder: Recorder) -> None:
    first_step, last_step = recorder.first_step, recorder.last_step
    try:
        attempts.end(attempt, status, reason=reason, first_step=first_step, last_step=last_step)
    except OSError as error:
        # On a full disk the attempt stays without an end: it counts as preempted, which is safe.
        print(f"the end of this attempt could not be written: {error}", file=sys.stderr)


@contextlib.contextmanager
def _printing_to(log: Path) -> Generator[None, None, None]:
    # By descriptor, so that the messages of native libraries are caught as well.
    kept = {fd: os.dup(fd) for fd in (1, 2)}
    try:
        with log.open("ab") as file:
            for fd in kept:
                os.dup2(file.fileno(), fd)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for fd, original in kept.items():
            os.dup2(original, fd)
            os.close(original)


if __name__ == "__main__":
    main()
