"""Which columns of another tool's table are ours, and which of its rows are meant."""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Mapping as Table
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

LOSSES = "losses"
"""A column with all losses of a run, in place of `final_loss`."""
FIRST = "first"
"""`init_loss = first`: the initial loss is the first of the losses."""

DTYPES: Schema = {
    name: dtype
    for name, dtype in SCHEMAS["trials"].items()
    if name in RESULTS or name in {path.rpartition(".")[2] for path in field_paths()}
}
"""Every column of ours that a table can fill, with its type."""
MAPPABLE = (*DTYPES, LOSSES)

ROW = "row"
"""Line of a text file, the header of a table being line 1; row of a Parquet file, from 1."""

PREFIXES = ("params.", "metrics.", "config.", "summary.", "tags.")
"""How exports begin the names of settings and results; a mapping need not repeat them."""

_N_LISTED = 30


class Mapping(Frozen):
    """How a table is read, in the words of the command's options.

    `map` leads from our column to theirs, `set` from our column to one value as text, `where` from
    their column to the value that a row must have. `group` are columns of theirs that are kept to
    separate rows, `ignore` those that must not.
    """

    map: dict[str, str]
    set: dict[str, str]
    where: dict[str, str]
    group: tuple[str, ...]
    ignore: tuple[str, ...]

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if problem := next(_problems(self), None):
            raise ValueError(problem)
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """Our columns that get a value, in our order."""
        given = {*self.map, *self.set, *([Column.FINAL_LOSS] if LOSSES in self.map else [])}
        return tuple(name for name in DTYPES if name in given)

    @property
    def row_schema(self) -> Schema:
        """The columns of the rows: those of our own trials, then where a row comes from."""
        origin: Schema = {Column.ORIGIN: TEXT, ROW: INTEGER}
        groups: Schema = {f"{GROUP_PREFIX}{name}": TEXT for name in self.group}
        return SCHEMAS["trials"] | origin | groups


def parse(
    maps: Sequence[str],
    sets: Sequence[str],
    wheres: Sequence[str],
    groups: Sequence[str],
    ignores: Sequence[str],
) -> Mapping:
    """The mapping that options such as `peak_lr=lr` spell.

    Raises:
        UserError: an option has no "=", names a column that is not ours, or names one twice.
    """
    fields = {
        "map": _table("--map", maps),
        "set": _table("--set", sets),
        "where": _table("--where", wheres),
    }
    for option, ours, value in (
        *(("--map", *pair) for pair in fields["map"].items()),
        *(("--set", *pair) for pair in fields["set"].items()),
    ):
        refuse_stranger(f"{option} {ours}={value}", ours, value, option)
    return built(fields, groups, ignores, "")


def built(
    fields: Table[str, dict[str, str]], groups: Iterable[str], ignores: Iterable[str], place: str
) -> Mapping:
    """A mapping of parts that were read; `place` begins the sentence if they do not fit.

    Raises:
        UserError: the parts contradict each other.
    """
    found = Mapping.model_construct(
        map=fields["map"],
        set=fields["set"],
        where=fields["where"],
        group=tuple(dict.fromkeys(name.strip() for name in groups)),
        ignore=tuple(dict.fromkeys(name.strip() for name in ignores)),
    )
    if problem := next(_problems(found), None):
        raise UserError(place + problem)
    return found


def extended(base: Mapping, options: Mapping) -> Mapping:
    """`base`, with what the options say in place of what it says of the same column.

    Raises:
        UserError: the whole contradicts itself.
    """
    given = {*options.map, *options.set}
    if given & {LOSSES, Column.FINAL_LOSS}:
        given |= {LOSSES, Column.FINAL_LOSS}
    fields = {
        "map": {ours: t for ours, t in base.map.items() if ours not in given} | options.map,
        "set": {ours: t for ours, t in base.set.items() if ours not in given} | options.set,
        "where": base.where | options.where,
    }
    groups = [name for name in base.group if name not in options.ignore]
    ignores = [name for name in base.ignore if name not in options.group]
    return built(fields, [*groups, *options.group], [*ignores, *options.ignore], "")


def fitted(mapping: Mapping, name: str, header: Sequence[str]) -> Mapping:
    """A mapping with the names of columns as the header of the file `name` writes them.

    Raises:
        UserError: what is needed is missing, or a column is not in the file, one sentence a line.
    """
    lines = [_needed(ours) for ours in NEEDED if ours not in mapping.names]
    asked = [(f"--map {ours}={theirs}", theirs) for ours, theirs in mapping.map.items()]
    asked += [(f"--where {theirs}={value}", theirs) for theirs, value in mapping.where.items()]
    asked += [(f"--group {theirs}", theirs) for theirs in mapping.group]
    asked += [(f"--ignore {theirs}", theirs) for theirs in mapping.ignore]
    whole: dict[str, str] = {}
    unknown = False
    for option, theirs in asked:
        found = _whole_names(theirs, header)
        whole[theirs] = found[0] if found else theirs
        if len(found) > 1:
            lines.append(f"{option}: {name} has {' and '.join(found)}; write the whole name")
        elif not found:
            unknown = True
            lines.append(f"{option}: {name} has no column {shown(theirs)}{_near(theirs, header)}")
    if unknown or any(ours not in mapping.names for ours in NEEDED):
        lines.append(f"the columns of {name} are {listed(header, _N_LISTED)}")
    if lines:
        raise UserError("\n".join(lines))
    fields = {
        "map": {ours: whole[theirs] for ours, theirs in mapping.map.items()},
        "set": mapping.set,
        "where": {whole[theirs]: value for theirs, value in mapping.where.items()},
    }
    groups, ignores = ([whole[n] for n in part] for part in (mapping.group, mapping.ignore))
    return built(fields, groups, ignores, "")


def refuse_stranger(place: str, ours: str, value: str, option: str) -> None:
    """Pass a name that is a column of ours; `place` begins the sentence that refuses another."""
    if ours in (MAPPABLE if option == "--map" else DTYPES):
        return
    turned = f"; did you mean {option} {value}={ours}?" if value in MAPPABLE else ""
    raise UserError(
        f"{place}: {shown(ours)} is no column of ours: {', '.join(NEEDED)} are needed, and losses "
        "in place of final_loss, init_loss, bigram_loss and any field of a trial are possible"
        f"{turned or nearest(ours, MAPPABLE)}"
    )


def _problems(mapping: Mapping) -> Iterator[str]:
    """What is wrong with a mapping, whatever the table."""
    given = (*mapping.map, *mapping.set)
    yield from (f"{shown(name)} is no column of ours" for name in given if name not in MAPPABLE)
    yield from (
        f"{name} is both mapped and set; drop one" for name in mapping.map if name in mapping.set
    )
    if {Column.FINAL_LOSS, LOSSES} & mapping.set.keys():
        yield f"--set {Column.FINAL_LOSS}: it is what each run measured; --map it"
    if {Column.FINAL_LOSS, LOSSES} <= mapping.map.keys():
        yield f"{Column.FINAL_LOSS} and {LOSSES} both say how a run ended; map one of them"
    if mapping.set.get(Column.INIT_LOSS) == FIRST and LOSSES not in mapping.map:
        yield f"--set init_loss={FIRST}: only a list has a first loss; --map losses=COLUMN too"
    mapped = {theirs: ours for ours, theirs in mapping.map.items()}
    for theirs in mapping.group:
        # Each value would be a group of its own, and there would be nothing left to compare.
        if theirs in mapped:
            yield f"--group {theirs}: this column is {mapped[theirs]} already; drop one"
        if theirs in mapping.ignore:
            yield f"{theirs} is both grouped by and ignored; drop one"


def _table(option: str, texts: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        left, equals, right = (part.strip() for part in text.partition("="))
        if not equals or not left:
            raise UserError(f"{option} {text}: two names with = between them are needed")
        if left in found:
            raise UserError(f"{option} {text}: {left} is given twice; drop one")
        found[left] = right
    return found


def _whole_names(theirs: str, header: Sequence[str]) -> list[str]:
    if theirs in header:
        return [theirs]
    return [prefix + theirs for prefix in PREFIXES if prefix + theirs in header]


def _near(theirs: str, header: Sequence[str]) -> str:
    bare = [name.removeprefix(prefix) for name in header for prefix in PREFIXES]
    return nearest(theirs, [*header, *bare])


def _needed(ours: str) -> str:
    if ours == Column.FINAL_LOSS:
        return f"--map {ours}=COLUMN is needed, or --map {LOSSES}=COLUMN with all losses of a run"
    return f"--map {ours}=COLUMN is needed, or --set {ours}=VALUE for all rows"
