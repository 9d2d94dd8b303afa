"""The posterior of a mean threshold from interval-censored seeds (protocol section 7).

Each seed says only that its threshold theta_i lies in (lower_i, upper_i], all in log10 LR. The
model is theta_i ~ N(mu, sigma) with mu flat on a range and sigma ~ half-t(3, scale); the posterior
is summed on a grid, so that there is nothing to converge. With few seeds the scale of sigma
matters: results are repeated with half and twice of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

Floats = NDArray[np.float64]

SIGMA_SCALE = 0.15
"""Prior scale of the spread between seeds, in decades."""
DIFFERENCE_SCALE = 0.2
"""The same for paired differences of two thresholds."""
SIGMA_DF = 3
N_MU, N_SIGMA = 160, 24
CHUNK = 200
TAIL = 0.025


@dataclass(frozen=True)
class Posterior:
    """Median and 95 % equal-tailed interval of mu, P(mu <= 0), and the 10 % point of theta."""

    median: Floats
    lower: Floats
    upper: Floats
    p_not_positive: Floats
    ed10: Floats


def posterior(
    lower: Floats,
    upper: Floats,
    low: Floats,
    high: Floats,
    scale: float = SIGMA_SCALE,
    n_mu: int = N_MU,
) -> Posterior:
    """The posteriors of several groups at once.

    `lower`, `upper` have the shape (group, seed), infinite where a seed is censored and NaN where
    a group has fewer seeds; `low`, `high` (group) are the range of the flat prior of mu.

    The range is summed in `n_mu` bins: many more of them than it has steps of the LR grid.

    Limits are infinite where all seeds fall into one interval that is open at that side.
    """
    parts = [
        _chunk(lower[rows], upper[rows], low[rows], high[rows], scale, n_mu)
        for rows in np.array_split(np.arange(len(lower)), max(1, len(lower) // CHUNK))
    ]
    fit = Posterior(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    # Seeds that all fall into one interval say no more than that interval: what the posterior
    # knows beyond it is its prior.
    first, last = lower[:, :1], upper[:, :1]
    alike = ((lower == first) | np.isnan(lower)).all(1) & ((upper == last) | np.isnan(upper)).all(1)
    return replace(
        fit,
        lower=np.where(alike, np.minimum(fit.lower, first[:, 0]), fit.lower),
        upper=np.where(alike, np.maximum(fit.upper, last[:, 0]), fit.upper),
    )


def _chunk(
    lower: Floats, upper: Floats, low: Floats, high: Floats, scale: float, n_mu: int
) -> tuple[Floats, ...]:
    sigmas, log_prior = sigma_grid(scale)
    table, index = _log_likelihoods(lower, upper, low, high, sigmas, n_mu)
    logs = table[index].sum(axis=1) + log_prior[:, None]  # (group, sigma, mu)
    logs -= logs.max(axis=(1, 2), keepdims=True)
    joint = np.exp(logs)
    joint /= joint.sum(axis=(1, 2), keepdims=True)
    cumulative = np.cumsum(joint.sum(axis=1), axis=1)
    median, bottom, top = (_quantile(cumulative, low, high, q) for q in (0.5, TAIL, 1 - TAIL))
    sigma = joint.sum(axis=2) @ sigmas
    ed10 = median + float(special.ndtri(0.1)) * sigma
    return median, bottom, top, _mass_below(cumulative, low, high, 0.0), ed10


@cache
def sigma_grid(scale: float, n: int = N_SIGMA) -> tuple[Floats, Floats]:
    """Points of sigma, even in their logarithm, and the log prior mass that each stands for.

    Seeds far apart need the far tail of the prior, which bins of equal mass would cut off.
    """
    sigma = scale * np.geomspace(1 / 300, 60, n)
    log_mass = np.asarray(stats.t.logpdf(sigma / scale, SIGMA_DF), dtype=np.float64)
    log_mass = log_mass + np.log(sigma)
    return sigma, log_mass - np.log(np.exp(log_mass).sum())


def _log_likelihoods(
    lower: Floats, upper: Floats, low: Floats, high: Floats, sigmas: Floats, n_mu: int
) -> tuple[Floats, NDArray[np.int64]]:
    """log(Phi((upper - mu) / sigma) - Phi((lower - mu) / sigma)) of each seed.

    A grid has few intervals and many seeds fall into each: the table (interval, sigma, mu) holds
    every one once, and the index (group, seed) leads into it. A seed that is not there adds 0.
    """
    ends = np.stack(np.broadcast_arrays(lower, upper, low[:, None], high[:, None]), axis=-1)
    there = ~np.isnan(lower)
    distinct, found = np.unique(ends[there], axis=0, return_inverse=True)
    a, b, start, end = distinct.T
    mu = start[:, None] + (np.arange(n_mu) + 0.5) / n_mu * (end - start)[:, None]
    scaled = ((side[:, None, None] - mu[:, None, :]) / sigmas[:, None] for side in (a, b))
    table = np.zeros((len(distinct) + 1, len(sigmas), n_mu))
    table[1:] = interval_log_mass(*scaled)
    index = np.zeros(lower.shape, dtype=np.int64)
    index[there] = 1 + found.reshape(-1)
    return table, index


def interval_log_mass(a: Floats, b: Floats) -> Floats:
    """log(Phi(b) - Phi(a)) for a < b, without loss far out in either tail."""
    # Above the mean both are close to 1: there the mirrored interval has the same mass.
    flip = a > 0
    a, b = np.where(flip, -b, a), np.where(flip, -a, b)
    low, high = special.log_ndtr(a), special.log_ndtr(b)
    return np.maximum(high + np.log1p(-np.exp(np.minimum(low - high, -1e-16))), -1e300)


def _quantile(cumulative: Floats, low: Floats, high: Floats, q: float) -> Floats:
    """Interpolated between the edges of the bins of mu."""
    index = (cumulative < q).sum(axis=1)
    rows = np.arange(len(index))
    before = np.where(index > 0, cumulative[rows, index - 1], 0.0)
    inside = (q - before) / np.maximum(cumulative[rows, index] - before, 1e-300)
    return low + (index + inside) / cumulative.shape[1] * (high - low)


def _mass_below(cumulative: Floats, low: Floats, high: Floats, value: float) -> Floats:
    n_mu = cumulative.shape[1]
    place = np.clip((value - low) / (high - low) * n_mu, 0, n_mu)
    index = np.minimum(place.astype(np.int64), n_mu - 1)
    edges = np.pad(cumulative, ((0, 0), (1, 0)))
    rows = np.arange(len(index))
    before, after = edges[rows, index], edges[rows, index + 1]
    return before + (place - index) * (after - before)


def ragged(rows: Sequence[Sequence[float]]) -> Floats:
    """Rows of different length as one array, filled with NaN; at least one column."""
    width = max(1, *map(len, rows)) if rows else 1
    filled = [[*row, *[np.nan] * (width - len(row))] for row in rows]
    return np.array(filled, dtype=np.float64).reshape(len(rows), width)
