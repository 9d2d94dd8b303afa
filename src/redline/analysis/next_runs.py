"""The cheapest runs that would settle a question that the results leave open, as points.

A point changes only what it names of a finished trial of its setting; nothing here trains.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice, product
from typing import Any

import polars as pl

from redline.analysis import necessity as nec
from redline.analysis.comparable import CONTROL, N_LAYER, PEAK_LR, PLAIN, SEED, setting_fields
from redline.analysis.findings import Findings
from redline.analysis.intervals import MIN_SEEDS
from redline.analysis.necessity import DROPPABLE, HURTS, MEAN_DELTA, N_PAIR, UNDECIDED
from redline.analysis.place import SAME_BUDGET, Place, Support, amount
from redline.analysis.power import MAX_SEEDS, seeds_needed
from redline.analysis.reading import (
    BEYOND,
    NEEDED,
    NOT_NEEDED,
    UNKNOWN,
    Line,
    Reading,
    Row,
    cell_answer,
    is_beyond_range,
    is_same_lr,
    ratio,
)
from redline.config.analysis import Analysis
from redline.store.schema import Column

MAX_NEIGHBOUR = 10.0
"""Rates within a decade show how well an arm can do, by which its losses are called unstable."""


@dataclass(frozen=True)
class Point:
    """One trial to run: `changes` maps the dotted paths of a trial to values; the arm by name."""

    arm: str
    changes: Mapping[str, Any]


@dataclass(frozen=True)
class NextRuns:
    """What to run next and why; without points `why` says that no run would help, or is empty.

    A point equals the finished trial `like` in all that it does not name. `is_planned` says that
    the sweep itself asks for these trials and lacks their results.
    """

    why: str
    points: tuple[Point, ...]
    like: str
    is_planned: bool


def none(why: str) -> NextRuns:
    """No runs, and why."""
    return NextRuns(why, (), "", is_planned=False)


def at_tested_place(found: Findings, place: Place, reading: Reading) -> NextRuns:
    """What would settle the question where depth, width and budget are those of the results."""
    line, near, analysis = reading.line, reading.near, found.analysis
    if reading.answer != UNKNOWN and reading.how != BEYOND:
        return none("")
    if is_beyond_range(near):
        return none("No run would settle it: the arm itself fails there.")
    if missing := _missing(found, line, near):
        return missing
    if not line.has_learned:
        return none("More seeds would settle nothing: no arm has learned enough; train longer.")
    if reading.how == BEYOND or len({_side(row, analysis) for row in near}) > 1:
        why = f"Peak LR {place.peak_lr:g} itself is not tested"
        return _design(found, place, line, [_snapped(found, place.peak_lr)], MIN_SEEDS, why)
    path = _path(line, near, analysis)
    decided = [f"{row[PEAK_LR]:g} {row[nec.STATE]}" for row in path if row[nec.STATE] != UNDECIDED]
    if decided:
        return none(f"No run would settle it: the seeds have decided at {', '.join(decided)}.")
    if missing := _missing(found, line, path):
        return missing
    sides = {_side(row, analysis) for row in near}
    astray = [r for r in path if r[N_PAIR] >= MIN_SEEDS and _side(r, analysis) not in sides]
    if astray:
        rates = ", ".join(f"{row[PEAK_LR]:g}" for row in astray)
        return none(
            f"More seeds would hardly settle it: at peak LR {rates} the mean points to another "
            "answer, which breaks the sequence."
        )
    return _more_seeds(found, place, line, path)


def at_new_place(found: Findings, place: Place, support: Support) -> NextRuns:
    """The smallest paired design at a depth, width or budget that has no results: 3 seeds."""
    line = support.lines[0]
    asked = _snapped(found, place.peak_lr)
    rates = sorted({row[PEAK_LR] for known in support.lines for row in known.cells})
    below = [rate for rate in rates if rate < asked and not is_same_lr(rate, asked)][-1:]
    above = [rate for rate in rates if rate > asked and not is_same_lr(rate, asked)][:1]
    around = [rate for rate in (*below, *above) if ratio(rate, asked) <= MAX_NEIGHBOUR]
    where = ", ".join(amount(axis, value) for axis, value in place.axes.items())
    why = f"Nothing is tested at {where}; the smallest design that can decide there"
    return _design(found, place, line, sorted([asked, *around]), MIN_SEEDS, why)


def _side(row: Row, analysis: Analysis) -> str:
    """Which answer the mean of a cell points to; unknown between the margins and without a pair."""
    mean = row[MEAN_DELTA]
    if mean is None or analysis.m_eq <= mean <= analysis.m_nec:
        return UNKNOWN
    return NEEDED if mean > analysis.m_nec else NOT_NEEDED


def _path(line: Line, near: Sequence[Row], analysis: Analysis) -> list[Row]:
    """The cells that an unbroken climb to the place still lacks.

    It is the climb that the means at the place point to: from below to show that QK-norm can be
    dropped, from the top to show that it is needed. Where they point nowhere, the place itself.
    """
    side = _side(near[0], analysis)
    lowest, highest = near[0][PEAK_LR], near[-1][PEAK_LR]
    if side == NOT_NEEDED:
        climb, wanted = [r for r in line.cells if r[PEAK_LR] <= highest], (DROPPABLE, HURTS)
    elif side == NEEDED:
        climb, wanted = [r for r in line.cells if r[PEAK_LR] >= lowest and _counts(r)], (NEEDED,)
    else:
        climb, wanted = list(near), ()
    return [r for r in climb if cell_answer(line, r) == UNKNOWN and r[nec.STATE] not in wanted]


def _counts(row: Row) -> bool:
    """Whether a cell is in the way of the climb from the top: a failing arm is above the range."""
    return row[nec.STATE] != nec.BOTH_FAIL


def _missing(found: Findings, line: Line, cells: Sequence[Row]) -> NextRuns | None:
    """The trials of these cells that the sweep asks for and that have no result."""
    rates = [row[PEAK_LR] for row in cells]
    here = found.missing.filter(
        (pl.col(CONTROL) == line.control)
        & (pl.col(N_LAYER) == line.n_layer)
        & pl.col(Column.ARM).is_in([PLAIN, line.arm])
        & pl.col(PEAK_LR).is_in(rates)
    ).sort(SEED, PEAK_LR, Column.ARM)
    if not here.height:
        return None
    points = tuple(
        Point(row[Column.ARM], _changes(line.n_layer, row[PEAK_LR], row[SEED]))
        for row in here.iter_rows(named=True)
    )
    why = "These trials are part of the sweep and have no result"
    return NextRuns(why, points, _like(found, line)[Column.TRIAL_ID], is_planned=True)


def _more_seeds(found: Findings, place: Place, line: Line, cells: Sequence[Row]) -> NextRuns:
    """Seeds for cells that are undecided: the fewest that decide, or those for 80 % power."""
    rates = [row[PEAK_LR] for row in cells]
    named = ", ".join(f"{rate:g}" for rate in rates)
    too_few = [row for row in cells if row[N_PAIR] < MIN_SEEDS]
    if too_few:
        why = f"{MIN_SEEDS} seeds are the fewest that decide, and peak LR {named} is open"
        return _design(found, place, line, rates, MIN_SEEDS, why)
    if any(row[nec.LOWER] is None for row in cells):
        return none(f"Seeds that do not differ at all cannot decide at peak LR {named}.")
    needed = {row[PEAK_LR]: _seeds(row, found.analysis) for row in cells}
    hopeless = ", ".join(f"{rate:g}" for rate, n in needed.items() if n is None)
    if hopeless:
        return none(f"{MAX_SEEDS} seeds would not decide at peak LR {hopeless}.")
    most = max(n for n in needed.values() if n is not None)
    why = f"With the spread seen so far, {most} seeds have 80 % power at peak LR {named}"
    return _design(found, place, line, rates, most, why)


def _seeds(row: Row, analysis: Analysis) -> int | None:
    """Seeds with which a cell would decide, for the margin that its mean lies beyond.

    A mean between the margins can only be shown to lie there: to be a small benefit.
    """
    mean, sd, n = row[MEAN_DELTA], row[nec.DELTA_SD], row[N_PAIR]
    bounds = {NOT_NEEDED: [analysis.m_eq], NEEDED: [analysis.m_nec]}.get(
        _side(row, analysis), [analysis.m_eq, analysis.m_nec]
    )
    found = [seeds_needed(mean, sd, n, bound) for bound in bounds]
    return None if None in found else max(n + 1, *(seeds for seeds in found if seeds is not None))


def _design(
    found: Findings, place: Place, line: Line, rates: Sequence[float], n_seed: int, why: str
) -> NextRuns:
    """Both arms at these rates with `n_seed` seeds, less what has finished there."""
    like = _like(found, line)
    fields = {"model.n_embd": place.n_embd, "train.n_step": _n_step(line, place)}
    moved = {
        path: value
        for path, value in fields.items()
        if value is not None and value != like[path.rpartition(".")[2]]
    }
    done = _finished(found, like, place.n_layer, moved)
    points = tuple(
        Point(arm, _changes(place.n_layer, rate, seed) | moved)
        for seed, rate, arm in product(_seeds_of(found, n_seed), rates, (PLAIN, line.arm))
        if (arm, rate, seed) not in done
    )
    if not points:
        return none(f"{why}, but all of these have run.")
    return NextRuns(why, points, like[Column.TRIAL_ID], is_planned=False)


def _changes(n_layer: int, peak_lr: float, seed: int) -> dict[str, Any]:
    return {"model.n_layer": n_layer, "train.peak_lr": peak_lr, "seed": seed}


def _like(found: Findings, line: Line) -> Row:
    """A finished trial of the setting."""
    return found.trials.filter(pl.col(CONTROL) == line.control).row(0, named=True)


def _n_step(line: Line, place: Place) -> int | None:
    """The updates of a trial at the place; those of the line where the budgets are one."""
    asked = place.n_step
    if place.tokens is not None and line.tokens is not None and line.n_step is not None:
        asked = max(1, round(place.tokens * line.n_step / line.tokens))
    is_same = asked and line.n_step and ratio(asked, line.n_step) <= SAME_BUDGET
    return line.n_step if is_same else asked


def _finished(
    found: Findings, like: Row, n_layer: int, moved: Mapping[str, Any]
) -> set[tuple[str, float, int]]:
    """(arm, peak LR, seed) of the finished trials that are `like` one but for what was moved."""
    wanted = {name: like[name] for name in setting_fields(found.trials, hashes=True)}
    wanted |= {path.rpartition(".")[2]: value for path, value in moved.items()}
    same = [pl.col(name).eq_missing(pl.lit(value)) for name, value in wanted.items()]
    here = found.trials.filter(pl.all_horizontal(*same), pl.col(N_LAYER) == n_layer)
    return set(here.select(Column.ARM, PEAK_LR, SEED).iter_rows())


def _seeds_of(found: Findings, n: int) -> list[int]:
    """The seeds of the sweep, lowest first, and further ones until there are `n`."""
    used = sorted(set[int](found.trials[SEED]))
    return [*used, *islice(count(used[-1] + 1), max(0, n - len(used)))][:n]


def _snapped(found: Findings, peak_lr: float) -> float:
    """The rate of the sweep that is this rate by another spelling, or the rate itself."""
    near = min(found.cells[PEAK_LR], key=lambda rate: ratio(rate, peak_lr))
    return near if is_same_lr(near, peak_lr) else peak_lr
