"""The form of a table on the page, and how its numbers read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from redline.analysis.comparable import CONTROL, N_LAYER
from redline.analysis.findings import Findings

Row = dict[str, Any]
NONE = "–"


@dataclass(frozen=True)
class Cell:
    """One entry: its text, and the trial it leads to if there is one."""

    text: str
    trial_id: str = ""


@dataclass(frozen=True)
class Table:
    """A table of the page. The first `n_key` columns name its rows, the others are numbers."""

    name: str
    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    n_key: int


def table(
    found: Findings,
    name: str,
    title: str,
    caption: str,
    columns: Sequence[str],
    rows: Sequence[tuple[Cell, ...]],
    *,
    n_key: int,
) -> Table:
    """A table whose rows begin with setting and depth; a setting that is alone is not shown."""
    with_setting = found.cells[CONTROL].n_unique() > 1
    shown = tuple(row if with_setting else row[1:] for row in rows)
    leading = ("setting", "n_layer") if with_setting else ("n_layer",)
    return Table(name, title, caption, (*leading, *columns), shown, len(leading) + n_key)


def setting(row: Row, names: dict[str, str]) -> tuple[Cell, Cell]:
    """The first two cells of every row."""
    return Cell(names[row[CONTROL]]), Cell(str(row[N_LAYER]))


def number(value: float | None, form: str) -> str:
    """A value in the given format, or the sign for none."""
    return NONE if value is None else format(value, form)


def interval(low: float | None, high: float | None, form: str) -> str:
    """Both ends in the given format, or the sign for none."""
    if low is None and high is None:
        return NONE
    return f"{number(low, form)} to {number(high, form)}"


def spread(mean: float | None, sd: float | None) -> str:
    """Mean and standard deviation over seeds; one seed has none."""
    return number(mean, ".3f") + ("" if sd is None else f" ± {sd:.3f}")
