"""What each hypothesis claims, as numbers over seeds with their tests (protocol section 9).

A claim is an intersection of parts; `hypotheses` corrects their p over the three and decides.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, isnan, log10, sqrt

import numpy as np

from redline.analysis.evidence import Evidence
from redline.analysis.intervals import Mean, mean_interval, p_greater
from redline.analysis.posterior import DIFFERENCE_SCALE, SIGMA_SCALE, posterior, ragged
from redline.analysis.power import in_words, seeds_needed
from redline.analysis.slope import Slope, page_trend, slope
from redline.config.analysis import Analysis

LEVEL = 0.05
N_HYPOTHESIS = 3
RATIO_OF_NOTE = 1.1
FLAT_SLOPE = 0.05
"""Decades per doubling of depth within which a slope is none."""
N_RATIO = 512  # twice as wide a range as that of one threshold, and held against 0 and 1.1
RATIO = "ratio of the highest stable LRs, on / off"


@dataclass(frozen=True)
class Part:
    """One number that a hypothesis rests on: its mean over seeds, 95 % interval and one-sided p.

    `p` is None where there is no test; `note` says why, or what the number leaves out. A ratio is
    kept as its log10.
    """

    name: str
    estimate: float | None
    lower: float | None
    upper: float | None
    p: float | None
    n: int
    note: str = ""

    def __str__(self) -> str:
        known = [self._shown(x) for x in (self.lower, self.upper) if x is not None]
        said = "" if self.estimate is None else f" {self._shown(self.estimate)}"
        if len(known) == 2:
            said += f" (95 % {known[0]} to {known[1]})"
        elif known:
            said += f" {'>=' if self.upper is None else '<='} {known[0]}"
        tested = "" if self.p is None else f", p {self.p:.2g}"
        return f"{self.name}{said}{tested}" + (f" [{self.note}]" if self.note else "")

    def _shown(self, value: float) -> str:
        return f"{10**value:.3g}" if self.name == RATIO else f"{value:+.3f}"


@dataclass(frozen=True)
class Claim:
    """One hypothesis before Holm; `what_decides` is asked only where nothing did.

    `beside` are numbers that decide nothing.
    """

    name: str
    parts: tuple[Part, ...]
    is_contradicted: bool
    what_decides: Callable[[], str]
    beside: tuple[Part, ...] = ()


def h1(one: Evidence, analysis: Analysis) -> Claim:
    m_eq, m_nec = analysis.m_eq, analysis.m_nec
    low, high = list(one.low.by_seed.values()), list(one.high.by_seed.values())
    a, b = mean_interval(low), mean_interval(high)
    equal = _both(p_greater([-value for value in low], -m_eq), p_greater(low, -m_nec))
    parts = (
        _part("mean delta at low LR", a, equal, _no(one.low.lacks)),
        _part("mean delta at high LR", b, p_greater(high, m_nec), _no(one.high.lacks)),
    )
    return Claim(
        "H1",
        parts,
        is_contradicted=_above(a.lower, m_eq) or _below(b.upper, m_nec),
        what_decides=lambda: _needs(
            [(a, m_eq, f"a {one.low.lacks}"), (b, m_nec, f"a {one.high.lacks}")]
        ),
    )


def h2(evidence: Sequence[Evidence], factor: float) -> list[Claim]:
    if not evidence:
        return []
    lower = ragged([[low for low, _ in one.ratio.values()] for one in evidence])
    upper = ragged([[high for _, high in one.ratio.values()] for one in evidence])
    # The difference of two limits on one grid: at most its width, and a little beyond.
    span = np.array([max(one.span, 0.5) + 0.5 for one in evidence])
    fit = posterior(lower, upper, -span, span, factor * DIFFERENCE_SCALE, N_RATIO)
    drafts: list[Claim] = []
    for i, one in enumerate(evidence):
        n = len(one.ratio)
        # Where half of the seeds are open at one side, that limit would be the prior's.
        open_below = 2 * sum(low == -inf for low, _ in one.ratio.values()) >= n
        open_above = 2 * sum(high == inf for _, high in one.ratio.values()) >= n
        known = n >= 2
        ratio = Part(
            RATIO,
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
            Claim(
                "H2",
                (ratio, part),
                is_contradicted=_below(ratio.upper, log10(RATIO_OF_NOTE))
                or _below(change.upper, 0.0),
                what_decides=_ratio_needs(one, change),
            )
        )
    return drafts


def h3(one: Evidence, factor: float) -> Claim:
    found = slope(one.crossings, factor * SIGMA_SCALE)
    relative = slope(one.relative, factor * SIGMA_SCALE)
    n_depth = len({crossing.n_layer for crossing in one.crossings})
    note = "two depths: linearity not checked" if n_depth == 2 else ""
    inside = _above(found.found.lower, -FLAT_SLOPE) and _below(found.found.upper, FLAT_SLOPE)
    return Claim(
        "H3",
        (_slope_part("decades of necessary LR per doubling of depth", found, note),),
        is_contradicted=_above(found.found.lower, 0.0) or inside,
        what_decides=lambda: _slope_needs(found),
        beside=_beside(one, relative, note),
    )


def _beside(one: Evidence, relative: Slope, note: str) -> tuple[Part, ...]:
    """Whether the best LR falls along, and whether depth orders the seeds: both decide nothing."""
    parts: list[Part] = []
    if not relative.why:
        parts.append(_slope_part("the same, from the plain arm's best LR", relative, note))
    if page := page_trend(one.crossings):
        statistic, p, n = page
        parts.append(Part("Page's L for a fall with depth", statistic, None, None, p, n))
    return tuple(parts)


def _slope_part(name: str, found: Slope, note: str) -> Part:
    mean = found.found
    censored = f"{found.n_censored} crossings beyond the grid" if found.n_censored else ""
    said = found.why or "; ".join(filter(None, (note, censored)))
    return Part(name, mean.mean, mean.lower, mean.upper, found.p, mean.n, said)


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


def _slope_needs(found: Slope) -> str:
    mean = found.found
    if mean.n == 0 or mean.mean is None:
        return found.needs
    needed = seeds_needed(mean.mean, mean.sd or 0.0, mean.n, 0.0, LEVEL / N_HYPOTHESIS)
    if needed is None or needed > mean.n:
        return in_words(needed) if mean.sd else "more seeds, or a denser grid of peak LRs"
    # The seeds agree; what is open is where within its step of the grid each of them crosses.
    return "a denser grid of peak LRs where QK-norm becomes necessary"


def _needs(tests: Sequence[tuple[Mean, float, str]]) -> str:
    """What is missing, or the seeds that the test which needs most of them would take.

    A test is its mean, the bound it is held against, and what is needed if it has no value.
    """
    if missing := [needs for mean, _, needs in tests if mean.n == 0]:
        return ", ".join(dict.fromkeys(missing))
    said = [
        seeds_needed(mean.mean, mean.sd, mean.n, bound, LEVEL / N_HYPOTHESIS)
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
