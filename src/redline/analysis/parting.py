"""Where the arms part, in words: what the means show, and how little the seeds may allow.

These sentences describe. They hold no verdict on a hypothesis: the paired tests of protocol section
8 decide, with enough seeds.
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import polars as pl

from redline.analysis.comparable import ARM_KEY, CONTROL, DEPTH_KEY, PEAK_LR, short_names
from redline.analysis.outcome import BEST_LOSS, SHORT_BUDGET, below_noise, labels
from redline.analysis.summary import (
    MEAN_DELTA,
    MIN_DELTA,
    N_D0,
    N_EXPECTED,
    N_FINISHED,
    N_NEVER_BEGAN,
    N_PAIR,
    N_UNSTABLE,
    PLAIN,
)
from redline.config.analysis import Analysis
from redline.store.schema import Column

Row = dict[str, Any]


def where_the_arms_part(cells: pl.DataFrame, deltas: pl.DataFrame, analysis: Analysis) -> str:
    """One line for each setting, depth and arm, from `summary.cells` and `paired_deltas`."""
    lines: list[str] = []
    names = short_names(cells[CONTROL])
    for key, depth in cells.group_by(DEPTH_KEY, maintain_order=True):
        control, n_layer = key
        title = ", ".join(str(part) for part in (f"n_layer {n_layer}", names[str(control)]) if part)
        arms = depth[Column.ARM].unique().sort().to_list()
        if PLAIN not in arms or len(arms) == 1:
            lines.append(f"{title}: only {', '.join(arms)} and nothing to compare with.")
            continue
        for arm in arms:
            if arm != PLAIN:
                here = dict(zip(ARM_KEY, (*key, arm), strict=True))
                pair = depth.filter(pl.col(Column.ARM).is_in([PLAIN, arm]))
                rows = list(deltas.filter(**here).sort(PEAK_LR).iter_rows(named=True))
                sentences = _sentences(list(pair.iter_rows(named=True)), rows, arm, analysis)
                lines.append(f"{title}, {PLAIN} against {arm}: {' '.join(sentences)}")
    return "\n".join(lines)


def _sentences(
    cells: Sequence[Row], deltas: Sequence[Row], arm: str, analysis: Analysis
) -> list[str]:
    m_nec = analysis.m_nec
    if not deltas:
        return ["No seed has finished in both arms.", *_missing(cells)]
    if nothing := _nothing_learned(cells):
        return [nothing, *_missing(cells)]
    # Above the last LR at which the arm is stable in most seeds both fail, and their difference
    # means nothing (protocol section 8).
    top = max(_stable_lrs(cells, arm), default=0.0)
    in_range = [row for row in deltas if row[PEAK_LR] <= top]
    apart = list(takewhile(lambda row: row[MEAN_DELTA] > m_nec, reversed(in_range)))[::-1]
    return [
        *_compared(in_range, apart, arm, m_nec),
        *_what_fails(cells, apart, analysis),
        *(_reach(cells, name) for name in (PLAIN, arm)),
        *_cautions(cells, analysis),
        *_missing(cells),
        _modesty(min(row[N_PAIR] for row in deltas)),
    ]


def _nothing_learned(cells: Sequence[Row]) -> str:
    """Said instead of a comparison of arms that learned nothing; where all died, that is said."""
    alive = [row for row in cells if row[N_FINISHED] > row[N_D0]]
    if not alive or alive[0][BEST_LOSS] < alive[0][Column.BIGRAM_LOSS]:
        return ""
    return (
        f"Not meaningful: the best mean loss, {alive[0][BEST_LOSS]:.3f}, does not beat bigram "
        f"counts, {alive[0][Column.BIGRAM_LOSS]:.3f}; no arm has learned enough to be called "
        "stable or unstable."
    )


def _stable_lrs(cells: Sequence[Row], arm: str) -> list[float]:
    return [
        row[PEAK_LR]
        for row in cells
        if row[Column.ARM] == arm and 2 * row[N_UNSTABLE] < row[N_FINISHED]
    ]


def _reach(cells: Sequence[Row], arm: str) -> str:
    tested = [row[PEAK_LR] for row in cells if row[Column.ARM] == arm and row[N_FINISHED]]
    stable = _stable_lrs(cells, arm)
    if not stable:
        return f"{arm} has no stable peak LR: below {min(tested):g} (lowest tested)."
    holes = [f"{lr:g}" for lr in tested if lr < max(stable) and lr not in stable]
    but = f", but not at {', '.join(holes)}" if holes else ""
    if max(stable) == max(tested):
        return f"{arm} is stable in most seeds up to >= {max(stable):g} (highest tested){but}."
    return f"{arm} is last stable in most seeds at {max(stable):g}{but}."


def _compared(deltas: Sequence[Row], apart: Sequence[Row], arm: str, m_nec: float) -> list[str]:
    if not deltas:
        return [f"No pair of seeds lies where {arm} is stable in most seeds."]
    said: list[str] = []
    together = list(takewhile(lambda row: abs(row[MEAN_DELTA]) <= m_nec, deltas))
    if together:
        said.append(f"Up to peak LR {together[-1][PEAK_LR]:g} they stay within {m_nec:g} nat.")
    if apart:
        every = all(row[MIN_DELTA] > m_nec for row in apart)
        first = "the lowest tested, " if len(apart) == len(deltas) else ""
        said.append(
            f"From {apart[0][PEAK_LR]:g}, {first}{PLAIN} is worse by more than {m_nec:g} nat "
            f"{'in every seed' if every else 'in the mean'} ({apart[0][MEAN_DELTA]:+.3f} there)."
        )
    below = [f"{r[PEAK_LR]:g}" for r in deltas if r[MEAN_DELTA] > m_nec and r not in apart]
    if below and apart:
        said.append(f"Apart from these, {PLAIN} is so much worse at {', '.join(below)} too.")
    elif below:
        said.append(
            f"{PLAIN} is worse by more than {m_nec:g} nat at {', '.join(below)}, "
            f"and not at {deltas[-1][PEAK_LR]:g}."
        )
    elif not apart:
        said.append(f"{PLAIN} does not fall behind up to {deltas[-1][PEAK_LR]:g}.")
    if hurts := [f"{row[PEAK_LR]:g}" for row in deltas if row[MEAN_DELTA] < -m_nec]:
        said.append(f"{arm} is worse by more than {m_nec:g} nat at {', '.join(hurts)}.")
    return said


def _what_fails(cells: Sequence[Row], apart: Sequence[Row], analysis: Analysis) -> list[str]:
    if not apart:
        return []
    lr = apart[0][PEAK_LR]
    there = (
        f"{row[Column.ARM]} {outcome_counts(row, analysis)}" for row in cells if row[PEAK_LR] == lr
    )
    return [f"At {lr:g}: {'; '.join(there)}."]


def outcome_counts(row: Row, analysis: Analysis) -> str:
    """The outcomes of a cell, worst first: `2 failed, 1 stable`; `missing` if none is there."""
    counted = (f"{row[f'n_{label}']} {label}" for label in labels(analysis) if row[f"n_{label}"])
    return ", ".join(counted) or "missing"


def _cautions(cells: Sequence[Row], analysis: Analysis) -> list[str]:
    """What a reader must know of the outcomes: a line that is not the bigrams', noise, no start."""
    said: list[str] = []
    if any(row[SHORT_BUDGET] for row in cells):
        said.append(
            "The budget is too short for the bigram line: failed means above the best loss of "
            f"both arms + {analysis.failed_margin:g}."
        )
    for delta in analysis.delta:
        noisy = sorted({row[Column.ARM] for row in cells if row[below_noise(delta)]})
        if noisy:
            said.append(f"Delta {delta:g} is below seed noise in {', '.join(noisy)}: no verdict.")
    said += [
        f"{row[N_NEVER_BEGAN]} of {row[Column.ARM]} at {row[PEAK_LR]:g} non-finite before the "
        "first step: in no mean."
        for row in cells
        if row[N_NEVER_BEGAN]
    ]
    return said


def _missing(cells: Sequence[Row]) -> list[str]:
    holes = [
        f"{row[Column.ARM]} at {row[PEAK_LR]:g} ({row[N_FINISHED]} of {row[N_EXPECTED]} seeds)"
        for row in cells
        if row[N_FINISHED] < row[N_EXPECTED]
    ]
    return [f"Missing: {', '.join(holes)}."] if holes else []


def _modesty(n_seed: int) -> str:
    match n_seed:
        case 1:
            return "One seed: indicative only."
        case 2:
            return "Undecided: two seeds cannot carry a verdict, it needs more seeds."
        case _:
            return f"Means over {n_seed} seeds; the paired tests decide."
