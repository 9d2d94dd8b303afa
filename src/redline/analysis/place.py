"""Where a question is asked, and which tested depths, widths and budgets may speak for that place.

Between two tested values on one axis both speak; outside of the tested values the nearest speaks if
it is a factor of 2 away at most. A place that is off along two axes at once has no support.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from redline.analysis.reading import BETWEEN, BEYOND, TESTED, Line, ratio
from redline.files import UserError

MAX_FACTOR = 2.0
"""One doubling of depth, width or budget, the step between the sizes that studies compare. How the
boundary moves with depth is an open question (protocol, H3): nothing is carried further."""

SAME_BUDGET = 1.05
"""Budgets within 5 % are one: 409,600 tokens are "400k" to whoever asks."""

BUDGETS = ("n_step", "tokens")


@dataclass(frozen=True)
class Place:
    """Where the question is asked. `n_embd` and the budget are None where they are not asked.

    The budget is `n_step` updates or a number of `tokens`, not both.
    """

    n_layer: int
    peak_lr: float
    n_embd: int | None
    n_step: int | None
    tokens: float | None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not (isfinite(value) and value > 0):
                raise UserError(f"{name} {value:g}: a finite number above 0 is needed")
        if self.n_step is not None and self.tokens is not None:
            raise UserError("n_step and tokens are both given: a budget is one of them")

    @property
    def axes(self) -> dict[str, float]:
        """The axes besides the LR that are asked for: name -> value."""
        axes = {name: value for name, value in vars(self).items() if name != "peak_lr"}
        return {name: float(value) for name, value in axes.items() if value is not None}


@dataclass(frozen=True)
class Distance:
    """How an asked value lies to the evidence: tested, between, or a factor beyond the nearest."""

    axis: str
    asked: float
    nearest: float
    factor: float
    how: str


@dataclass(frozen=True)
class Support:
    """The lines that speak for a place: the place itself, or those around it on one axis.

    With a `refusal` the one line is only the nearest and does not speak. `distances` has an entry
    for each axis that was asked and that the results know.
    """

    lines: tuple[Line, ...]
    distances: tuple[Distance, ...]
    refusal: str

    @property
    def is_tested(self) -> bool:
        """Whether the place itself was tested, at some LR."""
        return not self.refusal and all(distance.how == TESTED for distance in self.distances)


def support(lines: Sequence[Line], place: Place) -> Support:
    """What of the lines of one arm in one setting speaks for a place."""
    told = [line for line in lines if None not in _values(line, place)]
    if not told:
        first = min(lines, key=lambda line: ratio(line.n_layer, place.n_layer))
        unknown = [axis for axis in place.axes if getattr(first, axis) is None]
        return Support((first,), (), _unknown(unknown))
    exact = [line for line in told if not _off(line, place)]
    if exact:
        return _supported(exact[:1], place, "")
    brackets = [pair for axis in place.axes if (pair := _around(told, axis, place))]
    if brackets:
        narrowest = min(brackets, key=lambda pair: _factor(pair[0], pair[1], place))
        return _supported(narrowest, place, "")
    near = min(told, key=lambda line: (len(_off(line, place)), _distance(line, place)))
    return _supported([near], place, _refusal(near, place))


def amount(axis: str, value: float) -> str:
    """A value of an axis in a sentence."""
    return f"{value:,.0f} tokens" if axis == "tokens" else f"{axis} {value:g}"


def _values(line: Line, place: Place) -> list[float | None]:
    return [getattr(line, axis) for axis in place.axes]


def _off(line: Line, place: Place) -> list[str]:
    """The axes on which a line is not at the place."""
    return [axis for axis, asked in place.axes.items() if not _same(axis, line, asked)]


def _same(axis: str, line: Line, asked: float) -> bool:
    limit = SAME_BUDGET if axis in BUDGETS else 1.0
    return ratio(getattr(line, axis), asked) <= limit


def _around(lines: Sequence[Line], axis: str, place: Place) -> list[Line]:
    """The nearest line on each side of the place along one axis; empty without both."""
    beside = [line for line in lines if _off(line, place) == [axis]]
    asked = place.axes[axis]
    below = [line for line in beside if getattr(line, axis) < asked]
    above = [line for line in beside if getattr(line, axis) > asked]
    if not (below and above):
        return []
    return [
        max(below, key=lambda line: getattr(line, axis)),
        min(above, key=lambda line: getattr(line, axis)),
    ]


def _factor(a: Line, b: Line, place: Place) -> float:
    return max(ratio(getattr(a, axis), getattr(b, axis)) for axis in place.axes)


def _distance(line: Line, place: Place) -> float:
    return max(ratio(getattr(line, axis), asked) for axis, asked in place.axes.items())


def _supported(lines: Sequence[Line], place: Place, refusal: str) -> Support:
    distances: list[Distance] = []
    for axis, asked in place.axes.items():
        near = min((float(getattr(line, axis)) for line in lines), key=lambda v: ratio(v, asked))
        is_tested = all(_same(axis, line, asked) for line in lines)
        how = TESTED if is_tested else BETWEEN if len(lines) > 1 else BEYOND
        distances.append(Distance(axis, asked, near, ratio(near, asked), how))
    return Support(tuple(lines), tuple(distances), refusal)


def _refusal(line: Line, place: Place) -> str:
    off = _off(line, place)
    if len(off) > 1:
        where = ", ".join(amount(axis, getattr(line, axis)) for axis in off)
        return (
            f"The nearest results, {where}, differ from the place in {' and '.join(off)} at once: "
            "nothing is carried along two axes."
        )
    (axis,) = off
    value, asked = getattr(line, axis), place.axes[axis]
    if ratio(value, asked) <= MAX_FACTOR:
        return ""
    return (
        f"The nearest results are at {amount(axis, value)}, a factor of {ratio(value, asked):.3g} "
        f"away: they are carried a factor of {MAX_FACTOR:g} and no further."
    )


def _unknown(axes: Sequence[str]) -> str:
    return (
        f"The results do not say their {' and '.join(axes)}: ask without it, or import the table "
        "again with it."
    )
