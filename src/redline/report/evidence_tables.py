"""The tables behind the verdict: steps to threshold, the mechanism, the robustness."""

import polars as pl

from redline.analysis import mechanism as mec
from redline.analysis import necessity as nec
from redline.analysis import robustness as rob
from redline.analysis import steps as stp
from redline.analysis.comparable import CONTROL, N_LAYER, PEAK_LR, short_names
from redline.analysis.findings import Findings
from redline.analysis.headline import EARLY_MAX_LOGIT, WARMUP_40_MAX_LOGIT, WARMUP_MAX_LOGIT
from redline.report.table import NONE, Cell, Table, interval, number, setting, table
from redline.store.schema import Column


def steps(found: Findings) -> Table:
    """Mean restricted steps of each cell, and what the arm saves."""
    names = short_names(found.cells[CONTROL])
    arrived = found.steps.filter(pl.col(stp.N_ARRIVED).sum().over(CONTROL, N_LAYER) > 0)
    rows = [
        (
            *setting(row, names),
            Cell(f"{row[PEAK_LR]:g}"),
            Cell(row[Column.ARM]),
            Cell(f"{row[stp.N_ARRIVED]} of {row[stp.N_TRIAL]}"),
            Cell(number(row[stp.MEAN_STEPS], ",.0f")),
            Cell(interval(row[stp.STEPS_LOWER], row[stp.STEPS_UPPER], ",.0f")),
            Cell(number(row[stp.SAVED], "+,.0f")),
            Cell(interval(row[stp.SAVED_LOWER], row[stp.SAVED_UPPER], "+,.0f")),
            Cell(number(row[stp.LOG_RANK_P], ".2g")),
        )
        for row in arrived.sort(CONTROL, N_LAYER, PEAK_LR, Column.ARM).iter_rows(named=True)
    ]
    lines = sorted({f"{value:.3f}" for value in found.steps[stp.THRESHOLD]})
    return table(
        found,
        "steps",
        "Steps to threshold",
        f"Steps until an evaluation is at or below {' or '.join(lines)} nat; a trial that never "
        "arrives counts with all its steps. Saved: plain arm - arm, paired by seed. The log-rank "
        "test ignores the pairing and describes only.",
        (
            "peak LR",
            "arm",
            "arrived",
            "mean steps",
            "95 % interval",
            "saved",
            "95 % interval of it",
            "log-rank p",
        ),
        rows,
        n_key=2,
    )


def mechanism(found: Findings) -> Table:
    """How well early logits order the outcomes."""
    names = short_names(found.cells[CONTROL])
    rows = [
        (
            *setting(row, names),
            Cell(row[Column.ARM]),
            Cell(MOMENTS[row[mec.PREDICTOR]]),
            Cell(f"{row[mec.N_UNSTABLE]} / {row[mec.N_STABLE]}"),
            Cell(number(row[mec.AUC], ".2f")),
            Cell(number(row[mec.AUC_OF_LR], ".2f")),
            Cell(number(row[mec.AUC_AT_ONE_LR], ".2f")),
            Cell(str(row[mec.N_PAIR])),
            Cell(f"{row[mec.ABOVE_DIVERGED]} of {row[mec.ABOVE]}"),
            Cell(f"{row[mec.BELOW_DIVERGED]} of {row[mec.BELOW]}"),
            Cell(row[mec.WHY]),
        )
        for row in found.mechanism.iter_rows(named=True)
        if row[mec.N_UNSTABLE] + row[mec.N_STABLE]
    ]
    return table(
        found,
        "mechanism",
        "Does an early attention logit foretell instability?",
        "Share of (unstable, stable) pairs of trials in which the unstable one had the larger max "
        "logit of the first layer: 1 foretells all, 0.5 nothing. LR drives both, so that the logit "
        "says something of its own only where it beats the LR, or among seeds of one LR. At 1e4 "
        "lies the line above which every run of 2309.14322 diverged.",
        (
            "arm",
            "max logit of layer 0",
            "unstable / stable",
            "AUC of the logit",
            "AUC of the LR",
            "AUC at one LR",
            "pairs at one LR",
            "diverged above 1e4",
            "diverged below",
            "remarks",
        ),
        rows,
        n_key=2,
    )


MOMENTS = {
    EARLY_MAX_LOGIT: "at 2 % of training",
    WARMUP_40_MAX_LOGIT: "at 40 % of warm-up",
    WARMUP_MAX_LOGIT: "at the end of warm-up",
}


def robustness(found: Findings) -> Table:
    """The verdict under each changed assumption."""
    names = short_names(found.cells[CONTROL])
    changed = found.robustness
    rows = [
        (
            *setting(row, names),
            Cell(row[Column.ARM]),
            Cell(row[rob.CHANGE]),
            Cell(row[rob.MOVES]),
            Cell(number(row[nec.DROPPABLE_TO], "g")),
            Cell(number(row[nec.NEEDED_FROM], "g")),
            *(Cell(row[name] or NONE) for name in rob.NAMES),
            Cell(row[rob.LIMIT_OF_PLAIN] or NONE),
            Cell(row[rob.LIMIT_OF_ARM] or NONE),
        )
        for row in changed.iter_rows(named=True)
    ]
    changes = changed.filter(pl.col(rob.CHANGE) != rob.REGISTERED)
    n_moved = changes.filter(pl.col(rob.MOVES) != "").height
    left = found.cells[CONTROL].n_unique() - changed[CONTROL].n_unique()
    return table(
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
