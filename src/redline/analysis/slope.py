"""How the LR at which QK-norm becomes necessary moves with depth (protocol section 9, H3).

Per seed and depth the isotonic delta crosses the margin between two rates of the grid, or not at
all. Where every crossing is inside the grid, each seed has a least-squares slope of log10 LR on
log2 depth, and the slopes have a t interval. Where in its step a seed crosses is interpolated: if
losses jump, every crossing lands at the same place of its step, and the slopes of all seeds agree
on a number that the grid made. So the intervals themselves are fitted too, a line with flat priors
and sigma ~ half-t(3, 0.15 decade), summed on a grid; what is reported is never narrower than that
fit, and is that fit alone where a crossing is censored.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, isnan, log2, log10

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from redline.analysis.intervals import Mean, mean_interval, p_greater
from redline.analysis.isotonic import rising
from redline.analysis.posterior import SIGMA_SCALE, TAIL, interval_log_mass, sigma_grid

Floats = NDArray[np.float64]

N_SLOPE, N_LEVEL, N_SIGMA, N_PLACE = 49, 25, 12, 400
EDGE = 1e-6
MAX_CENSORED_SHARE = 0.5


@dataclass(frozen=True)
class Crossing:
    """Where one seed crosses at one depth, in log10 LR: between `lower` and `upper`, about `at`.

    Beyond the grid an end is infinite and `at` is None.
    """

    seed: int
    n_layer: int
    lower: float
    upper: float
    at: float | None


@dataclass(frozen=True)
class Slope:
    """Decades per doubling of depth and the one-sided p of `not falling`.

    The mean of `found` is the posterior median where a crossing is censored. `why` there is none,
    and what it `needs`.
    """

    found: Mean
    p: float | None
    n_censored: int
    why: str = ""
    needs: str = ""


def crossing(seed: int, n_layer: int, deltas: Mapping[float, float], margin: float) -> Crossing:
    """Where the isotonic delta of one seed (peak LR, ascending -> nat) crosses the margin."""
    logs = [log10(rate) for rate in deltas]
    curve = rising(list(deltas.values()))
    if curve[0] > margin:
        return Crossing(seed, n_layer, -inf, logs[0], None)
    if curve[-1] <= margin:
        return Crossing(seed, n_layer, logs[-1], inf, None)
    after = int(np.argmax(curve > margin))
    ends = slice(after - 1, after + 1)
    at = float(np.interp(margin, curve[ends], logs[ends]))
    return Crossing(seed, n_layer, logs[after - 1], logs[after], at)


def slope(crossings: Sequence[Crossing], scale: float = SIGMA_SCALE) -> Slope:
    """The slope over seeds; a seed that lacks a depth has none of its own.

    `scale` is the prior scale of sigma in decades, used where a crossing is censored.
    """
    depths = sorted({crossing.n_layer for crossing in crossings})
    censored = sum(crossing.at is None for crossing in crossings)
    if not crossings:
        return _none(censored, "no pair of seeds has finished", "pairs of seeds")
    if len(depths) < 2:
        return _none(censored, "one depth: not testable", "a second depth")
    if censored > MAX_CENSORED_SHARE * len(crossings):
        why = "more than half of the crossings lie beyond the grid"
        return _none(censored, why, "a wider grid of peak LRs")
    fitted = _by_intervals(crossings, censored, scale)
    return fitted if censored else _wider(fitted, _by_seed(crossings, depths))


def _by_seed(crossings: Sequence[Crossing], depths: Sequence[int]) -> tuple[Mean, float]:
    """The mean slope of the seeds that cross at every depth, and its one-sided p."""
    x = np.log2(depths) - np.log2(depths).mean()
    by_seed: dict[int, dict[int, float]] = {}
    for one in crossings:
        if one.at is not None:
            by_seed.setdefault(one.seed, {})[one.n_layer] = one.at
    slopes = [
        float(x @ np.array([of_depth[n] for n in depths]) / (x @ x))
        for of_depth in by_seed.values()
        if of_depth.keys() == set(depths)
    ]
    return mean_interval(slopes), p_greater([-value for value in slopes], 0.0)


def _wider(fitted: Slope, by_seed: tuple[Mean, float]) -> Slope:
    mean, p = by_seed
    if mean.lower is None or mean.upper is None or isnan(p):
        # Equal slopes in all seeds are the grid's doing: the fit alone knows how wide it is.
        return replace(fitted, found=replace(fitted.found, n=mean.n))
    assert fitted.found.lower is not None and fitted.found.upper is not None
    lower, upper = min(mean.lower, fitted.found.lower), max(mean.upper, fitted.found.upper)
    assert fitted.p is not None
    return Slope(replace(mean, lower=lower, upper=upper), max(p, fitted.p), 0)


def page_trend(crossings: Sequence[Crossing]) -> tuple[float, float, int] | None:
    """Page's L for a necessary LR that falls with depth, its p, and the seeds that it ranks.

    It needs three depths and two seeds that have all of them; a crossing beyond the grid ranks
    first or last.
    """
    depths = sorted({crossing.n_layer for crossing in crossings})
    by_seed: dict[int, dict[int, float]] = {}
    for one in crossings:
        place = one.at if one.at is not None else (-inf if one.lower == -inf else inf)
        by_seed.setdefault(one.seed, {})[one.n_layer] = place
    rows = [[of[n] for n in depths] for of in by_seed.values() if of.keys() == set(depths)]
    if len(depths) < 3 or len(rows) < 2:
        return None
    ranks = stats.rankdata(np.array(rows), axis=1)
    falling = np.arange(len(depths), 0, -1)
    found = stats.page_trend_test(ranks, ranked=True, predicted_ranks=falling)
    return float(found.statistic), float(found.pvalue), len(rows)


def _none(n_censored: int, why: str, needs: str) -> Slope:
    return Slope(Mean(0, None, None, None, None), None, n_censored, why, needs)


def _by_intervals(crossings: Sequence[Crossing], n_censored: int, scale: float) -> Slope:
    """Posterior of the slope from the intervals alone; what seeds share is not used."""
    counted = Counter((log2(one.n_layer), one.lower, one.upper) for one in crossings)
    x, lower, upper = np.array(list(counted)).T
    n = np.array(list(counted.values()))
    x = x - float(np.average(x, weights=n))
    ends = [end for one in crossings for end in (one.lower, one.upper) if isfinite(end)]
    span = max(max(ends) - min(ends), 0.1)
    steepest = 2 * span / float(np.ptp(x))
    slopes = np.linspace(-steepest, steepest, N_SLOPE)
    levels = np.linspace(min(ends) - span, max(ends) + span, N_LEVEL)
    prior = sigma_grid(scale, N_SIGMA)
    weight = _weights(slopes, levels, (x, lower, upper, n), prior)
    # The second pass looks only where the first one found anything, so that few points are enough.
    slopes = _around(slopes, _cumulative(weight.sum(axis=1)))
    levels = _around(levels, _cumulative(weight.sum(axis=0)))
    weight = _weights(slopes, levels, (x, lower, upper, n), prior)
    cumulative = _cumulative(weight.sum(axis=1))
    quantiles = np.interp((0.5, TAIL, 1 - TAIL), cumulative, slopes)
    middle, bottom, top = (float(value) for value in quantiles)
    n_seed = len({one.seed for one in crossings})
    p = float(1 - np.interp(0.0, slopes, cumulative, left=0.0, right=1.0))
    return Slope(Mean(n_seed, middle, None, bottom, top), p, n_censored)


def _weights(
    slopes: Floats, levels: Floats, intervals: tuple[Floats, ...], prior: tuple[Floats, Floats]
) -> Floats:
    """Posterior weight of each (slope, level), summed over sigma.

    `intervals` are log2 depth, both ends and how often each is there; `prior` are points of sigma
    and the logarithms of their mass.
    """
    x, lower, upper, n = intervals
    sigma, log_prior = prior
    line = slopes[:, None, None] * x + levels[None, :, None]  # (slope, level, interval)
    # What an interval says depends on the line's value at its depth alone: a table of that value.
    places = np.linspace(float(line.min()), float(line.max()), N_PLACE)
    index = np.rint((line - places[0]) / (places[1] - places[0])).astype(np.int64)
    scaled = ((end[:, None, None] - places) / sigma[:, None] for end in (lower, upper))
    table = interval_log_mass(*scaled) * n[:, None, None]  # (interval, sigma, place)
    logs = np.zeros((N_SIGMA, len(slopes), len(levels))) + log_prior[:, None, None]
    for i, of_interval in enumerate(table):
        logs += of_interval[:, index[..., i]]
    return np.exp(logs - logs.max()).sum(axis=0)


def _cumulative(weight: Floats) -> Floats:
    """The share up to the middle of each point of a grid."""
    return (np.cumsum(weight) - weight / 2) / weight.sum()


def _around(grid: Floats, cumulative: Floats) -> Floats:
    """As many points over what holds all but a millionth of the mass."""
    inside = np.flatnonzero((cumulative > EDGE) & (cumulative < 1 - EDGE))
    step = float(grid[1] - grid[0])
    return np.linspace(float(grid[inside[0]]) - step, float(grid[inside[-1]]) + step, len(grid))
