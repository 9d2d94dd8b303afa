"""What one cell of another tool's table says, as a value of one of our columns.

Every cell arrives as text: a reader that guesses types turns `nan` into nothing and `on` into true.
"""

import re
from decimal import Decimal, InvalidOperation
from typing import Any

import polars as pl

from redline.config.words import ARMS, KINDS, OFF_WORDS, ON_WORDS, nearest
from redline.files import UserError
from redline.foreign.mapping import ARM_FIELD, DTYPES, KEYS
from redline.store.schema import Column

EMPTY_WORDS = frozenset({"", "null", "none", "na", "-"})
"""What stands for no value. `nan` is not among them: it is the loss of a diverged run."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_NON_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_LEAST = {"n_layer": 1, "seed": 0}
_ABOVE_ZERO = "peak_lr"


def value(ours: str, text: str) -> Any:
    """The value of one of our columns; None where the cell is empty.

    `qk_norm` becomes the label of its arm. `final_loss` alone may be `nan` or `inf`: it says that
    the run left the numbers.

    Raises:
        UserError: the end of a sentence that begins with the cell.
    """
    word = text.strip()
    if _is_empty(ours, word):
        if ours in KEYS:
            raise UserError("is empty, and without it the row has no place")
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


def same(cell: str, wanted: str) -> bool:
    """Whether a cell is the wanted text, or the same number in another spelling."""
    cell, wanted = cell.strip(), wanted.strip()
    number = _number(cell)
    return cell == wanted or (number is not None and number == _number(wanted))


def _is_empty(ours: str, word: str) -> bool:
    # A text such as pos = "none" is a name that the other tool gave.
    return not word or (DTYPES[ours] != pl.String() and word.lower() in EMPTY_WORDS)


def _arm(word: str) -> str:
    if word.lower() not in ARMS:
        raise UserError(f"must be on, off or {', '.join(KINDS)}{nearest(word.lower(), ARMS)}")
    component = ARMS[word.lower()]
    return "off" if component is None else component.label


def _real(ours: str, word: str) -> float:
    may_leave_the_numbers = ours == Column.FINAL_LOSS
    if may_leave_the_numbers and _NON_FINITE.fullmatch(word):
        return float(word)
    if not _NUMBER.fullmatch(word):
        raise UserError("is no number")
    number = float(word) + 0.0  # no -0.0: equal values have one spelling
    if not may_leave_the_numbers and abs(number) == float("inf"):
        raise UserError("is too large for a number")
    if ours == _ABOVE_ZERO and number <= 0:
        raise UserError("must be above 0")
    return number


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
