"""H1, H2 and H3 of the protocol: supported, contradicted or undecided, and what would decide.

Each hypothesis is an intersection of parts: its p is the largest of theirs, one-sided, and Holm's
correction runs over the three at .05. One or two seeds decide nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, isnan, log10, sqrt

import numpy as np
import polars as pl

from redline.analysis.comparable import CONTROL
from redline.analysis.evidence import Evidence
from redline.analysis.intervals import MIN_SEEDS, Mean, mean_interval, p_greater
from redline.analysis.posterior import DIFFERENCE_SCALE, SIGMA_SCALE, posterior, ragged
from redline.analysis.power import in_words, seeds_needed
from redline.analysis.slope import Slope, slope
from redline.config.analysis import Analysis
from redline.store.schema import Column

SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "undecided"
LEVEL = 0.05
RATIO_OF_NOTE = 1.1
FLAT_SLOPE = 0.05
"""Decades per doubling of depth within which a slope is none."""
FULL_SEEDS = 6
OTHER_SCALES = (0.5, 2.0)
"""Factors of the prior scales under which a verdict of 3 to 5 seeds must hold."""

STATEMENTS = {
    "H1": "The effect depends on LR: negligible at low LR, decisive at high LR.",
    "H2": "QK-norm raises the highest stable LR and lowers LR sensitivity.",
    "H3": "The LR at which QK-norm becomes necessary falls as depth grows.",
}


@dataclass(frozen=True)
class Part:
    """One number that a hypothesis rests on: its mean over seeds, 95 % interval and one-sided p.

    `p` is None where there is no test; `note` says why, or what the number leaves out.
    """

    name: str
    estimate: float | None
    lower: float | None
    upper: float | None
    p: float | None
    n: int
    note: str = ""


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
        [_h1(one, analysis) for one in evidence],
        _h2(evidence, factor),
        [_h3(one, factor) for one in evidence],
        strict=True,
    )
    return [_judged(one, three) for one, three in zip(evidence, drafts, strict=True)]


def _marked(found: Hypothesis, other: Hypothesis) -> Hypothesis:
    moves = found.verdict != other.verdict and found.n_seed < FULL_SEEDS
    return replace(found, is_prior_dependent=found.is_prior_dependent or moves)


@dataclass(frozen=True)
class _Draft:
    """Parts of one hypothesis before Holm; `what_decides` is asked only where nothing did."""

    name: str
    parts: tuple[Part, ...]
    is_contradicted: bool
    what_decides: Callable[[], str]
    beside: tuple[Part, ...] = ()


def _h1(one: Evidence, analysis: Analysis) -> _Draft:
    m_eq, m_nec = analysis.m_eq, analysis.m_nec
    low, high = list(one.low.by_seed.values()), list(one.high.by_seed.values())
    a, b = mean_interval(low), mean_interval(high)
    equal = _both(p_greater([-value for value in low], -m_eq), p_greater(low, -m_nec))
    parts = (
        _part("mean delta at low LR", a, equal, _no(one.low.lacks)),
        _part("mean delta at high LR", b, p_greater(high, m_nec), _no(one.high.lacks)),
    )
    return _Draft(
        "H1",
        parts,
        is_contradicted=_above(a.lower, m_eq) or _below(b.upper, m_nec),
        what_decides=lambda: _needs(
            [(a, m_eq, f"a {one.low.lacks}"), (b, m_nec, f"a {one.high.lacks}")]
        ),
    )


def _h2(evidence: Sequence[Evidence], factor: float) -> list[_Draft]:
    if not evidence:
        return []
    lower = ragged([[low for low, _ in one.ratio.values()] for one in evidence])
    upper = ragged([[high for _, high in one.ratio.values()] for one in evidence])
    # The difference of two limits on one grid: at most its width, and a little beyond.
    span = np.array([max(one.span, 0.5) + 0.5 for one in evidence])
    fit = posterior(lower, upper, -span, span, factor * DIFFERENCE_SCALE)
    drafts: list[_Draft] = []
    for i, one in enumerate(evidence):
        n = len(one.ratio)
        # Where half of the seeds are open at one side, that limit would be the prior's.
        open_below = 2 * sum(low == -inf for low, _ in one.ratio.values()) >= n
        open_above = 2 * sum(high == inf for _, high in one.ratio.values()) >= n
        known = n >= 2
        ratio = Part(
            "log10 ratio of the highest stable LRs, on / off",
            float(fit.median[i]) if known and not open_below and not open_above else None,
            float(fit.lower[i]) if known and not open_below else None,
            float(fit.upper[i]) if known and not open_above else None,
            float(fit.p_not_positive[i]) if known else None,
            n,
            "" if known else "no two seeds have a limit in both arms",
        )
        values = list(one.sensitivity.values())
        change = mean_interval(values)
        note = "" if values else "no LR sensitivity in both arms"
        part = _part("LR sensitivity, off - on", change, p_greater(values, 0.0), note)
        drafts.append(
            _Draft(
                "H2",
                (ratio, part),
                is_contradicted=_below(ratio.upper, log10(RATIO_OF_NOTE))
                or _below(change.upper, 0.0),
                what_decides=_ratio_needs(one, change),
            )
        )
    return drafts


def _h3(one: Evidence, factor: float) -> _Draft:
    found = slope(one.crossings, factor * SIGMA_SCALE)
    relative = slope(one.relative, factor * SIGMA_SCALE)
    n_depth = len({crossing.n_layer for crossing in one.crossings})
    note = "two depths: linearity not checked" if n_depth == 2 else ""
    inside = _above(found.found.lower, -FLAT_SLOPE) and _below(found.found.upper, FLAT_SLOPE)
    return _Draft(
        "H3",
        (_slope_part("decades of necessary LR per doubling of depth", found, note),),
        is_contradicted=_above(found.found.lower, 0.0) or inside,
        what_decides=lambda: _needs([(found.found, 0.0, found.needs)]),
        beside=(
            ()
            if relative.why
            else (_slope_part("the same, from the plain arm's best LR", relative, note),)
        ),
    )


def _slope_part(name: str, found: Slope, note: str) -> Part:
    mean = found.found
    censored = f"{found.n_censored} crossings beyond the grid" if found.n_censored else ""
    said = found.why or "; ".join(filter(None, (note, censored)))
    return Part(name, mean.mean, mean.lower, mean.upper, found.p, mean.n, said)


def _judged(one: Evidence, drafts: Sequence[_Draft]) -> list[Hypothesis]:
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


def _decided(one: Evidence, draft: _Draft, p: float | None, p_holm: float) -> Hypothesis:
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
        why = missing or "the intervals hold both sides"
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


def holm(p: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p values."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    adjusted, worst = [0.0] * len(p), 0.0
    for rank, i in enumerate(order):
        worst = max(worst, min(1.0, (len(p) - rank) * p[i]))
        adjusted[i] = worst
    return adjusted


def _ratio_needs(one: Evidence, change: Mean) -> Callable[[], str]:
    def what_decides() -> str:
        ends = [(low, high) for low, high in one.ratio.values() if isfinite(low + high)]
        alike = [low < 0 < high for low, high in ends]
        if ends and 2 * sum(alike) > len(one.ratio):
            return "a denser grid of peak LRs where both arms fail would tell their limits apart"
        middle = mean_interval([(low + high) / 2 for low, high in ends])
        # The grid hides where in its interval a seed fails: that adds to what the middles show.
        within = np.mean([(high - low) ** 2 / 24 for low, high in ends]) if ends else 0.0
        if middle.sd is not None:
            middle = replace(middle, sd=sqrt(middle.sd**2 + float(within)))
        complete = "pairs of seeds that have finished at every peak LR"
        return _needs([(middle, 0.0, complete), (change, 0.0, complete)])

    return what_decides


def _needs(tests: Sequence[tuple[Mean, float, str]]) -> str:
    """What is missing, or the seeds that the test which needs most of them would take.

    A test is its mean, the bound it is held against, and what is needed if it has no value.
    """
    if missing := [needs for mean, _, needs in tests if mean.n == 0]:
        return f"needed: {', '.join(dict.fromkeys(missing))}"
    said = [
        seeds_needed(mean.mean, mean.sd, mean.n, bound, LEVEL / len(STATEMENTS))
        for mean, bound, _ in tests
        if mean.mean is not None and mean.sd
    ]
    if not said:
        return "more seeds"
    return in_words(None if None in said else max(n for n in said if n is not None))


def _part(name: str, mean: Mean, p: float, note: str) -> Part:
    if mean.n > 1 and mean.lower is None:
        note = "the seeds do not differ at all: no spread, no test"
    return Part(name, mean.mean, mean.lower, mean.upper, None if isnan(p) else p, mean.n, note)


def _no(what: str) -> str:
    return what and f"no {what}"


def _both(p: float, q: float) -> float:
    return p + q if isnan(p + q) else max(p, q)


def _above(value: float | None, bound: float) -> bool:
    return value is not None and value > bound


def _below(value: float | None, bound: float) -> bool:
    return value is not None and value < bound


_TEXTS = (CONTROL, Column.ARM, "hypothesis", "verdict")
_NUMBERS = ("estimate", "lower", "upper", "p")
SCHEMA = (
    {**dict.fromkeys(_TEXTS, pl.String()), "p_holm": pl.Float64()}
    | {"is_prior_dependent": pl.Boolean(), "why": pl.String(), "would_decide": pl.String()}
    | {"part": pl.String(), "decides": pl.Boolean()}
    | dict.fromkeys(_NUMBERS, pl.Float64())
    | {"n_seed": pl.Int64(), "note": pl.String()}
)
