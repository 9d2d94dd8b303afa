"""What the tests at one depth of one setting say about one peak LR.

An answer comes from the climbs of `necessity` alone. A rate between two tested ones is read only
where both say the same, and a rate beyond the tested ones at most half a decade away and only where
the boundary cannot lie in between: downwards from where QK-norm can be dropped, upwards from where
it is needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from typing import Any

from redline.analysis import necessity as nec
from redline.analysis.comparable import PEAK_LR, PLAIN
from redline.analysis.intervals import MIN_SEEDS
from redline.analysis.verdict import DECIDED, Verdict
from redline.config.analysis import SAME_LR, Analysis

NEEDED, NOT_NEEDED, UNKNOWN = "needed", "not needed", "unknown"

TESTED, BETWEEN, BEYOND = "tested", "between", "beyond"
"""How a value lies to those that were tested."""

MAX_LR_DECADES = 0.5
"""A step of the usual grid 1, 3, 10: a result is carried no further than the grid itself trusts."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Line:
    """One arm against the plain one at one depth of one setting.

    `cells` are its rows of `deltas` by ascending peak LR, those without a pair included; `boundary`
    is its row of `boundaries`. `n_embd`, `n_step` and `tokens` are None where a table of another
    tool does not say them. `has_learned` is false where no arm beats bigram counts.
    """

    control: str
    n_layer: int
    arm: str
    n_embd: int | None
    n_step: int | None
    tokens: int | None
    cells: tuple[Row, ...]
    boundary: Row
    verdict: Verdict
    has_learned: bool


@dataclass(frozen=True)
class Reading:
    """The answer of a line at a peak LR and why; `near` are the tested cells at or around it.

    `factor` leads to the nearest of them and is 1 where the rate is tested.
    """

    line: Line
    answer: str
    why: str
    near: tuple[Row, ...]
    factor: float
    how: str


def read(line: Line, peak_lr: float, analysis: Analysis) -> Reading:
    """What a line says at a peak LR."""
    near, how = nearest(line.cells, peak_lr)
    factor = 1.0 if how == TESTED else min(ratio(row[PEAK_LR], peak_lr) for row in near)
    answer, why = _answer(line, peak_lr, near, how, factor, analysis)
    return Reading(line, answer, why, near, factor, how)


def ratio(a: float, b: float) -> float:
    """How many times the larger of two positive numbers is the smaller."""
    return max(a, b) / min(a, b)


def is_same_lr(a: float, b: float) -> bool:
    """Whether two rates are one rate in two spellings."""
    return abs(log10(a / b)) <= SAME_LR


def nearest(cells: Sequence[Row], peak_lr: float) -> tuple[tuple[Row, ...], str]:
    """The cell at a rate, or those next to it on each side, and how the rate lies to them."""
    here = min(cells, key=lambda row: ratio(row[PEAK_LR], peak_lr))
    if is_same_lr(here[PEAK_LR], peak_lr):
        return (here,), TESTED
    below = [row for row in cells if row[PEAK_LR] < peak_lr][-1:]
    above = [row for row in cells if row[PEAK_LR] > peak_lr][:1]
    return (*below, *above), BETWEEN if below and above else BEYOND


def cell_answer(line: Line, row: Row) -> str:
    """What the climbs say of one tested cell: needed, not needed, or unknown."""
    drop, need = line.boundary[nec.DROPPABLE_TO], line.boundary[nec.NEEDED_FROM]
    if line.verdict.standing != DECIDED:
        return UNKNOWN
    if drop is not None and row[PEAK_LR] <= drop:
        return NOT_NEEDED
    if need is not None and row[PEAK_LR] >= need and row[nec.IN_RANGE]:
        return NEEDED
    return UNKNOWN


def is_beyond_range(near: Sequence[Row]) -> bool:
    """Whether the arm itself fails at a cell or at one of two neighbours."""
    return any(row[nec.STATE] == nec.BOTH_FAIL for row in near)


def _answer(
    line: Line, peak_lr: float, near: Sequence[Row], how: str, factor: float, analysis: Analysis
) -> tuple[str, str]:
    top = line.boundary[nec.RANGE_TOP]
    if top is not None and is_beyond_range(near):
        return UNKNOWN, (
            f"Above peak LR {top:g} the {line.arm} arm itself is not stable in most seeds: no "
            "difference is read there."
        )
    if how == BEYOND and log10(factor) > MAX_LR_DECADES + SAME_LR:
        side = "below the lowest" if near[0][PEAK_LR] > peak_lr else "above the highest"
        return UNKNOWN, (
            f"Peak LR {peak_lr:g} lies a factor of {factor:.3g} {side} tested, "
            f"{near[0][PEAK_LR]:g}: a result is carried half a decade and no further."
        )
    if line.verdict.standing != DECIDED:
        return UNKNOWN, " ".join((line.verdict.rule, *_reasons(line, near)))
    answers = {cell_answer(line, row) for row in near}
    if answers == {NEEDED} and not (how == BEYOND and near[0][PEAK_LR] > peak_lr):
        return NEEDED, _needed(line, analysis)
    if answers == {NOT_NEEDED} and not (how == BEYOND and near[0][PEAK_LR] < peak_lr):
        return NOT_NEEDED, _not_needed(line, near, analysis)
    if how == BEYOND and len(answers - {UNKNOWN}) == 1:
        return UNKNOWN, _boundary_in_between(peak_lr, near[0], *answers)
    return UNKNOWN, " ".join((_open(line), *_states(line, near)))


def _needed(line: Line, analysis: Analysis) -> str:
    need, top = line.boundary[nec.NEEDED_FROM], line.boundary[nec.RANGE_TOP]
    rates = f"At peak LR {need:g}" if need == top else f"From peak LR {need:g} to {top:g}"
    return f"{rates} leaving QK-norm out is shown to cost more than {analysis.m_nec:g} nat."


def _not_needed(line: Line, near: Sequence[Row], analysis: Analysis) -> str:
    drop = line.boundary[nec.DROPPABLE_TO]
    first = "At" if drop == line.cells[0][PEAK_LR] else "Up to"
    said = f"{first} peak LR {drop:g} dropping QK-norm is shown to cost less than "
    hurts = [f"{row[PEAK_LR]:g}" for row in near if row[nec.STATE] == nec.HURTS]
    gain = f" At {' and '.join(hurts)} {PLAIN} is better than {line.arm}." if hurts else ""
    return f"{said}{analysis.m_eq:g} nat.{gain}"


def _boundary_in_between(peak_lr: float, row: Row, answer: str) -> str:
    side, where = ("lowest", "lower") if answer == NEEDED else ("highest", "higher")
    return (
        f"At peak LR {row[PEAK_LR]:g}, the {side} tested, QK-norm is {answer}; the boundary lies "
        f"somewhere {where}, on which side of {peak_lr:g} is not known."
    )


def _open(line: Line) -> str:
    drop, need = line.boundary[nec.DROPPABLE_TO], line.boundary[nec.NEEDED_FROM]
    said = [
        *([f"can be dropped up to peak LR {drop:g}"] if drop is not None else []),
        *([f"is needed from peak LR {need:g}"] if need is not None else []),
    ]
    return f"Shown is only that QK-norm {' and '.join(said)}."


def _reasons(line: Line, near: Sequence[Row]) -> list[str]:
    """Why nothing is decided here, where seeds are enough and the verdict has not said it."""
    enough = line.has_learned and all(row[nec.N_PAIR] >= MIN_SEEDS for row in near)
    return _states(line, near) if enough else []


def _states(line: Line, near: Sequence[Row]) -> list[str]:
    """The state of the cells at or around a rate, in words."""
    return [f"At {row[PEAK_LR]:g}: {_state(line, row)}." for row in near]


def _state(line: Line, row: Row) -> str:
    answer, state = cell_answer(line, row), row[nec.STATE]
    if answer != UNKNOWN:
        return answer
    if state == nec.UNDECIDED:
        return f"{state}, {row[nec.WHY]}"
    if state == nec.SMALL:
        return f"{state} ({row[nec.MEAN_DELTA]:+.3f} nat), neither needed nor free to drop"
    if line.verdict.standing != DECIDED:
        return state
    return f"{state} on its own, which no unbroken sequence confirms"
