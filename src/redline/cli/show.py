"""How numbers and tables look on a terminal."""

from typing import Any

import polars as pl
from rich.console import Console
from rich.table import Table

from redline.analysis.comparable import CONTROL, N_LAYER, PEAK_LR, short_names
from redline.analysis.headline import EARLY_MAX_LOGIT, MIN_ENTROPY, RUNNING_MAX_LOGIT
from redline.analysis.summary import LOSS_SD, MEAN_LOSS, N_D0, N_EXPECTED, N_FINISHED
from redline.analysis.verdict import outcome_counts
from redline.config.analysis import Analysis
from redline.store.schema import Column

CELL_ORDER = (CONTROL, N_LAYER, PEAK_LR, Column.ARM)
PLAIN_WIDTH = 120
"""Columns where the output is no terminal: a log keeps whole rows."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Let the caller hear that the reader has left; rich would exit as if a trial crashed."""
        raise BrokenPipeError


def console() -> Console:
    """A console as wide as the terminal, or as a table needs in a file."""
    # Titles, paths and logs are other people's text: no bracket of theirs is markup.
    found = _Console(highlight=False, markup=False)
    if not found.is_terminal:
        found.width = PLAIN_WIDTH
    return found


def plural(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def duration(seconds: float) -> str:
    """A duration as a person says it: 40 s, 12 min, 3.5 h, 2.1 days."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"


def large(number: float) -> str:
    """Three digits and a unit: 119k, 10.9M, 5.3e+15."""
    for unit, size in (("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if size <= number < 1e12:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"


def cell_table(cells: pl.DataFrame, analysis: Analysis) -> Table:
    """The table at the end of a run, one row a cell."""
    table = Table(title="Means over seeds; a non-finite trial counts at its initial loss")
    names = short_names(cells[CONTROL])
    with_control = cells[CONTROL].n_unique() > 1
    for name in ("setting",) if with_control else ():
        table.add_column(name, overflow="fold")
    for name in ("n_layer", "peak_lr", "arm", "seeds", "final loss", "early max logit"):
        table.add_column(name, justify="right", overflow="fold")
    for name in ("max logit", "min entropy", "outcome"):
        table.add_column(name, justify="left" if name == "outcome" else "right", overflow="fold")
    keys = [pl.col(CONTROL).replace_strict(names) != "base", *CELL_ORDER]
    rows = list(cells.sort(keys).iter_rows(named=True))
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        last_of_pair = following is None or following[PEAK_LR] != row[PEAK_LR]
        leading = [names[row[CONTROL]]] if with_control else []
        table.add_row(*leading, *_texts(row, analysis), end_section=last_of_pair)
    return table


def _texts(row: dict[str, Any], analysis: Analysis) -> list[str]:
    spread = "" if row[LOSS_SD] is None else f" ± {row[LOSS_SD]:.3f}"
    died = f" ({row[N_D0]} non-finite)" if row[N_D0] else ""
    return [
        str(row[N_LAYER]),
        f"{row[PEAK_LR]:g}",
        row[Column.ARM],
        f"{row[N_FINISHED]}/{row[N_EXPECTED]}",
        "-" if row[MEAN_LOSS] is None else f"{row[MEAN_LOSS]:.3f}{spread}{died}",
        _number(row[EARLY_MAX_LOGIT], "g"),
        _number(row[RUNNING_MAX_LOGIT], "g"),
        _number(row[MIN_ENTROPY], "f"),
        outcome_counts(row, analysis),
    ]


def _number(value: float | None, kind: str) -> str:
    return "-" if value is None else f"{value:.3{kind}}"
