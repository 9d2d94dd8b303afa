"""From another tool's table to rows of ours, with an account of every row that it held."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from math import isfinite
from typing import Any

import polars as pl

from redline.config.trial import Frozen
from redline.config.words import listed
from redline.files import UserError
from redline.foreign import cells
from redline.foreign.distinct import N_NAMED, distinct
from redline.foreign.exports import Export, recognised
from redline.foreign.grouping import Reason, one_spelling, separating
from redline.foreign.mapping import ARM_FIELD, FIRST, KEYS, LOSSES, RESULTS, ROW, fitted
from redline.foreign.mapping import Mapping as Reading
from redline.foreign.source import Source
from redline.store.schema import GROUP_PREFIX, Column
from redline.store.tables import SCHEMAS

Columns = dict[str, Sequence[Any]]
MAX_NAME = 100


class Counts(Frozen):
    """What became of the rows: `read` = `filtered` + `duplicates` + `superseded` + `kept`.

    `superseded` are unfinished runs whose trial another row finished. Of those kept,
    `without_result` have no final loss and `non_finite` have one that is no number.
    """

    read: int
    filtered: int
    duplicates: int
    superseded: int
    kept: int
    without_result: int
    non_finite: int


@dataclass(frozen=True)
class Intake:
    """The rows that were kept, in the file's order, and how they came about.

    `mapping` is what was applied: whole names, and the groups that the rule of `grouping` found,
    which `found_groups` names. `unused` are the other columns that vary, and why. `unfinished`
    counts the states of kept runs that an export says have not finished.
    """

    frame: pl.DataFrame
    counts: Counts
    mapping: Reading
    found_groups: tuple[str, ...]
    unused: dict[str, Reason]
    tool: str | None
    unfinished: dict[str, int]


def take_in(source: Source, mapping: Reading) -> Intake:
    """The rows of a table as our mapping reads them. No row is dropped without being counted.

    Raises:
        UserError: the mapping does not fit the header, a filter leaves nothing, a cell cannot be
            read, or rows of one trial contradict each other.
    """
    export = recognised(source.name, source.header)
    mapping = fitted(mapping, source.name, source.header)
    chosen = _chosen(source, mapping)
    texts = dict(zip(source.header, zip(*(row for _, row in chosen), strict=True), strict=True))
    states = [text.strip() for text in texts[export.state]] if export else []
    unfinished = [export is not None and state != export.finished for state in states]
    unfinished = unfinished or [False] * len(chosen)
    columns = _read(source, mapping, [line for line, _ in chosen], texts, unfinished)
    found, unused = _separating(mapping, columns, texts, export, unfinished)
    mapping = mapping.model_copy(update={"group": (*mapping.group, *found)})
    columns |= {
        f"{GROUP_PREFIX}{name}": [text or None for text in one_spelling(texts[name])]
        for name in mapping.group
    }
    left = distinct(source, mapping, columns, unfinished, list(unused))
    columns[Column.TRIAL_ID] = _names(source, columns, texts, export, left.kept)
    frame = pl.DataFrame(
        {
            name: pl.Series(name, _at(columns.get(name), left.kept), dtype)
            for name, dtype in mapping.row_schema.items()
        }
    )
    counts = Counts(
        read=len(source.rows),
        filtered=len(source.rows) - len(chosen),
        duplicates=left.duplicates,
        superseded=left.superseded,
        kept=len(left.kept),
        without_result=frame[Column.FINAL_LOSS].null_count(),
        non_finite=frame[Column.NON_FINITE].count(),
    )
    not_done = Counter(
        states[index] or "without a state" for index in left.kept if unfinished[index]
    )
    tool = export.tool if export else None
    return Intake(frame, counts, mapping, found, unused, tool, dict(not_done))


def _chosen(source: Source, mapping: Reading) -> Sequence[tuple[int, tuple[str, ...]]]:
    left: Sequence[tuple[int, tuple[str, ...]]] = source.rows
    for theirs, wanted in mapping.where.items():
        column = source.header.index(theirs)
        present = {row[column] for _, row in left}
        meant = {text for text in present if cells.same(text, wanted)}
        if not meant:
            values = dict.fromkeys(row[column].strip() for _, row in left)
            before = "" if left is source.rows else " that the filters before it leave"
            raise UserError(
                f"--where {theirs}={wanted}: no row of {source.name} has it; in the "
                f"{len(left)} rows{before}, {theirs} is {listed(values, 12)}"
            )
        left = [line for line in left if line[1][column] in meant]
    return left


def _read(
    source: Source,
    mapping: Reading,
    lines: Sequence[int],
    texts: Mapping[str, Sequence[str]],
    unfinished: Sequence[bool],
) -> Columns:
    """Our columns, each value being read once however often it stands there."""
    columns: Columns = {ROW: lines, Column.ORIGIN: [source.name] * len(lines)}
    constants = {o: t for o, t in mapping.set.items() if not (o == Column.INIT_LOSS and t == FIRST)}
    for ours, text in constants.items():
        columns[ours] = [_constant(ours, text)] * len(lines)
    refused: list[tuple[str, str, str]] = []
    for ours, theirs in mapping.map.items():
        column = texts[theirs]
        if ours in (*RESULTS, LOSSES):
            column = ["" if u else t for t, u in zip(column, unfinished, strict=True)]
        values, unread = _values(ours, column)
        refused += [(ours, text, why) for text, why in unread.items()]
        columns[ours] = [values.get(text) for text in column]
    if refused:
        named = [
            _refusal(source, mapping.map[ours], lines, texts, unfinished, (ours, text, why))
            for ours, text, why in refused[:N_NAMED]
        ]
        more = len(refused) - N_NAMED
        rest = [f"and {more} more such values"] if more > 0 else []
        raise UserError("\n".join([*named, *rest]))
    return _implied(mapping, columns)


def _refusal(
    source: Source,
    theirs: str,
    lines: Sequence[int],
    texts: Mapping[str, Sequence[str]],
    unfinished: Sequence[bool],
    refused: tuple[str, str, str],
) -> str:
    ours, text, why = refused
    found = [at for at, cell in enumerate(texts[theirs]) if cell == text]
    place = f"{source.unit} {listed([lines[at] for at in found], N_NAMED)}"
    # A run can die before it says what it was.
    dead = all(unfinished[at] for at in found)
    mend = "; these runs have not finished, and `--where` can leave them out" if dead else ""
    cell = f"{ours}, from column {cells.cut(theirs)}: {cells.cut(text)}"
    return f"{source.name}, {place}: {cell} {why}{mend}"


def _values(ours: str, column: Sequence[str]) -> tuple[dict[str, Any], dict[str, str]]:
    read: Callable[[str], Any] = (
        cells.losses if ours == LOSSES else lambda text: cells.value(ours, text)
    )
    values: dict[str, Any] = {}
    refused: dict[str, str] = {}
    for text in dict.fromkeys(column):
        try:
            values[text] = read(text)
        except UserError as error:
            refused[text] = str(error)
    return values, refused


def _implied(mapping: Reading, columns: Columns) -> Columns:
    """The columns with what follows from them: the arm by its name, and what diverged."""
    if ARM_FIELD in columns:
        columns[Column.ARM] = columns.pop(ARM_FIELD)
    if LOSSES in columns:
        ends = columns.pop(LOSSES)
        columns[Column.FINAL_LOSS] = [end and end[1] for end in ends]
        if mapping.set.get(Column.INIT_LOSS) == FIRST:
            # A loss that is not finite is nothing to compare with.
            columns[Column.INIT_LOSS] = [
                end[0] if end and isfinite(end[0]) else None for end in ends
            ]
    columns[Column.NON_FINITE] = [
        None if loss is None or isfinite(loss) else "loss" for loss in columns[Column.FINAL_LOSS]
    ]
    return columns


def _constant(ours: str, text: str) -> Any:
    try:
        return cells.value(ours, text)
    except UserError as error:
        raise UserError(f"--set {ours}: {cells.cut(text)} {error}") from None


def _separating(
    mapping: Reading,
    columns: Columns,
    texts: Mapping[str, Sequence[str]],
    export: Export | None,
    unfinished: Sequence[bool],
) -> tuple[tuple[str, ...], dict[str, Reason]]:
    """The groups that the mapping does not name, and why other columns are not used."""
    # Where results are not told from settings by name, those of the runs that died look like some.
    mixed = export is not None and not export.settings and not all(unfinished)
    judged = [not (mixed and state) for state in unfinished]
    settings = [name for name in mapping.names if name not in (*RESULTS, *KEYS)]
    keys = (Column.ARM, "n_layer", "seed", "peak_lr", *settings)
    groups = {f"{GROUP_PREFIX}{name}": texts[name] for name in mapping.group}
    rows = pl.DataFrame(
        {name: pl.Series(name, columns[name], SCHEMAS["trials"][name]) for name in keys}
        | {name: one_spelling(column) for name, column in groups.items()}
    ).filter(judged)
    used = {*mapping.map.values(), *mapping.where, *mapping.group}
    candidates = {
        name: list(compress(column, judged)) for name, column in texts.items() if name not in used
    }
    settled = {name: Reason.RESULT for name in texts if export and not export.may_be_setting(name)}
    settled |= dict.fromkeys(mapping.ignore, Reason.ASKED)
    return separating(rows, ["n_layer", *settings, *groups], candidates, settled)


def _names(
    source: Source,
    columns: Columns,
    texts: Mapping[str, Sequence[str]],
    export: Export | None,
    kept: Sequence[int],
) -> list[str]:
    """A name for each row: that of the run where each has its own, else its place in the file."""
    for column in export.run_names if export else ():
        names = [name.strip() for name in texts.get(column, ())]
        used = [names[index] for index in kept] if names else [""]
        if len(set(used)) == len(used) and all(
            name.isprintable() and 0 < len(name) <= MAX_NAME for name in used
        ):
            return names
    return [f"{source.name}:{line}" for line in columns[ROW]]


def _at(column: Sequence[Any] | None, kept: Sequence[int]) -> list[Any]:
    return [None] * len(kept) if column is None else [column[index] for index in kept]
