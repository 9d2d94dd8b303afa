"""The values of one axis: a list, a single value, or a grid that is even in the logarithm."""

import math
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Self, cast

from pydantic import Field, PositiveFloat, ValidationError, model_validator

from redline.config.analysis import SAME_LR
from redline.config.trial import Frozen
from redline.config.words import shown
from redline.files import UserError
from redline.study.fields import as_table, field_value, kind_of, label
from redline.study.problems import known, sentence

Axes = dict[str, tuple[Any, ...]]
"""Dotted path -> the values of that axis."""


class Grid(Frozen):
    """A logarithmic grid. Two points a decade are 1, 3, 10 (2309.14322), not 1, 3.16, 10."""

    start: PositiveFloat = Field(alias="from")
    stop: PositiveFloat = Field(alias="to")
    # Above 24 the rounding to 3 digits could put neighbours within SAME_LR.
    per_decade: int = Field(ge=1, le=24)

    @model_validator(mode="after")
    def _ends_fit(self) -> Self:
        if self.stop < self.start:
            raise ValueError(f"to = {self.stop} lies below from = {self.start}")
        if self.per_decade == 2 and self.points()[:1] != (self.start,):
            raise ValueError(
                f"from = {self.start} must be 1 or 3 times a power of ten when per_decade = 2"
            )
        return self

    def points(self) -> tuple[float, ...]:
        """The values, ascending.

        `from` is the first. `to` is the last if the grid passes within 10 % of a step of it;
        otherwise the last is the grid's own last point below it.
        """
        return self._one_three_ten() if self.per_decade == 2 else self._even()

    def _one_three_ten(self) -> tuple[float, ...]:
        decades = range(
            math.floor(math.log10(self.start)) - 1, math.ceil(math.log10(self.stop)) + 1
        )
        points = (float(f"{digit}e{decade}") for decade in decades for digit in (1, 3))
        return tuple(point for point in points if self.start <= point <= self.stop)

    def _even(self) -> tuple[float, ...]:
        start = math.log10(self.start)
        n_step = (math.log10(self.stop) - start) * self.per_decade
        n_whole = math.floor(n_step + 0.1)
        exponents = (start + step / self.per_decade for step in range(1, n_whole + 1))
        points = [self.start, *(float(f"{10**exponent:.3g}") for exponent in exponents)]
        if n_whole and abs(n_step - n_whole) <= 0.1:
            points[-1] = self.stop
        return tuple(points)


def axis_values(path: str, raw: Any) -> tuple[Any, ...]:
    """The values of an axis in the order given; a single value is an axis of one.

    Raises:
        UserError: a value is invalid, the axis is empty, or a value occurs twice.
    """
    match raw:
        case list():
            items = cast("list[Any]", raw)
        case dict() if kind_of(path) in (int, float):
            items = list(_grid(as_table(raw)).points())
        case _:
            items = [raw]
    if not items:
        raise UserError("an axis needs at least one value")
    values = [field_value(path, item) for item in items]
    twice = [label(value) for value, count in Counter(values).items() if count > 1]
    if twice:
        raise UserError(f"{shown(raw)} holds {', '.join(twice)} more than once")
    if path == "train.peak_lr":
        refuse_twins(values)
    return tuple(values)


def refuse_twins(lrs: Iterable[float]) -> None:
    """Refuse two rates that the analysis would take for one: a slip of the pen."""
    for low, high in pairwise(sorted(set(lrs))):
        if math.log10(high / low) <= SAME_LR:
            raise UserError(f"{low:g} and {high:g} are within {SAME_LR} in log10: one rate")


def _grid(table: dict[str, Any]) -> Grid:
    for key in table:
        known(key, ("from", "to", "per_decade"))
    try:
        return Grid.model_validate(table)
    except ValidationError as error:
        raise UserError(sentence(error, depth=0)) from None
