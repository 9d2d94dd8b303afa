"""Which columns of another tool's table are ours, and which of its rows are meant."""

from collections.abc import Sequence
from typing import Self

from pydantic import model_validator

from redline.config.edit import field_paths
from redline.config.trial import Frozen
from redline.config.words import listed, nearest, shown
from redline.files import UserError
from redline.store.schema import GROUP_PREFIX, Column
from redline.store.tables import INTEGER, SCHEMAS, TEXT, Schema

ARM_FIELD = "qk_norm"
KEYS = ("peak_lr", "n_layer", ARM_FIELD, "seed")
NEEDED = (*KEYS, Column.FINAL_LOSS)
RESULTS = (Column.FINAL_LOSS, Column.INIT_LOSS, Column.BIGRAM_LOSS)
"""What a run measured. Rows that agree in everything else and differ here contradict each other."""

DTYPES: Schema = {
    name: dtype
    for name, dtype in SCHEMAS["trials"].items()
    if name in RESULTS or name in {path.rpartition(".")[2] for path in field_paths()}
}
"""Every column of ours that a table can fill, with its type."""

ROW = "row"
"""Line of the file, the header being line 1."""

_N_LISTED = 30


class Mapping(Frozen):
    """How a table is read, in the words of the command's options.

    `map` leads from our column to theirs, `set` from our column to one value as text. `where` are
    (their column, value) that a row must satisfy; `group` are columns of theirs that are kept.
    """

    map: dict[str, str]
    set: dict[str, str]
    where: tuple[tuple[str, str], ...]
    group: tuple[str, ...]

    @model_validator(mode="after")
    def _names_are_ours_and_once(self) -> Self:
        if strangers := [name for name in (*self.map, *self.set) if name not in DTYPES]:
            raise ValueError(f"{shown(strangers[0])} is no column of ours")
        if twice := [name for name in self.map if name in self.set]:
            raise ValueError(f"{twice[0]} is both mapped and set")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """Our columns that get a value, in our order."""
        return tuple(name for name in DTYPES if name in self.map or name in self.set)

    @property
    def row_schema(self) -> Schema:
        """The columns of the rows: those of our own trials, then where a row comes from."""
        origin: Schema = {Column.ORIGIN: TEXT, ROW: INTEGER}
        groups: Schema = {f"{GROUP_PREFIX}{name}": TEXT for name in self.group}
        return SCHEMAS["trials"] | origin | groups


def parse(
    maps: Sequence[str], sets: Sequence[str], wheres: Sequence[str], groups: Sequence[str]
) -> Mapping:
    """The mapping that options such as `peak_lr=lr` spell.

    Raises:
        UserError: an option has no "=", names a column that is not ours, or names one twice.
    """
    found: dict[str, dict[str, str]] = {"--map": {}, "--set": {}}
    for option, texts in (("--map", maps), ("--set", sets)):
        for text in texts:
            ours, value = _pair(option, text)
            _refuse_stranger(option, ours, value)
            if ours in found["--map"] | found["--set"]:
                raise UserError(f"{option} {text}: {ours} is given twice")
            found[option][ours] = value
    if Column.FINAL_LOSS in found["--set"]:
        raise UserError(f"--set {Column.FINAL_LOSS}: it is what each run measured; --map it")
    where = tuple(_pair("--where", text) for text in wheres)
    group = tuple(dict.fromkeys(name.strip() for name in groups))
    return Mapping(map=found["--map"], set=found["--set"], where=where, group=group)


def check(mapping: Mapping, name: str, header: Sequence[str]) -> None:
    """Pass a mapping that fits the header of the file `name`.

    Raises:
        UserError: what is needed is missing, or a column is not in the file, one sentence a line.
    """
    lines = [_needed(ours) for ours in NEEDED if ours not in mapping.names]
    asked = [(f"--map {ours}={theirs}", theirs) for ours, theirs in mapping.map.items()]
    asked += [(f"--where {theirs}={value}", theirs) for theirs, value in mapping.where]
    asked += [(f"--group {theirs}", theirs) for theirs in mapping.group]
    lines += [
        f"{option}: {name} has no column {shown(theirs)}{nearest(theirs, header)}"
        for option, theirs in asked
        if theirs not in header
    ]
    columns = {theirs: ours for ours, theirs in mapping.map.items()}
    if lines:
        raise UserError(
            "\n".join([*lines, f"the columns of {name} are {listed(header, _N_LISTED)}"])
        )
    for theirs in mapping.group:
        # Each value would be a group of its own, and there would be nothing left to compare.
        if theirs in columns:
            raise UserError(f"--group {theirs}: this column is {columns[theirs]} already")


def unused(mapping: Mapping, header: Sequence[str]) -> tuple[str, ...]:
    """Columns of the file that decide nothing: neither mapped, nor a filter, nor a group."""
    used = {*mapping.map.values(), *mapping.group, *(name for name, _ in mapping.where)}
    return tuple(name for name in header if name not in used)


def _pair(option: str, text: str) -> tuple[str, str]:
    left, equals, right = text.partition("=")
    if not equals or not left.strip():
        raise UserError(f"{option} {text}: two names with = between them are needed")
    return left.strip(), right.strip()


def _refuse_stranger(option: str, ours: str, value: str) -> None:
    if ours in DTYPES:
        return
    turned = f"; did you mean {option} {value}={ours}?" if value in DTYPES else ""
    raise UserError(
        f"{option} {ours}={value}: {shown(ours)} is no column of ours: {', '.join(NEEDED)} are "
        "needed, and init_loss, bigram_loss and any field of a trial are possible"
        f"{turned or nearest(ours, DTYPES)}"
    )


def _needed(ours: str) -> str:
    constant = "" if ours == Column.FINAL_LOSS else f", or --set {ours}=VALUE for all rows"
    return f"--map {ours}=COLUMN is needed{constant}"
