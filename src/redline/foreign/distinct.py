"""Rows of one trial: copies collapse, a retried run yields to its success, contradictions stop."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from redline.config.words import listed
from redline.files import UserError
from redline.foreign.mapping import ARM_FIELD, RESULTS, ROW
from redline.foreign.mapping import Mapping as Reading
from redline.foreign.source import Source
from redline.store.schema import GROUP_PREFIX, Column

N_NAMED = 5


@dataclass(frozen=True)
class Distinct:
    """Indices of the rows that stay, in order, and how many do not and why."""

    kept: tuple[int, ...]
    duplicates: int
    superseded: int


def distinct(
    source: Source,
    mapping: Reading,
    columns: Mapping[str, Sequence[Any]],
    unfinished: Sequence[bool],
    undecided: Sequence[str],
) -> Distinct:
    """The first of every set of equal rows.

    An unfinished run whose trial another row finished is no contradiction: it was tried again.
    `undecided` are columns of theirs that may be what sets contradicting rows apart.

    Raises:
        UserError: rows of one trial have different results.
    """
    names = [Column.ARM if name == ARM_FIELD else name for name in mapping.names]
    keys = [name for name in names if name not in RESULTS]
    keys += [f"{GROUP_PREFIX}{name}" for name in mapping.group]
    results = [[_comparable(v) for v in columns[name]] for name in names if name in RESULTS]
    rows = list(zip(*(columns[name] for name in keys), strict=True))
    done = {row for row, state in zip(rows, unfinished, strict=True) if not state}
    trials: dict[tuple[Any, ...], dict[tuple[Any, ...], int]] = defaultdict(dict)
    superseded = 0
    for index, (row, result) in enumerate(zip(rows, zip(*results, strict=True), strict=True)):
        if unfinished[index] and row in done:
            superseded += 1
        else:
            trials[row].setdefault(result, index)
    if conflicts := [list(found.values()) for found in trials.values() if len(found) > 1]:
        raise UserError(_contradiction(source, columns, keys, conflicts, undecided))
    kept = tuple(sorted(index for found in trials.values() for index in found.values()))
    return Distinct(kept, len(rows) - len(kept) - superseded, superseded)


def _comparable(value: float | None) -> float | str | None:
    # As text, nan equals nan.
    return value if value is None or isfinite(value) else str(value)


def _contradiction(
    source: Source,
    columns: Mapping[str, Sequence[Any]],
    keys: Sequence[str],
    conflicts: Sequence[Sequence[int]],
    undecided: Sequence[str],
) -> str:
    named = [
        f"{', '.join(f'{key.removeprefix(GROUP_PREFIX)} {columns[key][rows[0]]}' for key in keys)}"
        ": "
        + " but ".join(
            f"{_loss(columns, row)} in {source.unit} {columns[ROW][row]}" for row in rows[:N_NAMED]
        )
        for rows in conflicts[:N_NAMED]
    ]
    more = [f"and {len(conflicts) - N_NAMED} more trials"] if len(conflicts) > N_NAMED else []
    head = f"{source.name}: one trial has different results, {len(conflicts)} times over"
    lines = [[columns[ROW][row] for row in rows] for rows in conflicts]
    return "\n".join([head, *named, *more, _proposal(source, lines, undecided)])


def _loss(columns: Mapping[str, Sequence[Any]], row: int) -> str:
    loss = columns[Column.FINAL_LOSS][row]
    return "no result" if loss is None else f"final_loss {loss}"


def _proposal(source: Source, conflicts: Sequence[Sequence[int]], undecided: Sequence[str]) -> str:
    """Columns that may be what sets contradicting rows apart; those with few values come first."""
    texts = dict(source.rows)
    free = [
        (len({row[column] for row in texts.values()}), name)
        for column, name in enumerate(source.header)
        if name in undecided
        and any(len({texts[row][column] for row in rows}) > 1 for rows in conflicts)
    ]
    if not free:
        return "no other column tells these rows apart: remove the wrong ones from the file"
    names = [name for _, name in sorted(free)]
    return (
        f"these rows differ in {listed(names, N_NAMED)}: where that is a setting, choose with "
        f"`--where {names[0]}=VALUE` or keep the values apart with `--group {names[0]}`; else "
        "remove the wrong rows"
    )
