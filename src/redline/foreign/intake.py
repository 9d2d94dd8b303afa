"""From another tool's table to rows of ours, with an account of every row that it held."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import polars as pl

from redline.config.trial import Frozen
from redline.config.words import listed, shown
from redline.files import UserError
from redline.foreign import cells
from redline.foreign.mapping import ARM_FIELD, RESULTS, ROW, Mapping, check, unused
from redline.foreign.source import Source
from redline.store.schema import GROUP_PREFIX, Column

N_NAMED = 5

Line = tuple[int, tuple[str, ...]]
Row = dict[str, Any]
Refused = dict[tuple[str, str, str], list[int]]
"""(our column, text, why) -> lines of the file."""


class Counts(Frozen):
    """What became of the rows: `read` = `filtered` + `duplicates` + `kept`.

    Of those kept, `without_result` have no final loss and `non_finite` have one that is no number.
    """

    read: int
    filtered: int
    duplicates: int
    kept: int
    without_result: int
    non_finite: int


@dataclass(frozen=True)
class Intake:
    """The rows that were kept, in the file's order, and the columns of which nothing was."""

    frame: pl.DataFrame
    counts: Counts
    unused: tuple[str, ...]


def take_in(source: Source, mapping: Mapping) -> Intake:
    """The rows of a table as our mapping reads them. No row is dropped without being counted.

    Raises:
        UserError: the mapping does not fit the header, a filter leaves nothing, a cell cannot be
            read, or rows of one trial contradict each other.
    """
    check(mapping, source.name, source.header)
    chosen = _chosen(source, mapping)
    rows = _read(source, mapping, chosen)
    distinct = _distinct(source, mapping, rows)
    frame = pl.DataFrame(
        {
            name: pl.Series(name, [row.get(name) for row in distinct], dtype)
            for name, dtype in mapping.row_schema.items()
        }
    )
    counts = Counts(
        read=len(source.rows),
        filtered=len(source.rows) - len(chosen),
        duplicates=len(rows) - len(distinct),
        kept=len(distinct),
        without_result=frame[Column.FINAL_LOSS].null_count(),
        non_finite=frame[Column.NON_FINITE].count(),
    )
    return Intake(frame, counts, unused(mapping, source.header))


def _chosen(source: Source, mapping: Mapping) -> Sequence[Line]:
    left: Sequence[Line] = source.rows
    for theirs, wanted in mapping.where:
        column = source.header.index(theirs)
        found = [line for line in left if cells.same(line[1][column], wanted)]
        if not found:
            values = dict.fromkeys(row[column].strip() for _, row in left)
            before = "" if left is source.rows else " that the filters before it leave"
            raise UserError(
                f"--where {theirs}={wanted}: no row of {source.name} has it; in the "
                f"{len(left)} rows{before}, {theirs} is {listed(values, 12)}"
            )
        left = found
    return left


def _read(source: Source, mapping: Mapping, lines: Sequence[Line]) -> list[Row]:
    constants = {ours: _constant(ours, text) for ours, text in mapping.set.items()}
    columns = {ours: source.header.index(theirs) for ours, theirs in mapping.map.items()}
    groups = {f"{GROUP_PREFIX}{name}": source.header.index(name) for name in mapping.group}
    # One sentence for a bad value, however often it stands there.
    refused: Refused = defaultdict(list)
    rows: list[Row] = []
    for line, row in lines:
        read = dict(constants)
        for ours, column in columns.items():
            try:
                read[ours] = cells.value(ours, row[column])
            except UserError as error:
                refused[ours, row[column], str(error)].append(line)
        read |= {name: row[column].strip() or None for name, column in groups.items()}
        rows.append(_placed(source, line, read))
    if refused:
        raise UserError(_refusal(source, mapping, refused))
    return rows


def _constant(ours: str, text: str) -> Any:
    try:
        return cells.value(ours, text)
    except UserError as error:
        raise UserError(f"--set {ours}: {shown(text)} {error}") from None


def _placed(source: Source, line: int, read: Row) -> Row:
    """A row with its name and with what its cells imply."""
    loss = read.get(Column.FINAL_LOSS)
    diverged = loss is not None and not isfinite(loss)
    return read | {
        Column.TRIAL_ID: f"{source.name}:{line}",
        Column.ARM: read.pop(ARM_FIELD, None),
        Column.NON_FINITE: "loss" if diverged else None,
        Column.ORIGIN: source.name,
        ROW: line,
    }


def _refusal(source: Source, mapping: Mapping, refused: Refused) -> str:
    sentences = [
        f"{source.name}: {ours}, from column {shown(mapping.map[ours])}: "
        f"{shown(text)} {why}: line {listed(lines, N_NAMED)}"
        for (ours, text, why), lines in refused.items()
    ]
    more = len(sentences) - N_NAMED
    return "\n".join(
        [*sentences[:N_NAMED], *([f"and {more} more such values"] if more > 0 else [])]
    )


def _distinct(source: Source, mapping: Mapping, rows: Iterable[Row]) -> list[Row]:
    """The first of every set of equal rows."""
    groups = [f"{GROUP_PREFIX}{name}" for name in mapping.group]
    names = [Column.ARM if name == ARM_FIELD else name for name in mapping.names]
    keys = [*(name for name in names if name not in RESULTS), *groups]
    results = [name for name in names if name in RESULTS]
    trials: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        # By repr, nan equals nan.
        key, result = (repr([row[name] for name in part]) for part in (keys, results))
        trials[key].setdefault(result, row)
    conflicts = [list(found.values()) for found in trials.values() if len(found) > 1]
    if conflicts:
        raise UserError(_contradiction(source, mapping, keys, conflicts))
    return [row for found in trials.values() for row in found.values()]


def _contradiction(
    source: Source, mapping: Mapping, keys: Sequence[str], conflicts: Sequence[Sequence[Row]]
) -> str:
    named = [
        f"{', '.join(f'{key.removeprefix(GROUP_PREFIX)} {rows[0][key]}' for key in keys)}: "
        + " but ".join(f"{_loss(row)} in line {row[ROW]}" for row in rows[:N_NAMED])
        for rows in conflicts[:N_NAMED]
    ]
    more = [f"and {len(conflicts) - N_NAMED} more trials"] if len(conflicts) > N_NAMED else []
    head = f"{source.name}: one trial has different results, {len(conflicts)} times over"
    return "\n".join([head, *named, *more, _proposal(source, mapping, conflicts)])


def _loss(row: Row) -> str:
    loss = row[Column.FINAL_LOSS]
    return "no result" if loss is None else f"final_loss {loss}"


def _proposal(source: Source, mapping: Mapping, conflicts: Sequence[Sequence[Row]]) -> str:
    """Columns that may be what sets contradicting rows apart; those with few values come first."""
    texts = dict(source.rows)
    free = [
        (len({row[column] for row in texts.values()}), name)
        for column, name in enumerate(source.header)
        if name in unused(mapping, source.header)
        and any(len({texts[row[ROW]][column] for row in rows}) > 1 for rows in conflicts)
    ]
    if not free:
        return "no other column tells these rows apart: remove the wrong ones from the file"
    names = [name for _, name in sorted(free)]
    return (
        f"these rows differ in {listed(names, N_NAMED)}: where that is a setting, choose with "
        f"`--where {names[0]}=VALUE` or keep the values apart with `--group {names[0]}`; else "
        "remove the wrong rows"
    )
