"""The local executor: a bounded pool of worker processes on this machine."""

import contextlib
import signal
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from redline.execute.awake import awake
from redline.execute.plan import describe
from redline.execute.process import Event, Inbox, Process
from redline.files import UserError
from redline.store import attempts
from redline.store.finished import read_finished
from redline.store.layout import Store
from redline.store.schema import Status

WORKER = (sys.executable, "-m", "redline.execute.worker")
CHECKPOINT_EVERY_S = 30.0
TICK_S = 0.2
SUSPENDED_S = 10.0
"""A tick of this length means that the machine slept or that all of us were stopped."""

SKIPPED = "skipped"
OnEvent = Callable[[Event], None]


@dataclass(frozen=True)
class Tally:
    """How many trials of one run ended which way; `not_started` were never given out."""

    finished: int
    crashed: int
    timed_out: int
    preempted: int
    skipped: int
    not_started: int


def run(
    store: Store,
    ids: Sequence[str],
    *,
    study: str,
    n_worker: int,
    on_event: OnEvent,
    fail_fast: int | None = None,
    timeout_s: float | None = None,
    stop_after_s: float | None = None,
    checkpoint_every_s: float = CHECKPOINT_EVERY_S,
    command: Sequence[str] = WORKER,
) -> Tally:
    """Train the trials `ids` of a store, `n_worker` at a time, and wait for all of them.

    `on_event` is called in this thread with `started`, `progress`, one last event for each trial
    (`finished`, `crashed`, `timed_out`, `preempted`, `skipped`) and `note`. After `fail_fast`
    failures, or when `stop_after_s` have passed, no further trial starts. `command` starts a
    worker; the store's path, the study's digest and the seconds between checkpoints are appended
    to it.

    Raises:
        KeyboardInterrupt: on SIGINT or SIGTERM, after all workers have ended their attempts.
    """
    command = [*command, str(store.root), study, str(checkpoint_every_s)]
    pool = _Pool(store, deque(ids), command, n_worker, on_event, fail_fast, timeout_s)
    pool.stop_at = None if stop_after_s is None else time.monotonic() + stop_after_s
    with _sigterm_interrupts(), awake() as inhibited:
        if inhibited:
            on_event(_note("idle sleep is off during this run; a closed lid still sleeps"))
        try:
            pool.run()
        finally:
            pool.stop()
    return pool.tally()


@dataclass
class _Pool:
    store: Store
    pending: deque[str]
    command: list[str]
    n_worker: int
    on_event: OnEvent
    fail_fast: int | None
    timeout_s: float | None
    stop_at: float | None = None
    processes: list[Process] = field(default_factory=list[Process])
    inbox: Inbox = field(default_factory=SimpleQueue)
    counts: Counter[str] = field(default_factory=Counter[str])
    put_back: set[str] = field(default_factory=set[str])

    def run(self) -> None:
        tick = time.monotonic()
        while self._feed():
            with contextlib.suppress(Empty):
                self._hear(*self.inbox.get(timeout=TICK_S))
            now = time.monotonic()
            self._pass_time(now - tick)
            tick = now

    def stop(self) -> None:
        """Leave no child and no open attempt behind."""
        for process in self.processes:
            process.dismiss()
        for process in self.processes:
            process.close()
            if process.trial_id is not None:
                self._end_of_dead(process, Status.PREEMPTED, "interrupted")
        self.processes.clear()

    def tally(self) -> Tally:
        ended = (Status.FINISHED, Status.CRASHED, Status.TIMED_OUT, Status.PREEMPTED, SKIPPED)
        return Tally(*(self.counts[name] for name in ended), not_started=len(self.pending))

    def _feed(self) -> bool:
        """Give every idle or missing worker a trial; whether anything is in progress."""
        while self.pending and not self._failed_enough() and not self._out_of_time():
            process = self._idle_process()
            if process is None:
                break
            process.give(self.pending.popleft())
        return any(process.trial_id is not None for process in self.processes)

    def _failed_enough(self) -> bool:
        failures = self.counts[Status.CRASHED] + self.counts[Status.TIMED_OUT]
        return self.fail_fast is not None and failures >= self.fail_fast

    def _out_of_time(self) -> bool:
        return self.stop_at is not None and time.monotonic() >= self.stop_at

    def _idle_process(self) -> Process | None:
        for process in self.processes:
            if process.trial_id is None:
                return process
        if len(self.processes) == self.n_worker:
            return None
        self.processes.append(Process(self.command, self.inbox))
        return self.processes[-1]

    def _hear(self, process: Process, event: Event | None) -> None:
        if event is None:
            self._bury(process)
        elif event["event"] in ("started", "progress"):
            if event["event"] == "started":
                process.busy_s = 0.0  # a trial does not pay for the start of its worker
                process.timed = True
            self.on_event(event)
        else:
            trial_id, process.trial_id = process.trial_id, None
            if event["event"] == Status.PREEMPTED and trial_id and self._again(trial_id):
                self.on_event(_note(f"trial {trial_id} was preempted and goes on"))
            else:
                self._count(event)
            # A verdict means that it was killed for being late while this event was on its way.
            ends = event.get("worker_ends") or event["event"] == Status.PREEMPTED
            if ends or process.verdict is not None:
                self._retire(process)

    def _bury(self, process: Process) -> None:
        """Close the books of a worker that died, unless it was retired before."""
        if process not in self.processes:
            return
        trial_id = process.trial_id
        idle = trial_id is None or attempts.began(self.store, trial_id, process.pid) is None
        if idle and trial_id is not None and self._again(trial_id):
            process.trial_id = None  # it died before it began: the trial is as it was
        if process.trial_id is not None:
            verdict = process.verdict or (Status.CRASHED, process.cause_of_death())
            self._end_of_dead(process, *verdict)
        self._retire(process)

    def _again(self, trial_id: str) -> bool:
        """Put a trial back, once: a worker that can never start must not be started for ever."""
        if trial_id in self.put_back:
            return False
        self.put_back.add(trial_id)
        self.pending.append(trial_id)
        return True

    def _retire(self, process: Process) -> None:
        self.processes.remove(process)
        process.close()

    def _end_of_dead(self, process: Process, status: Status, reason: str) -> None:
        trial_id = process.trial_id
        assert trial_id is not None
        process.trial_id = None
        log = attempts.end_of_dead(self.store, trial_id, process.pid, status, reason)
        event: Event = {"event": status.value, "trial_id": trial_id, "reason": reason}
        if self.store.finished(trial_id).exists():  # death came after the last write
            result = read_finished(self.store, trial_id)["result"]
            event |= {"event": Status.FINISHED.value, "result": result, "reason": ""}
        with contextlib.suppress(UserError):
            event["trial"] = describe(self.store.read_trial(trial_id)[0])
        self._count(event | {"log": str(log) if log else ""})

    def _count(self, event: Event) -> None:
        self.counts[event["event"]] += 1
        self.on_event(event)

    def _pass_time(self, elapsed_s: float) -> None:
        if elapsed_s > SUSPENDED_S:
            self.on_event(_note(f"nothing moved for {elapsed_s:.0f} s: did the machine sleep?"))
        for process in self.processes:
            # A sleep counts as one tick, so that nobody runs out of time in it.
            process.busy_s += min(elapsed_s, 2 * TICK_S)
            if self.timeout_s is not None and process.trial_id is not None and process.timed:
                process.kill_after(self.timeout_s)


def _note(text: str) -> Event:
    return {"event": "note", "text": text}


@contextlib.contextmanager
def _sigterm_interrupts() -> Generator[None, None, None]:
    """Treat SIGTERM as Ctrl-C, where this thread is the one that hears signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
