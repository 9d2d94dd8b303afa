"""What one cell of another tool's table says, as a value of one of our columns.

Every cell arrives as text: a reader that guesses types turns `nan` into nothing and `on` into true.
A refusal is the end of a sentence that begins with the cell.
"""

import re
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any

import polars as pl

from redline.config.words import ARMS, KINDS, OFF_WORDS, ON_WORDS, nearest, shown
from redline.files import UserError
from redline.foreign.mapping import ARM_FIELD, DTYPES, KEYS
from redline.store.schema import Column

EMPTY_WORDS = frozenset({"", "null", "none", "na", "n/a", "-"})
"""What stands for no value. `nan` is not among them: it is the loss of a diverged run."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_NON_FINITE = re.compile(r"([+-]?(?:nan|inf|infinity))(?: *\([^()]*\))?", re.IGNORECASE)
_DIVERGED = "diverged"
_DECIMAL_COMMA = re.compile(r"([+-]?\d+),(\d+)", re.ASCII)
_LEAST = {"n_layer": 1, "seed": 0}
_ABOVE_ZERO = "peak_lr"
_N_SHOWN = 60


def value(ours: str, text: str) -> Any:
    """The value of one of our columns; None where the cell is empty.

    `qk_norm` becomes the label of its arm. `final_loss` alone may be `nan`, `NaN (diverged)`, `inf`
    or `diverged`: these say that the run left the numbers.

    Raises:
        UserError: the end of a sentence that begins with the cell.
    """
    word = text.strip()
    if _is_empty(ours, word):
        if ours in KEYS:
            raise UserError("is empty, and without it the row has no place; fill it in")
        return None
    if ours == ARM_FIELD:
        return _arm(word)
    match DTYPES[ours]:
        case pl.Float64():
            return _real(ours, word)
        case pl.Int64():
            return _whole(word, _LEAST.get(ours, -(2**63)))
        case pl.Boolean():
            return _truth(word)
        case _:
            return word


def losses(text: str) -> tuple[float, float] | None:
    """The first and the final loss of a list such as `[3.5, 3.1]`; None where it is empty.

    The final loss is the last, or the first that is not finite: after it a run has no result.

    Raises:
        UserError: the end of a sentence that begins with the cell.
    """
    word = text.strip()
    if _is_empty(Column.FINAL_LOSS, word):
        return None
    if not (word.startswith("[") and word.endswith("]")):
        raise UserError("is no list; losses are written as [3.5, 3.1]")
    # Split, never evaluated: a list of losses has numbers and commas and nothing else.
    items = word[1:-1].strip()
    values: list[float] = []
    for place, item in enumerate(items.split(",") if items else ()):
        try:
            found = value(Column.FINAL_LOSS, item.strip().strip("'\""))
        except UserError as error:
            raise UserError(f"holds {cut(item.strip())} at place {place}, which {error}") from None
        if found is None:
            raise UserError(
                f"has no value at place {place}; write nan if the run diverged there, else leave "
                "the place out"
            )
        values.append(found)
    if not values:
        return None
    return values[0], next((loss for loss in values if not isfinite(loss)), values[-1])


def same(cell: str, wanted: str) -> bool:
    """Whether a cell is the wanted text, or the same number in another spelling."""
    return spelling(cell) == spelling(wanted)


def spelling(text: str) -> str | Decimal:
    """What makes two cells equal: the number they spell, or their text."""
    text = text.strip()
    found = _number(text)
    return text if found is None else found


def cut(text: str) -> str:
    """A cell as a message shows it: a table may hold megabytes in one."""
    if len(text) <= _N_SHOWN:
        return shown(text)
    return f"{shown(text[:_N_SHOWN])}... ({len(text):,} characters)"


def _is_empty(ours: str, word: str) -> bool:
    # A text such as pos = "none" is a name that the other tool gave.
    return not word or (DTYPES[ours] != pl.String() and word.lower() in EMPTY_WORDS)


def _arm(word: str) -> str:
    if word.lower() not in ARMS:
        near = nearest(word.lower()[:_N_SHOWN], ARMS)
        raise UserError(f"must be on, off or {', '.join(KINDS)}{near}")
    component = ARMS[word.lower()]
    return "off" if component is None else component.label


def _real(ours: str, word: str) -> float:
    may_leave_the_numbers = ours == Column.FINAL_LOSS
    if may_leave_the_numbers:
        if non_finite := _NON_FINITE.fullmatch(word):
            return float(non_finite[1])
        if word.lower() == _DIVERGED:
            return float("nan")
    if not _NUMBER.fullmatch(word):
        raise UserError(f"is no number{_mend(ours, word)}")
    number = float(word) + 0.0  # no -0.0: equal values have one spelling
    if not may_leave_the_numbers and abs(number) == float("inf"):
        raise UserError("is too large for a number; at most 1e308 is possible")
    if ours == _ABOVE_ZERO and number <= 0:
        raise UserError("must be above 0")
    return number


def _mend(ours: str, word: str) -> str:
    if comma := _DECIMAL_COMMA.fullmatch(word):
        return f"; write it with a decimal point, as {comma[1]}.{comma[2]}"
    if ours == Column.FINAL_LOSS and word.startswith("["):
        return "; for a list of losses use --map losses=COLUMN in place of final_loss"
    if ours == Column.FINAL_LOSS:
        return "; a number, nan or inf for a diverged run, or nothing is possible"
    return "; write it as 0.001 or 1e-3"


def _whole(word: str, least: int) -> int:
    # "4.0" is how a table with gaps writes 4; a float would lose the digits of a long seed.
    number = _number(word)
    if number is None or not least <= number < 2**63 or number != number.to_integral_value():
        raise UserError("must be a whole number" + (f" of at least {least}" if least >= 0 else ""))
    return int(number)


def _truth(word: str) -> bool:
    if word.lower() not in ON_WORDS + OFF_WORDS:
        raise UserError("must be true or false")
    return word.lower() in ON_WORDS


def _number(word: str) -> Decimal | None:
    if not _NUMBER.fullmatch(word):
        return None
    try:
        return Decimal(word)
    except InvalidOperation:  # an exponent of twenty digits
        return None
