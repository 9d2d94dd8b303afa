"""`redline import`: a sweep that another tool ran, kept in a store to be analysed."""

import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from redline.cli import show
from redline.foreign import rows
from redline.foreign.intake import Counts, take_in
from redline.foreign.mapping import Mapping, parse
from redline.foreign.source import read
from redline.store.layout import Store
from redline.store.schema import Column


def import_(
    file: Path,
    *,
    store: Annotated[Path, Parameter(help="Store directory; made where there is none.")],
    maps: Annotated[
        list[str] | None,
        Parameter(
            "--map",
            negative="",
            help="OURS=THEIRS: peak_lr, n_layer, qk_norm, seed and final_loss are needed; "
            "init_loss, bigram_loss and any field of a trial are possible.",
        ),
    ] = None,
    sets: Annotated[
        list[str] | None, Parameter("--set", negative="", help="OURS=VALUE, the same for all rows.")
    ] = None,
    wheres: Annotated[
        list[str] | None,
        Parameter("--where", negative="", help="THEIRS=VALUE: leave out all other rows."),
    ] = None,
    groups: Annotated[
        list[str] | None,
        Parameter(
            "--group", negative="", help="THEIRS: rows that differ in this column are never pooled."
        ),
    ] = None,
) -> int:
    """Keep the results of a sweep that another tool ran, to analyse them.

    FILE is a CSV or TSV table with a row a run. A final loss of nan or inf is a diverged run; an
    empty one is a run without a result.
    """
    mapping = parse(maps or (), sets or (), wheres or (), groups or ())
    source = read(file)
    intake = take_in(source, mapping)
    rows.put(Store(store), source, mapping, intake)
    console = show.console()
    for sentence in (
        _account(source.name, intake.counts),
        *_warnings(intake.counts, mapping),
        f"Not used: {', '.join(map(repr, intake.unused))}." if intake.unused else "",
        f"`redline report {shlex.quote(str(store))}` analyses them.",
    ):
        if sentence:
            console.print(sentence)
    return 0


def _account(name: str, counts: Counts) -> str:
    return (
        f"{name}: {show.plural(counts.read, 'row')} read, {counts.kept:,} kept, "
        f"{counts.filtered:,} left out by --where, "
        f"{show.plural(counts.duplicates, 'exact duplicate')} collapsed."
    )


def _warnings(counts: Counts, mapping: Mapping) -> list[str]:
    found: list[str] = []
    if counts.without_result:
        found.append(
            f"{counts.without_result} kept without a final loss count as missing; a run that "
            "diverged needs nan or inf there."
        )
    if counts.non_finite and Column.INIT_LOSS not in mapping.names:
        found.append(
            f"{counts.non_finite} diverged, and the analysis needs the loss that they count at: "
            "add --map init_loss=COLUMN or --set init_loss=VALUE."
        )
    return found
