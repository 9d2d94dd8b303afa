"""The tables of the page as text, and all tables of the findings as files."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from redline.analysis import necessity as nec
from redline.analysis import optimum as opt
from redline.analysis import robustness as rob
from redline.analysis import sensitivity as sens
from redline.analysis import summary as cell
from redline.analysis import threshold as thr
from redline.analysis.comparable import CONTROL, N_LAYER, PEAK_LR, SEED, short_names
from redline.analysis.findings import Findings
from redline.analysis.headline import (
    EARLY_MAX_LOGIT,
    MAX_OUTLIER_RATIO,
    MIN_ENTROPY_NORMALISED,
    RUNNING_MAX_LOGIT,
)
from redline.analysis.outcome import OPTIMUM_LR, OUTCOME, REFERENCE_LOSS
from redline.analysis.verdict import outcome_counts
from redline.files import write_atomic
from redline.store.schema import Column

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


def tables(found: Findings) -> list[Table]:
    """The result tables in reading order; one without rows is left out."""
    made = (_deltas(found), _thresholds(found), _sensitivities(found), _optima(found))
    return [table for table in (*made, _cells(found), _robustness(found)) if table.rows]


def trial_table(found: Findings) -> Table:
    """Every trial, the missing ones included; the name of one that finished opens it."""
    names = short_names(found.cells[CONTROL])
    finished = found.trials.join(
        found.missing, on=found.missing.columns, how="full", coalesce=True
    ).sort(CONTROL, N_LAYER, PEAK_LR, Column.ARM, SEED)
    rows = [
        (
            *_setting(row, names),
            Cell(f"{row[PEAK_LR]:g}"),
            Cell(row[Column.ARM]),
            Cell(str(row[SEED])),
            Cell(row[OUTCOME] or "missing"),
            Cell(_number(row[Column.FINAL_LOSS], ".3f")),
            Cell(_number(row[RUNNING_MAX_LOGIT], ".3g")),
            Cell(_number(row[MIN_ENTROPY_NORMALISED], ".3f")),
            Cell(
                str(row[Column.TRIAL_ID] or NONE),
                str(row[Column.TRIAL_ID]) if row[OUTCOME] else "",
            ),
        )
        for row in finished.iter_rows(named=True)
    ]
    columns = ("peak LR", "arm", "seed", "outcome", "final loss", "max logit", "entropy", "trial")
    return _table(
        found,
        "trials",
        "Trials",
        "Choose a trial to see its curves, its settings and the command that trains it again.",
        columns,
        rows,
        n_key=3,
    )


def write_tables(found: Findings, directory: Path) -> None:
    """Every table of the findings as CSV, which a person reads, and Parquet, which is exact."""
    for name, frame in found.tables.items():
        content = io.BytesIO()
        frame.write_parquet(content)
        write_atomic(directory / f"{name}.parquet", content.getvalue())
        nested = [n for n, kind in frame.schema.items() if isinstance(kind, pl.List)]
        flat = frame.with_columns(
            pl.col(n).cast(pl.List(pl.String)).list.join(" ").alias(n) for n in nested
        )
        write_atomic(directory / f"{name}.csv", flat.write_csv().encode())


def _deltas(found: Findings) -> Table:
    names = short_names(found.cells[CONTROL])
    rows = [
        (
            *_setting(row, names),
            Cell(f"{row[PEAK_LR]:g}"),
            Cell(row[Column.ARM]),
            Cell(str(row[nec.N_PAIR])),
            Cell(_number(row[nec.MEAN_DELTA], "+.3f")),
            Cell(_interval(row[nec.LOWER], row[nec.UPPER], "+.3f")),
            Cell(_number(row[nec.MARGIN], ".3f")),
            Cell(f"{row[nec.N_PLAIN_ALONE]} / {row[nec.N_ARM_ALONE]}"),
            Cell(row[nec.STATE]),
            Cell(row[nec.WHY]),
        )
        for row in found.deltas.iter_rows(named=True)
    ]
    columns = (
        "peak LR",
        "arm",
        "pairs",
        "off - arm",
        "95 % interval",
        "margin supported",
        "only off / only arm unstable",
        "decision",
        "why undecided",
    )
    a = found.analysis
    return _table(
        found,
        "deltas",
        "Is QK-norm needed?",
        f"Paired difference in final loss over seeds, in nats. Needed: the interval lies above "
        f"{a.m_nec:g}. Droppable: below {a.m_eq:g}. Small benefit: between them. Hurts: below "
        f"-{a.m_eq:g}. The margin supported is the smallest that these data allow to be ruled out.",
        columns,
        rows,
        n_key=2,
    )


def _thresholds(found: Findings) -> Table:
    names = short_names(found.cells[CONTROL])
    rows = [
        (
            *_setting(row, names),
            Cell(row[Column.ARM]),
            Cell(row[thr.TIER]),
            Cell(thr.interval_text(row)),
            Cell(thr.estimate_text(row) or NONE),
            Cell(_interval(row[thr.LOWEST_LR], row[thr.HIGHEST_LR], "g")),
            Cell(str(row[thr.N_SEED])),
            Cell(str(row[thr.N_MISFIT])),
        )
        for row in found.thresholds.iter_rows(named=True)
    ]
    return _table(
        found,
        "thresholds",
        "Highest stable learning rate",
        "The grid interval of the median seed, from the split of each seed's outcomes with the "
        "fewest misfits, and the posterior median of the mean threshold with its 95 % interval "
        "(only a limit where half of the seeds or the interval leave the grid). Unstable: "
        "non-finite, failed, or degraded by the largest delta; usable measures from the best loss "
        "of all arms.",
        ("arm", "tier", "median seed", "posterior", "all seeds", "seeds", "misfits"),
        rows,
        n_key=2,
    )


def _sensitivities(found: Findings) -> Table:
    names = short_names(found.cells[CONTROL])
    rows = [
        (
            *_setting(row, names),
            Cell(row[Column.ARM]),
            Cell(row[sens.GRID]),
            Cell(_number(row[sens.SENSITIVITY], ".3f")),
            Cell(_interval(row[sens.LOWER], row[sens.UPPER], ".3f")),
            Cell(_number(row[sens.DIFFERENCE], "+.3f")),
            Cell(_interval(row[sens.DIFFERENCE_LOWER], row[sens.DIFFERENCE_UPPER], "+.3f")),
            Cell(str(row[sens.N_SEED])),
            Cell(_why(row)),
        )
        for row in found.sensitivities.iter_rows(named=True)
    ]
    return _table(
        found,
        "sensitivities",
        "Learning-rate sensitivity",
        "Mean loss over the grid minus the best one, per seed (2309.14322): what a wrong peak LR "
        "costs, in nats. Small is good.",
        (
            "arm",
            "grid",
            "sensitivity",
            "95 % interval",
            "off - arm",
            "95 % interval of it",
            "seeds",
            "remarks",
        ),
        rows,
        n_key=2,
    )


def _why(row: Row) -> str:
    out = ", ".join(map(str, row[sens.LEFT_OUT]))
    left = f"left out for missing trials: seed {out}" if out else ""
    return "; ".join(filter(None, (row[sens.WHY], left)))


def _optima(found: Findings) -> Table:
    names = short_names(found.cells[CONTROL])
    ends = {"lowest": "at the lowest tested", "highest": "at the highest tested"}
    rows = [
        (
            *_setting(row, names),
            Cell(row[Column.ARM]),
            Cell(f"{row[OPTIMUM_LR]:g}"),
            Cell(_interval(row[opt.LOWER_LR], row[opt.UPPER_LR], "g")),
            Cell(_number(row[REFERENCE_LOSS], ".3f")),
            Cell(_number(row[opt.OWN_LOSS], ".3f")),
            Cell(_number(row[opt.OWN_DELTA], "+.3f")),
            Cell(_interval(row[opt.OWN_DELTA_LOWER], row[opt.OWN_DELTA_UPPER], "+.3f")),
            Cell(ends.get(row[opt.AT_END], "")),
        )
        for row in found.optima.iter_rows(named=True)
    ]
    return _table(
        found,
        "optima",
        "Best learning rate of each arm",
        "The interval holds the neighbours in the grid and every LR that is not significantly "
        "worse. The loss at the own best LR chooses each seed's LR on the other seeds.",
        (
            "arm",
            "best LR",
            "interval",
            "mean loss there",
            "loss at own best LR",
            "off - arm",
            "95 % interval of it",
            "remarks",
        ),
        rows,
        n_key=1,
    )


def _cells(found: Findings) -> Table:
    names = short_names(found.cells[CONTROL])
    rows = [
        (
            *_setting(row, names),
            Cell(f"{row[PEAK_LR]:g}"),
            Cell(row[Column.ARM]),
            Cell(f"{row[cell.N_FINISHED]} of {row[cell.N_EXPECTED]}"),
            Cell(_spread(row[cell.MEAN_LOSS], row[cell.LOSS_SD])),
            Cell(outcome_counts(row, found.analysis)),
            Cell(_number(row[EARLY_MAX_LOGIT], ".3g")),
            Cell(_number(row[RUNNING_MAX_LOGIT], ".3g")),
            Cell(_number(row[MIN_ENTROPY_NORMALISED], ".3f")),
            Cell(_number(row[MAX_OUTLIER_RATIO], ".3g")),
        )
        for row in found.cells.sort(CONTROL, N_LAYER, PEAK_LR, Column.ARM).iter_rows(named=True)
    ]
    return _table(
        found,
        "cells",
        "Cells",
        "Means over seeds; a non-finite trial counts at its initial loss. Logits, entropy and "
        "outliers are medians over seeds.",
        (
            "peak LR",
            "arm",
            "seeds",
            "final loss",
            "outcomes",
            "early max logit",
            "max logit",
            "entropy",
            "outliers",
        ),
        rows,
        n_key=2,
    )


def _robustness(found: Findings) -> Table:
    names = short_names(found.cells[CONTROL])
    table = found.robustness
    rows = [
        (
            *_setting(row, names),
            Cell(row[Column.ARM]),
            Cell(row[rob.CHANGE]),
            Cell(row[rob.MOVES]),
            Cell(_number(row[nec.DROPPABLE_TO], "g")),
            Cell(_number(row[nec.NEEDED_FROM], "g")),
            *(Cell(row[name] or NONE) for name in rob.NAMES),
            Cell(row[rob.LIMIT_OF_PLAIN] or NONE),
            Cell(row[rob.LIMIT_OF_ARM] or NONE),
        )
        for row in table.iter_rows(named=True)
    ]
    changes = table.filter(pl.col(rob.CHANGE) != rob.REGISTERED)
    n_moved = changes.filter(pl.col(rob.MOVES) != "").height
    left = found.cells[CONTROL].n_unique() - table[CONTROL].n_unique()
    return _table(
        found,
        "robustness",
        "How robust is the verdict?",
        f"Each row changes one assumption and repeats the analysis; {n_moved} of {changes.height} "
        "move something. A verdict that only some of them give hangs on that assumption. Without a "
        "seed there are fewer to decide: undecided is then no contradiction."
        + (f" {left} settings are not in the table." if left else ""),
        (
            "arm",
            "change",
            "moves",
            "droppable up to",
            "needed from",
            *rob.NAMES,
            "stable limit of off",
            "stable limit of the arm",
        ),
        rows,
        n_key=3,
    )


def _table(
    found: Findings,
    name: str,
    title: str,
    caption: str,
    columns: Sequence[str],
    rows: Sequence[tuple[Cell, ...]],
    *,
    n_key: int,
) -> Table:
    with_setting = found.cells[CONTROL].n_unique() > 1
    # Every row begins with setting and depth; a setting that is alone has no name to show.
    shown = tuple(row if with_setting else row[1:] for row in rows)
    leading = ("setting", "n_layer") if with_setting else ("n_layer",)
    return Table(name, title, caption, (*leading, *columns), shown, len(leading) + n_key)


def _setting(row: Row, names: dict[str, str]) -> tuple[Cell, Cell]:
    return Cell(names[row[CONTROL]]), Cell(str(row[N_LAYER]))


def _number(value: float | None, form: str) -> str:
    return NONE if value is None else format(value, form)


def _interval(low: float | None, high: float | None, form: str) -> str:
    if low is None and high is None:
        return NONE
    return f"{_number(low, form)} to {_number(high, form)}"


def _spread(mean: float | None, sd: float | None) -> str:
    return _number(mean, ".3f") + ("" if sd is None else f" ± {sd:.3f}")
