"""`redline import`: a sweep that another tool ran, kept in a store to be analysed."""

import shlex
from pathlib import Path
from typing import Annotated

import polars as pl
from cyclopts import Parameter

from redline.analysis.comparable import (
    CONTROL,
    N_LAYER,
    PEAK_LR,
    SEED,
    TRIAL_KEY,
    setting_fields,
    setting_name,
)
from redline.analysis.grid import full_product, missing_trials
from redline.cli import show
from redline.config.words import listed
from redline.foreign import mapfile, rows
from redline.foreign.grouping import Reason
from redline.foreign.intake import Intake, take_in
from redline.foreign.mapping import extended, parse
from redline.foreign.source import read
from redline.store.layout import Store
from redline.store.schema import Column

N_NAMED = 5
N_COLUMNS = 8


def import_(
    file: Path,
    *,
    store: Annotated[Path, Parameter(help="Store directory; made where there is none.")],
    mapping: Annotated[
        Path | None,
        Parameter(
            help="TOML file with tables map, set, where and lists group, ignore, such as the "
            "map.toml of a store; the other options override it."
        ),
    ] = None,
    maps: Annotated[
        list[str] | None,
        Parameter(
            "--map",
            negative="",
            help="OURS=THEIRS: peak_lr, n_layer, qk_norm, seed and final_loss are needed (or "
            "losses, a list a run); init_loss, bigram_loss and any field of a trial are possible.",
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
    ignores: Annotated[
        list[str] | None,
        Parameter("--ignore", negative="", help="THEIRS: this column must separate no rows."),
    ] = None,
) -> int:
    """Keep the results of a sweep that another tool ran, to analyse them.

    FILE is a CSV, TSV, JSON Lines or Parquet table with a row a run; exports of W&B and MLflow are
    recognised. A final loss of nan or inf is a diverged run; an empty one is a run without a
    result. Columns that look like settings separate rows unless --ignore names them.
    """
    options = parse(maps or (), sets or (), wheres or (), groups or (), ignores or ())
    reading = options if mapping is None else extended(mapfile.read(mapping), options)
    source = read(file)
    intake = take_in(source, reading)
    rows.put(Store(store), source, intake)
    console = show.console()
    for sentence in (
        _account(source.name, intake),
        *_groups(intake),
        *_warnings(intake),
        *_missing(intake.frame),
        f"`redline report {shlex.quote(str(store))}` analyses them.",
    ):
        console.print(sentence)
    return 0


def _account(name: str, intake: Intake) -> str:
    counts = intake.counts
    again = (
        f", {show.plural(counts.superseded, 'unfinished run')} that another row finished left out"
        if counts.superseded
        else ""
    )
    tool = f" ({intake.tool} export)" if intake.tool else ""
    return (
        f"{name}{tool}: {show.plural(counts.read, 'row')} read, {counts.kept:,} kept, "
        f"{counts.filtered:,} left out by --where, "
        f"{show.plural(counts.duplicates, 'exact duplicate')} collapsed{again}."
    )


def _groups(intake: Intake) -> list[str]:
    found: list[str] = []
    if intake.found_groups:
        found.append(
            f"Grouped by {', '.join(map(repr, intake.found_groups))}: rows that differ there are "
            "never pooled; --ignore COLUMN drops one."
        )
    reasons = {
        reason: [repr(name) for name, why in intake.unused.items() if why == reason]
        for reason in Reason
    }
    parts = [f"{listed(names, N_COLUMNS)} ({reason})" for reason, names in reasons.items() if names]
    if parts:
        found.append(f"Not used: {'; '.join(parts)}.")
    return found


def _warnings(intake: Intake) -> list[str]:
    counts, found = intake.counts, []
    if intake.unfinished:
        states = ", ".join(f"{n:,} {state}" for state, n in intake.unfinished.items())
        found.append(f"Not finished, so missing and never diverged: {states}.")
    if n := counts.without_result - sum(intake.unfinished.values()):
        pandas = ", and pandas writes a metric of nan as nothing" if intake.tool == "MLflow" else ""
        found.append(
            f"{n:,} kept without a final loss count as missing; a run that diverged needs nan or "
            f"inf there{pandas}."
        )
    if counts.non_finite and intake.frame[Column.INIT_LOSS].null_count():
        found.append(
            f"{counts.non_finite:,} diverged, and the analysis needs the loss that they count at: "
            "add --map init_loss=COLUMN or --set init_loss=VALUE."
        )
    return found


def _missing(frame: pl.DataFrame) -> list[str]:
    """What a report will call missing, and the depths that have nothing to compare."""
    expected = frame.with_columns(
        setting_name(frame, setting_fields(frame, hashes=False)).alias(CONTROL)
    )
    product = full_product(expected.select(TRIAL_KEY).unique())
    found: list[str] = []
    holes = missing_trials(product, expected.filter(pl.col(Column.FINAL_LOSS).is_not_null()))
    if holes.height:
        names = [_cell(row) for row in holes.head(N_NAMED).iter_rows(named=True)]
        more = f"; and {holes.height - N_NAMED:,} more" if holes.height > N_NAMED else ""
        found.append(
            f"Missing: {holes.height:,} of {product.height:,} cells of the full product: "
            f"{'; '.join(names)}{more}."
        )
    arms = expected.group_by(CONTROL, N_LAYER).agg(pl.col(Column.ARM).unique())
    single = arms.filter(pl.col(Column.ARM).list.len() == 1).sort(CONTROL, N_LAYER)
    if single.height:
        names = [
            f"{', '.join([f'{N_LAYER} {row[N_LAYER]}', *filter(None, [row[CONTROL]])])} "
            f"({row[Column.ARM][0]} alone)"
            for row in single.iter_rows(named=True)
        ]
        found.append(f"One arm alone, so nothing to compare: {listed(names, N_NAMED)}.")
    return found


def _cell(row: dict[str, object]) -> str:
    setting = f" ({row[CONTROL]})" if row[CONTROL] else ""
    return (
        f"{row[Column.ARM]}, {N_LAYER} {row[N_LAYER]}, peak LR {row[PEAK_LR]:g}, "
        f"seed {row[SEED]}{setting}"
    )
