"""A run as it happens: a heat map of the grid that fills in, or plain lines in a log."""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from redline.analysis.comparable import (
    CONTROL,
    N_LAYER,
    PEAK_LR,
    SETTING,
    planned,
    setting_name,
    short_names,
)
from redline.cli import show
from redline.config.cost import cost
from redline.config.trial import Trial
from redline.execute.plan import RETRY, Plan, describe
from redline.session import Session
from redline.store.finished import read_finished
from redline.store.reader import last_error
from redline.store.schema import Column, Status

REFRESH_PER_S = 4
COOL, HOT = (20, 90, 160), (250, 150, 40)  # low and high loss; readable with colour-blind eyes

Event = dict[str, Any]
Row = tuple[str, int, str]  # setting, n_layer, arm


@dataclass
class Progressed:
    """What is known of the trials while they run."""

    trials: dict[str, Trial]
    losses: dict[str, float] = field(default_factory=dict[str, float])
    non_finite: set[str] = field(default_factory=set[str])
    failed: set[str] = field(default_factory=set[str])
    running: dict[str, Event] = field(default_factory=dict[str, Event])
    flops_done: float = 0.0
    tokens_done: int = 0
    started_at: float = field(default_factory=time.monotonic)

    @property
    def ended(self) -> set[str]:
        """The trials that this run will not touch again."""
        return self.losses.keys() | self.non_finite | self.failed

    def finish(self, trial_id: str, result: dict[str, Any]) -> None:
        if result["non_finite"] is not None:
            self.non_finite.add(trial_id)
        else:
            self.losses[trial_id] = float(result["final_loss"])

    def hear(self, event: Event) -> None:
        """Take one event of the executor."""
        trial_id = event.get("trial_id", "")
        match event["event"]:
            case "progress":
                self._advance(trial_id, event)
            case "finished":
                self._advance(trial_id, {"step": event["result"]["steps_done"]})
                self.running.pop(trial_id, None)
                self.finish(trial_id, event["result"])
            case "crashed" | "timed_out":
                self.running.pop(trial_id, None)
                self.failed.add(trial_id)
            case "preempted":
                self.running.pop(trial_id, None)
            case _:
                pass

    def _advance(self, trial_id: str, event: Event) -> None:
        """Count the work since the last message; a resumed trial starts where it stood."""
        before = self.running.get(trial_id)
        train = self.trials[trial_id].train
        if before is not None:
            steps = max(0, event["step"] - before["step"])
            price = cost(self.trials[trial_id])
            self.flops_done += price.flops * steps / train.n_step
            self.tokens_done += price.tokens_seen * steps // train.n_step
        self.running[trial_id] = event

    def tokens_per_s(self) -> float:
        return self.tokens_done / max(1e-9, time.monotonic() - self.started_at)

    def eta_s(self, ids: list[str]) -> float | None:
        """Seconds left at the measured speed; trials differ, so the unit is the FLOP."""
        if not self.flops_done:
            return None
        left = 0.0
        for trial_id in set(ids) - self.ended:
            trial = self.trials[trial_id]
            step = self.running.get(trial_id, {"step": 0})["step"]
            left += cost(trial).flops * (1 - step / trial.train.n_step)
        return left * (time.monotonic() - self.started_at) / self.flops_done


@contextmanager
def follow(
    session: Session, plan: Plan, ids: list[str], console: Console
) -> Generator[Callable[[Event], None], None, None]:
    """Show a run while it lasts; yields the function that takes the executor's events."""
    state = Progressed(session.by_id)
    for trial_id, status in plan.statuses.items():
        if status is Status.FINISHED:
            state.finish(trial_id, read_finished(session.store, trial_id)["result"])
    if not console.is_terminal:
        yield lambda event: _say(event, state, session, ids, console)
        return
    board = Board(session, state, ids)
    with Live(console=console, refresh_per_second=REFRESH_PER_S, get_renderable=board.draw):

        def on_event(event: Event) -> None:
            state.hear(event)
            if event["event"] in {*RETRY, "note", "preempted"}:
                _say_failure(event, session, console)

        yield on_event


def _say(
    event: Event, state: Progressed, session: Session, ids: list[str], console: Console
) -> None:
    state.hear(event)
    if event["event"] == "finished":
        trial = session.by_id[event["trial_id"]]
        result = event["result"]
        loss = (
            f"loss {float(result['final_loss']):.3f}"
            if result["non_finite"] is None
            else f"non-finite {result['non_finite']} at step {result['non_finite_step']}"
        )
        done = len(set(ids) & state.ended)
        console.print(f"[{done}/{len(ids)}] {describe(trial)}: {loss}; {_speed(state, ids)}")
    elif event["event"] not in ("progress", "started"):
        _say_failure(event, session, console)


def _say_failure(event: Event, session: Session, console: Console) -> None:
    """Name a failed trial at once, with its coordinates, its last lines and its log."""
    if event["event"] == "note":
        console.print(event["text"])
        return
    trial = session.by_id[event["trial_id"]]
    console.print(f"{event['event']}: {describe(trial)}: {event.get('reason', '')}")
    if event["event"] in RETRY:
        console.print(last_error(session.store, event["trial_id"], n_line=6))
        console.print(f"log: {event.get('log', '')}")


def _speed(state: Progressed, ids: list[str]) -> str:
    eta = state.eta_s(ids)
    left = "" if eta is None else f", {show.duration(eta)} left"
    return f"{show.large(state.tokens_per_s())} tokens/s{left}"


class Board:
    """The heat map: a row for each arm at each depth, a column for each peak LR."""

    def __init__(self, session: Session, state: Progressed, ids: list[str]):
        self.state, self.ids = state, ids
        self.lrs = sorted({trial.train.peak_lr for trial in session.by_id.values()})
        self.cells: dict[Row, dict[float, list[str]]] = defaultdict(lambda: defaultdict(list))
        rows = planned(list(session.by_id.items()))
        for row in rows.with_columns(setting_name(rows, SETTING).alias(CONTROL)).iter_rows(
            named=True
        ):
            key = (row[CONTROL], row[N_LAYER], row[Column.ARM])
            self.cells[key][row[PEAK_LR]].append(row[Column.TRIAL_ID])
        self.bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), expand=False
        )
        self.task = self.bar.add_task("trials", total=len(ids))

    def draw(self) -> RenderableType:
        """The picture of this moment."""
        state = self.state
        self.bar.update(self.task, completed=len(set(self.ids) & state.ended))
        legend = "number: mean final loss so far   ✗ non-finite   ! failed   ▸ running   · waiting"
        return Group(self._map(), Text(legend, "dim"), self.bar, Text(_speed(state, self.ids)))

    def _map(self) -> Table:
        table = Table(box=None, padding=(0, 0, 0, 1))
        for name in ("", "n_layer", "arm", *(f"{lr:g}" for lr in self.lrs)):
            table.add_column(name, justify="right")
        losses = self.state.losses.values()
        low, high = (min(losses), max(losses)) if losses else (0.0, 1.0)
        names = short_names(setting for setting, _, _ in self.cells)
        for (setting, n_layer, arm), row in self.cells.items():
            marks = [self._cell(row[lr], low, high) if lr in row else Text("") for lr in self.lrs]
            table.add_row(names[setting], str(n_layer), arm, *marks)
        return table

    def _cell(self, ids: list[str], low: float, high: float) -> Text:
        state = self.state
        losses = [state.losses[trial_id] for trial_id in ids if trial_id in state.losses]
        marks = "✗" * sum(trial_id in state.non_finite for trial_id in ids)
        marks += "!" * sum(trial_id in state.failed for trial_id in ids)
        marks += "▸" if any(trial_id in state.running for trial_id in ids) else ""
        if not losses:
            return Text((marks or "·").rjust(7))
        mean = math.fsum(losses) / len(losses)
        heat = 0.0 if high <= low else (mean - low) / (high - low)
        red, green, blue = (round(a + (b - a) * heat) for a, b in zip(COOL, HOT, strict=True))
        ink = "black" if heat > 0.5 else "white"
        return Text(f"{mean:.3f}{marks}".rjust(7), f"{ink} on rgb({red},{green},{blue})")
