"""H1, H2 and H3 of the protocol: supported, contradicted or undecided, and what would decide.

Each hypothesis is an intersection of parts: its p is the largest of theirs, one-sided, and Holm's
correction runs over the three at .05. One or two seeds decide nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from redline.analysis.claims import LEVEL, Claim, Part, h1, h2, h3
from redline.analysis.comparable import CONTROL
from redline.analysis.evidence import Evidence
from redline.analysis.intervals import MIN_SEEDS
from redline.config.analysis import Analysis
from redline.store.schema import Column

SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "undecided"
FULL_SEEDS = 6
OTHER_SCALES = (0.5, 2.0)
"""Factors of the prior scales under which a verdict of 3 to 5 seeds must hold."""

STATEMENTS = {
    "H1": "The effect depends on LR: negligible at low LR, decisive at high LR.",
    "H2": "QK-norm raises the highest stable LR and lowers LR sensitivity.",
    "H3": "The LR at which QK-norm becomes necessary falls as depth grows.",
}


@dataclass(frozen=True)
class Hypothesis:
    """The verdict on one hypothesis for one arm in one setting.

    `p_holm` is Holm's adjusted p; `is_prior_dependent` marks a verdict of 3 to 5 seeds that half or
    twice the prior scale of the spread would change; `beside` are numbers that decide nothing.
    """

    control: str
    arm: str
    name: str
    verdict: str
    p: float | None
    p_holm: float | None
    parts: tuple[Part, ...]
    beside: tuple[Part, ...]
    n_seed: int
    why: str
    would_decide: str
    is_prior_dependent: bool = False

    @property
    def statement(self) -> str:
        """The hypothesis as a sentence."""
        return STATEMENTS[self.name]

    @property
    def standing(self) -> str:
        """The verdict and why it is none, or what it hangs on."""
        prior = " (prior-dependent: another spread of the seeds would change it)"
        standing = self.verdict + (prior if self.is_prior_dependent else "")
        if self.p_holm is not None:
            standing += f", Holm's p {self.p_holm:.2g} with {self.n_seed} seeds"
        return standing + (f": {self.why}" if self.why else "")

    def __str__(self) -> str:
        decides = f" What would decide: {self.would_decide}." if self.would_decide else ""
        # What has no number is already said by the standing.
        known = [
            str(part) for part in self.parts if part.estimate is not None or part.p is not None
        ]
        parts = f" {'; '.join(known)}." if known else ""
        return f"{self.name} {self.standing}. {self.statement}{parts}{decides}"


def hypotheses(
    evidence: Sequence[Evidence], analysis: Analysis, scale: float = 1.0
) -> tuple[Hypothesis, ...]:
    """Three verdicts for each piece of evidence, in its order.

    `scale` is a factor of the prior scales of the spread between seeds.
    """
    found = _at_scale(evidence, analysis, scale)
    few = [i for i, three in enumerate(found) if min(h.n_seed for h in three) < FULL_SEEDS]
    for factor in OTHER_SCALES:
        others = _at_scale([evidence[i] for i in few], analysis, scale * factor)
        for i, other in zip(few, others, strict=True):
            found[i] = [_marked(*pair) for pair in zip(found[i], other, strict=True)]
    return tuple(one for three in found for one in three)


def as_table(found: Sequence[Hypothesis]) -> pl.DataFrame:
    """One row a part of a hypothesis, with the verdict it belongs to; the others decide nothing."""
    rows = [
        {
            CONTROL: h.control,
            Column.ARM: h.arm,
            "hypothesis": h.name,
            "verdict": h.verdict,
            "p_holm": h.p_holm,
            "is_prior_dependent": h.is_prior_dependent,
            "why": h.why,
            "would_decide": h.would_decide,
            "part": part.name,
            "decides": part in h.parts,
            "estimate": part.estimate,
            "lower": part.lower,
            "upper": part.upper,
            "p": part.p,
            "n_seed": part.n,
            "note": part.note,
        }
        for h in found
        for part in (*h.parts, *h.beside)
    ]
    return pl.DataFrame(rows, schema=SCHEMA)


def _at_scale(
    evidence: Sequence[Evidence], analysis: Analysis, factor: float
) -> list[list[Hypothesis]]:
    """The verdicts with `factor` times the prior scales of the spread between seeds."""
    drafts = zip(
        [h1(one, analysis) for one in evidence],
        h2(evidence, factor),
        [h3(one, factor) for one in evidence],
        strict=True,
    )
    return [_judged(one, three) for one, three in zip(evidence, drafts, strict=True)]


def _marked(found: Hypothesis, other: Hypothesis) -> Hypothesis:
    moves = found.verdict != other.verdict and found.n_seed < FULL_SEEDS
    return replace(found, is_prior_dependent=found.is_prior_dependent or moves)


def _judged(one: Evidence, drafts: Sequence[Claim]) -> list[Hypothesis]:
    p = [_intersection(draft.parts) for draft in drafts]
    adjusted = holm([1.0 if value is None else value for value in p])
    return [
        _decided(one, draft, value, p_holm)
        for draft, value, p_holm in zip(drafts, p, adjusted, strict=True)
    ]


def _intersection(parts: Sequence[Part]) -> float | None:
    """The p of all parts at once; none where one of them has none."""
    each = [part.p for part in parts]
    known = [p for p in each if p is not None]
    return max(known) if len(known) == len(each) else None


def _decided(one: Evidence, draft: Claim, p: float | None, p_holm: float) -> Hypothesis:
    n_seed = min(part.n for part in draft.parts)
    missing = "; ".join(part.note for part in draft.parts if part.p is None and part.note)
    why, decides = "", ""
    verdict = UNDECIDED
    if n_seed < MIN_SEEDS:
        words = {0: "no seed has all that is needed", 1: "one seed is indicative"}
        why = missing or words.get(n_seed, "two seeds decide nothing")
    elif p is not None and p_holm <= LEVEL:
        verdict = SUPPORTED
    elif draft.is_contradicted:
        verdict = CONTRADICTED
    else:
        why = missing or _not_shown(draft.parts)
    if verdict == UNDECIDED:
        decides = draft.what_decides()
    return Hypothesis(
        one.control,
        one.arm,
        draft.name,
        verdict,
        p,
        None if p is None else p_holm,
        draft.parts,
        draft.beside,
        n_seed,
        why,
        decides,
    )


def _not_shown(parts: Sequence[Part]) -> str:
    failed = [part.name for part in parts if part.p is None or part.p > LEVEL]
    if failed:
        return f"not shown: {' and '.join(failed)}"
    return "it passes alone, but not with Holm's correction over three"


def holm(p: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p values."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    adjusted, worst = [0.0] * len(p), 0.0
    for rank, i in enumerate(order):
        worst = max(worst, min(1.0, (len(p) - rank) * p[i]))
        adjusted[i] = worst
    return adjusted


_TEXTS = (CONTROL, Column.ARM, "hypothesis", "verdict")
_NUMBERS = ("estimate", "lower", "upper", "p")
SCHEMA = (
    {**dict.fromkeys(_TEXTS, pl.String()), "p_holm": pl.Float64()}
    | {"is_prior_dependent": pl.Boolean(), "why": pl.String(), "would_decide": pl.String()}
    | {"part": pl.String(), "decides": pl.Boolean()}
    | dict.fromkeys(_NUMBERS, pl.Float64())
    | {"n_seed": pl.Int64(), "note": pl.String()}
)
