"""Is QK-norm needed at a depth, width, budget and peak LR? The answer, and how far it is carried.

The answer comes from the tests behind the boundary and from nothing else. Everything that a trial
has besides depth, LR, seed and what was asked is its setting: settings are never pooled, each
answers for itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from redline.analysis import necessity as nec
from redline.analysis.comparable import (
    ARM_KEY,
    CONTROL,
    N_LAYER,
    PEAK_LR,
    PLAIN,
    SEED,
    short_names,
)
from redline.analysis.findings import Findings
from redline.analysis.next_runs import NextRuns, at_new_place, at_tested_place, none
from redline.analysis.outcome import BEST_LOSS
from redline.analysis.place import BUDGETS, Distance, Place, Support, amount, support
from redline.analysis.reading import (
    BETWEEN,
    BEYOND,
    NEEDED,
    NOT_NEEDED,
    TESTED,
    UNKNOWN,
    Line,
    Reading,
    Row,
    ratio,
    read,
)
from redline.analysis.summary import N_D0, N_FINISHED
from redline.store.schema import Column

BASE = ("", "base")
DEFAULT_ARM = "on"


@dataclass(frozen=True)
class Evidence:
    """One tested cell that an answer rests on: its paired difference and its trials."""

    setting: str
    n_layer: int
    n_embd: int | None
    n_step: int | None
    peak_lr: float
    mean_delta: float | None
    lower: float | None
    upper: float | None
    n_pair: int
    state: str
    trial_ids: tuple[str, ...]


@dataclass(frozen=True)
class Advice:
    """What one setting says about one arm at a place.

    `answer` is needed, not needed or unknown. The LR at which QK-norm becomes necessary lies above
    `band_lower` and at most at `needed_from` (None: not shown); of two places around the asked one
    these are the outer limits.
    """

    setting: str
    arm: str
    answer: str
    sentence: str
    droppable_to: float | None
    band_lower: float | None
    needed_from: float | None
    evidence: tuple[Evidence, ...]
    distances: tuple[Distance, ...]
    next_runs: NextRuns


def advise(found: Findings, place: Place) -> tuple[Advice, ...]:
    """One advice a setting and compared arm; empty where nothing is compared.

    Settings that can speak for the place come first, among them the base, and `on` before others.
    """
    advice = [
        (held, _advice(found, place, name, held))
        for name, lines in _settings(found, place).items()
        for held in _supports(lines, place)
    ]
    advice.sort(key=lambda pair: (bool(pair[0].refusal), pair[1].setting not in BASE))
    return tuple(answer for _, answer in advice)


def _settings(found: Findings, place: Place) -> dict[str, list[Line]]:
    """Name of a setting -> its lines, which differ in nothing but the axes that were asked for."""
    asked = {"n_step" if axis in BUDGETS else axis for axis in place.axes}
    shown = short_names(_without(name, asked) for name in found.cells[CONTROL])
    lines: dict[str, list[Line]] = {}
    for row in found.trials.unique(CONTROL, maintain_order=True).iter_rows(named=True):
        name = shown[_without(row[CONTROL], asked)]
        lines.setdefault(name, []).extend(_lines(found, row))
    return lines


def _without(name: str, fields: set[str]) -> str:
    """The name of a setting without some of the fields that it lists."""
    return ", ".join(part for part in name.split(", ") if part.partition("=")[0] not in fields)


def _lines(found: Findings, setting: Mapping[str, Any]) -> list[Line]:
    """The lines of one setting; `setting` is one of its trials."""
    control = setting[CONTROL]
    verdicts = {(v.control, v.n_layer, v.arm): v for v in found.verdicts}
    n_step, batch, context = (setting[name] for name in ("n_step", "batch_size", "block_size"))
    cells = found.deltas.sort(PEAK_LR).partition_by(ARM_KEY, as_dict=True)
    return [
        Line(
            control=control,
            n_layer=row[N_LAYER],
            arm=row[Column.ARM],
            n_embd=setting["n_embd"],
            n_step=n_step,
            tokens=None if None in (n_step, batch, context) else n_step * batch * context,
            cells=tuple(cells[control, row[N_LAYER], row[Column.ARM]].iter_rows(named=True)),
            boundary=row,
            verdict=verdicts[control, row[N_LAYER], row[Column.ARM]],
            has_learned=_has_learned(found, control, row[N_LAYER]),
        )
        for row in found.boundaries.filter(pl.col(CONTROL) == control).iter_rows(named=True)
    ]


def _has_learned(found: Findings, control: str, n_layer: int) -> bool:
    """Whether the best mean loss beats bigram counts, as far as these are known."""
    here = (pl.col(CONTROL) == control) & (pl.col(N_LAYER) == n_layer)
    alive = found.cells.filter(here & (pl.col(N_FINISHED) > pl.col(N_D0)))
    return bool((alive[BEST_LOSS] < alive[Column.BIGRAM_LOSS]).fill_null(value=True).all())


def _supports(lines: Sequence[Line], place: Place) -> list[Support]:
    """The support that each arm has, `on` first."""
    arms = sorted({line.arm for line in lines}, key=lambda arm: (arm != DEFAULT_ARM, arm))
    return [support([line for line in lines if line.arm == arm], place) for arm in arms]


def _advice(found: Findings, place: Place, setting: str, held: Support) -> Advice:
    readings = [read(line, place.peak_lr, found.analysis) for line in held.lines]
    distances = (*held.distances, _lr_distance(readings, place))
    beyond = [distance for distance in distances if distance.how == BEYOND]
    answer, sentence = _answer(held, readings, beyond)
    if held.is_tested and held.distances:
        runs = at_tested_place(found, place, readings[0])
    else:
        runs = at_new_place(found, place, held) if held.distances else none("")
    bounds = [line.boundary for line in held.lines]
    return Advice(
        setting=setting,
        arm=held.lines[0].arm,
        answer=answer,
        sentence=sentence,
        droppable_to=_outer(min, [row[nec.DROPPABLE_TO] for row in bounds]),
        band_lower=_outer(min, [row[nec.BAND_LOWER] for row in bounds]),
        needed_from=_outer(max, [row[nec.NEEDED_FROM] for row in bounds]),
        evidence=tuple(
            _evidence(found, setting, reading.line, row)
            for reading in readings
            for row in reading.near
        ),
        distances=distances,
        next_runs=runs,
    )


def _answer(
    held: Support, readings: Sequence[Reading], beyond: Sequence[Distance]
) -> tuple[str, str]:
    """The answer of the support as a whole, and the sentences that say what it rests on."""
    first = readings[0]
    if held.refusal:
        return UNKNOWN, held.refusal
    if len(beyond) > 1:
        axes = " and ".join(_named(distance) for distance in beyond)
        return UNKNOWN, (
            f"The place lies outside of the tested {axes} at once: a result is carried along one "
            "axis only."
        )
    answers = {reading.answer for reading in readings}
    answer = answers.pop() if len(answers) == 1 else UNKNOWN
    if held.is_tested:
        said = first.why
    else:
        axis = next(distance.axis for distance in held.distances if distance.how != TESTED)
        said = " ".join(
            f"{amount(axis, getattr(reading.line, axis))}: {_lead(reading)}{reading.why}"
            for reading in readings
        )
    carried = [_carried(distance) for distance in beyond] if answer != UNKNOWN else []
    return answer, " ".join((said, *carried))


def _lead(reading: Reading) -> str:
    return {NEEDED: "needed. ", NOT_NEEDED: "not needed. "}.get(reading.answer, "unknown. ")


def _carried(distance: Distance) -> str:
    return (
        f"Extrapolated by a factor of {distance.factor:.3g} in {_named(distance)}: the nearest "
        f"tested is {distance.nearest:,.10g}."
    )


def _named(distance: Distance) -> str:
    return "peak LR" if distance.axis == PEAK_LR else distance.axis


def _lr_distance(readings: Sequence[Reading], place: Place) -> Distance:
    """How the asked LR lies to the tested ones; of two places around it, the less favourable."""
    order = (TESTED, BETWEEN, BEYOND)
    worst = max(readings, key=lambda reading: (order.index(reading.how), reading.factor))
    near = min((row[PEAK_LR] for row in worst.near), key=lambda rate: ratio(rate, place.peak_lr))
    return Distance(PEAK_LR, place.peak_lr, near, worst.factor, worst.how)


def _outer(limit: Any, values: Sequence[float | None]) -> float | None:
    return None if None in values else limit(values)


def _evidence(found: Findings, setting: str, line: Line, row: Row) -> Evidence:
    paired = found.trials.filter(
        (pl.col(CONTROL) == line.control)
        & (pl.col(N_LAYER) == line.n_layer)
        & (pl.col(PEAK_LR) == row[PEAK_LR])
        & pl.col(Column.ARM).is_in([PLAIN, line.arm])
    ).filter(pl.col(Column.ARM).n_unique().over(SEED) > 1)
    return Evidence(
        setting=setting,
        n_layer=line.n_layer,
        n_embd=line.n_embd,
        n_step=line.n_step,
        peak_lr=row[PEAK_LR],
        mean_delta=row[nec.MEAN_DELTA],
        lower=row[nec.LOWER],
        upper=row[nec.UPPER],
        n_pair=row[nec.N_PAIR],
        state=row[nec.STATE],
        trial_ids=tuple(paired.sort(SEED, Column.ARM)[Column.TRIAL_ID]),
    )
