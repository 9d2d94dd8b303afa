"""The tables of the page as text, and all tables of the findings as files."""

import io
from pathlib import Path

import polars as pl

from redline.analysis import necessity as nec
from redline.analysis import optimum as opt
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
from redline.analysis.spikes import SPIKE_SCORE
from redline.analysis.verdict import outcome_counts
from redline.files import write_atomic
from redline.report.evidence_tables import mechanism, robustness, steps
from redline.report.table import NONE, Cell, Row, Table, interval, number, setting, spread, table
from redline.store.schema import Column


def tables(found: Findings) -> list[Table]:
    """The result tables in reading order; one without rows is left out."""
    first = (_deltas(found), robustness(found), _thresholds(found), _sensitivities(found))
    rest = (_optima(found), steps(found), mechanism(found), _cells(found))
    return [made for made in (*first, *rest) if made.rows]


def trial_table(found: Findings) -> Table:
    """Every trial, the missing ones included; the name of one that finished opens it."""
    names = short_names(found.cells[CONTROL])
    finished = found.trials.join(
        found.missing, on=found.missing.columns, how="full", coalesce=True
    ).sort(CONTROL, N_LAYER, PEAK_LR, Column.ARM, SEED)
    rows = [
        (
            *setting(row, names),
            Cell(f"{row[PEAK_LR]:g}"),
            Cell(row[Column.ARM]),
            Cell(str(row[SEED])),
            Cell(row[OUTCOME] or "missing"),
            Cell(number(row[Column.FINAL_LOSS], ".3f")),
            Cell(number(row[RUNNING_MAX_LOGIT], ".3g")),
            Cell(number(row[MIN_ENTROPY_NORMALISED], ".3f")),
            Cell(
                str(row[Column.TRIAL_ID] or NONE),
                str(row[Column.TRIAL_ID]) if row[OUTCOME] else "",
            ),
        )
        for row in finished.iter_rows(named=True)
    ]
    columns = ("peak LR", "arm", "seed", "outcome", "final loss", "max logit", "entropy", "trial")
    return table(
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
            *setting(row, names),
            Cell(f"{row[PEAK_LR]:g}"),
            Cell(row[Column.ARM]),
            Cell(str(row[nec.N_PAIR])),
            Cell(number(row[nec.MEAN_DELTA], "+.3f")),
            Cell(interval(row[nec.LOWER], row[nec.UPPER], "+.3f")),
            Cell(number(row[nec.MARGIN], ".3f")),
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
    return table(
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
            *setting(row, names),
            Cell(row[Column.ARM]),
            Cell(row[thr.TIER]),
            Cell(thr.interval_text(row)),
            Cell(thr.estimate_text(row) or NONE),
            Cell(interval(row[thr.LOWEST_LR], row[thr.HIGHEST_LR], "g")),
            Cell(str(row[thr.N_SEED])),
            Cell(str(row[thr.N_MISFIT])),
        )
        for row in found.thresholds.iter_rows(named=True)
    ]
    return table(
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
            *setting(row, names),
            Cell(row[Column.ARM]),
            Cell(row[sens.GRID]),
            Cell(number(row[sens.SENSITIVITY], ".3f")),
            Cell(interval(row[sens.LOWER], row[sens.UPPER], ".3f")),
            Cell(number(row[sens.DIFFERENCE], "+.3f")),
            Cell(interval(row[sens.DIFFERENCE_LOWER], row[sens.DIFFERENCE_UPPER], "+.3f")),
            Cell(str(row[sens.N_SEED])),
            Cell(_why(row)),
        )
        for row in found.sensitivities.iter_rows(named=True)
    ]
    return table(
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
            *setting(row, names),
            Cell(row[Column.ARM]),
            Cell(f"{row[OPTIMUM_LR]:g}"),
            Cell(interval(row[opt.LOWER_LR], row[opt.UPPER_LR], "g")),
            Cell(number(row[REFERENCE_LOSS], ".3f")),
            Cell(number(row[opt.OWN_LOSS], ".3f")),
            Cell(number(row[opt.OWN_DELTA], "+.3f")),
            Cell(interval(row[opt.OWN_DELTA_LOWER], row[opt.OWN_DELTA_UPPER], "+.3f")),
            Cell(ends.get(row[opt.AT_END], "")),
        )
        for row in found.optima.iter_rows(named=True)
    ]
    return table(
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
            *setting(row, names),
            Cell(f"{row[PEAK_LR]:g}"),
            Cell(row[Column.ARM]),
            Cell(f"{row[cell.N_FINISHED]} of {row[cell.N_EXPECTED]}"),
            Cell(spread(row[cell.MEAN_LOSS], row[cell.LOSS_SD])),
            Cell(outcome_counts(row, found.analysis)),
            Cell(number(row[EARLY_MAX_LOGIT], ".3g")),
            Cell(number(row[RUNNING_MAX_LOGIT], ".3g")),
            Cell(number(row[MIN_ENTROPY_NORMALISED], ".3f")),
            Cell(number(row[MAX_OUTLIER_RATIO], ".3g")),
            Cell(number(row[SPIKE_SCORE], ".2%")),
        )
        for row in found.cells.sort(CONTROL, N_LAYER, PEAK_LR, Column.ARM).iter_rows(named=True)
    ]
    return table(
        found,
        "cells",
        "Cells",
        "Means over seeds; a non-finite trial counts at its initial loss. Logits, entropy, "
        "outliers and the share of steps that spike are medians over seeds.",
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
            "spikes",
        ),
        rows,
        n_key=2,
    )
