"""What the study says, in words: the rule of thumb of each depth, and what it rests on.

A rule comes from the tests of `necessity` alone. What the seeds cannot decide is called undecided,
with the reason; the sentences after the rule describe means and outcomes and decide nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import polars as pl

from redline.analysis import necessity as nec
from redline.analysis.comparable import ARM_KEY, CONTROL, DEPTH_KEY, PEAK_LR, PLAIN, short_names
from redline.analysis.headline import MIN_ENTROPY_NORMALISED, RUNNING_MAX_LOGIT
from redline.analysis.intervals import LEVEL, MIN_SEEDS
from redline.analysis.necessity import DROPPABLE_TO, MEAN_DELTA, MIN_DELTA, N_PAIR, NEEDED_FROM
from redline.analysis.outcome import BEST_LOSS, SHORT_BUDGET, UNSTABLE, below_noise, labels
from redline.analysis.summary import N_D0, N_EXPECTED, N_FINISHED, N_NEVER_BEGAN, N_UNSTABLE
from redline.analysis.threshold import LOWER_LR, N_MISFIT, TIER, interval_text
from redline.config.analysis import Analysis
from redline.store.schema import Column

Row = dict[str, Any]

_NO_BOUNDARY: Row = {}

UNDECIDED, INDICATIVE, DECIDED, NOTHING = "undecided", "indicative", "decided", "no comparison"


@dataclass(frozen=True)
class Verdict:
    """One arm against the plain one at one depth: the rule, its standing, and the evidence.

    `standing` is decided (a test rejected somewhere), undecided, indicative (one seed) or no
    comparison.
    """

    control: str
    n_layer: int
    arm: str
    title: str
    standing: str
    rule: str
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.title}: {' '.join((self.rule, *self.reasons))}"


def verdicts(
    cells: pl.DataFrame,
    deltas: pl.DataFrame,
    boundaries: pl.DataFrame,
    thresholds: pl.DataFrame,
    analysis: Analysis,
) -> tuple[Verdict, ...]:
    """One verdict for each setting, depth and arm, in the order of `cells`."""
    found: list[Verdict] = []
    names = short_names(cells[CONTROL])
    compared: dict[tuple[Any, ...], list[Row]] = {}
    for row in deltas.sort(PEAK_LR).iter_rows(named=True):
        compared.setdefault(tuple(row[name] for name in ARM_KEY), []).append(row)
    bounds = {tuple(row[name] for name in ARM_KEY): row for row in boundaries.to_dicts()}
    headline = thresholds.filter(pl.col(TIER) == UNSTABLE)
    reach = {tuple(row[name] for name in ARM_KEY): row for row in headline.to_dicts()}
    for key, depth in cells.group_by(DEPTH_KEY, maintain_order=True):
        control, n_layer = str(key[0]), int(str(key[1]))
        title = ", ".join(part for part in (f"n_layer {n_layer}", names[control]) if part)
        rows = depth.to_dicts()
        arms = sorted({row[Column.ARM] for row in rows})
        if PLAIN not in arms or len(arms) == 1:
            rule = f"only {', '.join(arms)} and nothing to compare with."
            found.append(Verdict(control, n_layer, arms[0], title, NOTHING, rule, ()))
            continue
        for arm in (arm for arm in arms if arm != PLAIN):
            here = (control, n_layer, arm)
            evidence = _Evidence(
                arm=arm,
                cells=[row for row in rows if row[Column.ARM] in (PLAIN, arm)],
                deltas=compared.get(here, []),
                boundary=bounds.get(here, _NO_BOUNDARY),
                reach={
                    side: reach[control, n_layer, side]
                    for side in (PLAIN, arm)
                    if (control, n_layer, side) in reach
                },
                analysis=analysis,
            )
            standing, rule, reasons = _judge(evidence)
            title_of_arm = f"{title}, {PLAIN} against {arm}"
            found.append(
                Verdict(control, n_layer, arm, title_of_arm, standing, rule, tuple(reasons))
            )
    return tuple(found)


@dataclass(frozen=True)
class _Evidence:
    """What one verdict rests on: rows of `cells` (both arms), `deltas`, and one boundary."""

    arm: str
    cells: Sequence[Row]
    deltas: Sequence[Row]
    boundary: Row
    reach: dict[str, Row]
    analysis: Analysis

    @property
    def in_range(self) -> list[Row]:
        return [row for row in self.deltas if row[nec.IN_RANGE]]

    @property
    def between(self) -> list[Row]:
        """The rates that neither climb of the tests reached."""
        drop, need = self.boundary.get(DROPPABLE_TO), self.boundary.get(NEEDED_FROM)
        return [
            row
            for row in self.in_range
            if (drop is None or row[PEAK_LR] > drop) and (need is None or row[PEAK_LR] < need)
        ]

    @property
    def n_seed(self) -> int:
        return max((row[N_PAIR] for row in self.in_range or self.deltas), default=0)


def _judge(found: _Evidence) -> tuple[str, str, list[str]]:
    holes = _missing(found.cells)
    if not any(row[N_PAIR] for row in found.deltas):
        return UNDECIDED, "No seed has finished in both arms.", holes
    if nothing := _nothing_learned(found.cells):
        return UNDECIDED, nothing, holes
    standing, rule = _rule(found)
    return (
        standing,
        rule,
        [
            *_unseen(found),
            *_why_undecided(found),
            *_compared(found),
            *(_reach(found, arm) for arm in (PLAIN, found.arm)),
            *_beyond(found),
            *_cautions(found.cells, found.analysis),
            *holes,
        ],
    )


def _rule(found: _Evidence) -> tuple[str, str]:
    """The rule of thumb that a practitioner reads, from the fixed-sequence tests."""
    if not found.in_range:
        return UNDECIDED, (
            f"Undecided: {found.arm} is stable in most seeds at no peak LR, so that a difference "
            "says nothing."
        )
    n = found.n_seed
    if n == 1:
        return INDICATIVE, "Indicative only: one seed has no spread and carries no verdict."
    if n < MIN_SEEDS:
        return UNDECIDED, "Undecided: two seeds cannot carry a verdict, it needs more seeds."
    drop, need = found.boundary[DROPPABLE_TO], found.boundary[NEEDED_FROM]
    if drop is None and need is None:
        return UNDECIDED, f"Undecided at every peak LR with {n} seeds."
    said: list[str] = []
    if drop is not None:
        said.append(f"Up to peak LR {drop:g} you can drop QK-norm.")
    if need is not None:
        first = ", the lowest tested," if need == found.in_range[0][PEAK_LR] else ""
        what = "it" if said else "QK-norm"
        said.append(f"From {need:g}{first} you need {what}.")
    if found.between:
        place = "Above it" if need is None else "Below it" if drop is None else "Between"
        states = {row[nec.STATE] for row in found.between}
        open_ = nec.UNDECIDED if nec.UNDECIDED in states else " or ".join(sorted(states))
        said.append(f"{place}: {open_}.")
    return DECIDED, " ".join(said)


def _unseen(found: _Evidence) -> list[str]:
    """What the mean of a few seeds cannot rule out: that others fail where none of these did."""
    drop = found.boundary.get(DROPPABLE_TO)
    if drop is None:
        return []
    share = 1 - (1 - LEVEL) ** (1 / found.n_seed)
    said = f"{found.n_seed} seeds of which none failed leave open that up to {share:.0%} of seeds"
    return [f"Droppable is said of the mean: {said} would (95 %)."]


def _why_undecided(found: _Evidence) -> list[str]:
    """The reason at the first rate that the tests leave open, and what else they found there."""
    if found.n_seed < MIN_SEEDS:
        return []
    open_ = [row for row in found.between if row[nec.STATE] == nec.UNDECIDED]
    said: list[str] = []
    if open_:
        rates = _listed(row[PEAK_LR] for row in open_)
        at = f"at {open_[0][PEAK_LR]:g} " if len(open_) > 1 else ""
        said.append(f"Undecided at {rates} with {found.n_seed} seeds: {at}{open_[0][nec.WHY]}.")
    for state in sorted({row[nec.STATE] for row in found.between} - {nec.UNDECIDED}):
        rates = _listed(row[PEAK_LR] for row in found.between if row[nec.STATE] == state)
        said.append(f"On its own, {rates} reads {state}, which no unbroken sequence confirms.")
    return said


def _beyond(found: _Evidence) -> list[str]:
    beyond = [row for row in found.deltas if row[N_PAIR] and not row[nec.IN_RANGE]]
    if not beyond or not found.in_range:
        return []
    top = f"Beyond {found.in_range[-1][PEAK_LR]:g} {found.arm} itself is not stable in most seeds"
    return [f"{top}: no difference is read there."]


def _nothing_learned(cells: Sequence[Row]) -> str:
    """Said instead of a comparison of arms that learned nothing; where all died, that is said."""
    alive = [row for row in cells if row[N_FINISHED] > row[N_D0]]
    bigram = alive[0][Column.BIGRAM_LOSS] if alive else None
    if bigram is None or alive[0][BEST_LOSS] < bigram:
        return ""
    return (
        f"Not meaningful: the best mean loss, {alive[0][BEST_LOSS]:.3f}, does not beat bigram "
        f"counts, {bigram:.3f}; no arm has learned enough to be called stable or unstable."
    )


def _compared(found: _Evidence) -> list[str]:
    """Where the means part; a description beside the rule."""
    m_nec, arm = found.analysis.m_nec, found.arm
    rows = [row for row in found.in_range if row[N_PAIR]]
    if not rows:
        return []
    apart = list(takewhile(lambda row: _mean(row) > m_nec, reversed(rows)))[::-1]
    said: list[str] = []
    together = list(takewhile(lambda row: abs(_mean(row)) <= m_nec, rows))
    if together:
        said.append(f"The means stay within {m_nec:g} nat up to {together[-1][PEAK_LR]:g}.")
    if apart:
        every = all(row[MIN_DELTA] > m_nec for row in apart)
        first = ", the lowest tested," if len(apart) == len(rows) else ""
        said.append(
            f"From {apart[0][PEAK_LR]:g}{first} {PLAIN} is worse by more than {m_nec:g} nat "
            f"{'in every seed' if every else 'in the mean'} ({_mean(apart[0]):+.3f} there)."
        )
        said += [_what_fails(found, apart[0][PEAK_LR]), *_attention(found, apart[0][PEAK_LR])]
    elsewhere = _listed(r[PEAK_LR] for r in rows if _mean(r) > m_nec and r not in apart)
    if elsewhere and apart:
        said.append(f"Apart from these, {PLAIN} is so much worse at {elsewhere} too.")
    elif elsewhere:
        said.append(
            f"{PLAIN} is worse by more than {m_nec:g} nat at {elsewhere}, "
            f"and not at {rows[-1][PEAK_LR]:g}."
        )
    elif not apart:
        said.append(f"{PLAIN} does not fall behind up to {rows[-1][PEAK_LR]:g}.")
    if hurts := _listed(row[PEAK_LR] for row in rows if _mean(row) < -m_nec):
        said.append(f"{arm} is worse by more than {m_nec:g} nat at {hurts}.")
    return said


def _mean(row: Row) -> float:
    # A pair without any loss was non-finite before its first step: it shows no difference.
    return 0.0 if row[MEAN_DELTA] is None else row[MEAN_DELTA]


def _listed(rates: Any) -> str:
    return ", ".join(f"{rate:g}" for rate in rates)


def _what_fails(found: _Evidence, lr: float) -> str:
    there = (
        f"{row[Column.ARM]} {outcome_counts(row, found.analysis)}"
        for row in found.cells
        if row[PEAK_LR] == lr
    )
    return f"At {lr:g}: {'; '.join(there)}."


def _attention(found: _Evidence, lr: float) -> list[str]:
    """What attention looks like there: the difference in loss alone names no cause."""
    there = [
        f"{row[Column.ARM]} {row[RUNNING_MAX_LOGIT]:.3g} and {row[MIN_ENTROPY_NORMALISED]:.2f}"
        for row in found.cells
        if row[PEAK_LR] == lr and row[RUNNING_MAX_LOGIT] is not None
    ]
    return (
        [f"Max attention logit and normalised entropy there: {'; '.join(there)}."] if there else []
    )


def _reach(found: _Evidence, arm: str) -> str:
    if arm not in found.reach:
        return f"Highest stable LR of {arm}: unknown, no outcome is known."
    row = found.reach[arm]
    noisy = [
        f"{cell[PEAK_LR]:g}"
        for cell in found.cells
        if cell[Column.ARM] == arm
        and 0 < 2 * cell[N_UNSTABLE] >= cell[N_FINISHED]
        and row[LOWER_LR] is not None
        and cell[PEAK_LR] <= row[LOWER_LR]
    ]
    but = f", but not at {', '.join(noisy)}" if noisy else ""
    misfits = f" (outcomes that fit no one boundary: {row[N_MISFIT]})" if row[N_MISFIT] else ""
    return f"Highest stable LR of {arm}: {interval_text(row)}{but}{misfits}."


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
