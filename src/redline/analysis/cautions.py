"""What a reader must know before the numbers: how little there is, and what is odd about it."""

from itertools import pairwise
from math import log10
from typing import Any

import polars as pl

from redline.analysis.comparable import (
    CELL_KEY,
    CONTROL,
    HASHES,
    N_LAYER,
    PEAK_LR,
    SEED,
    short_names,
)
from redline.analysis.findings import Findings
from redline.config.analysis import SAME_LR
from redline.store.schema import Column

N_NAMED = 8
NEVER_POOLED = (*HASHES, "device", "precision")


def cautions(found: Findings) -> list[str]:
    """Sentences, most important first."""
    return [
        *_unlike(found),
        *_one_seed(found),
        *_missing(found),
        *_twins(found),
        *_near(found),
        *_copies(found),
    ]


def _unlike(found: Findings) -> list[str]:
    differ = [name for name in NEVER_POOLED if found.trials[name].n_unique() > 1]
    if not differ:
        return []
    apart = f"The trials differ in {' and '.join(differ)}: they are shown apart and never pooled."
    return [f"{apart} A loss per token is not comparable between two tokenizers or two texts."]


def _one_seed(found: Findings) -> list[str]:
    most = found.cells["n_finished"].max() if found.cells.height else 0
    return ["One seed in every cell: all that follows is indicative."] if most == 1 else []


def _missing(found: Findings) -> list[str]:
    if not found.missing.height:
        return []
    names = short_names(found.cells[CONTROL])
    named = "; ".join(
        ", ".join(filter(None, (names[row[CONTROL]], _cell(row), f"seed {row[SEED]}")))
        for row in found.missing.head(N_NAMED).iter_rows(named=True)
    )
    left = found.missing.height - N_NAMED
    more = f" and {left} more" if left > 0 else ""
    return [f"{found.state}. Missing: {named}{more}."]


def _twins(found: Findings) -> list[str]:
    """Two seeds with one loss to the last digit, as when a seed option does nothing."""
    finite = found.trials.filter(pl.col(Column.FINAL_LOSS).is_finite())
    groups = finite.group_by([*CELL_KEY, Column.FINAL_LOSS]).agg(pl.col(SEED).sort())
    twins = groups.filter(pl.col(SEED).list.len() > 1).sort(CELL_KEY)
    if not twins.height:
        return []
    row = twins.row(0, named=True)
    more = f", and so do {twins.height - 1} other groups" if twins.height > 1 else ""
    seeds = " and ".join(map(str, row[SEED]))
    same = f"Seeds {seeds} of {_cell(row)} end at one loss to the last digit{more}"
    return [f"{same}: does the seed reach the initial weights and the data?"]


def _near(found: Findings) -> list[str]:
    """Rates that are one by the protocol and two numbers in the table, as when one was rounded."""
    rates = sorted(set[float](found.cells[PEAK_LR]))
    near = [(a, b) for a, b in pairwise(rates) if log10(b / a) <= SAME_LR]
    if not near:
        return []
    named = ", ".join(f"{a!r} and {b!r}" for a, b in near[:N_NAMED])
    return [f"Peak LRs that are nearly the same count as two, and pair with nothing: {named}."]


def _copies(found: Findings) -> list[str]:
    n = found.n_duplicate
    return [f"{n} rows are exact copies of others and count once."] if n else []


def _cell(row: dict[str, Any]) -> str:
    return f"{row[Column.ARM]}, n_layer {row[N_LAYER]}, peak LR {row[PEAK_LR]:g}"
