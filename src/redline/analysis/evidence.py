"""What the hypotheses rest on: for each arm in each setting, numbers of each seed over all depths.

A seed counts where every depth has it, and its number is the mean over depths (protocol section 9).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, log10

import polars as pl

from redline.analysis.comparable import ARM_KEY, CONTROL, N_LAYER, PEAK_LR, PLAIN, SEED
from redline.analysis.losses import ArmKey
from redline.analysis.necessity import DELTA, RANGE_TOP, paired_deltas, range_tops
from redline.analysis.outcome import OPTIMUM_LR, UNSTABLE
from redline.analysis.slope import Crossing, crossing
from redline.analysis.threshold import LOWER_LR, TESTED_FROM, TESTED_TO, TIER, UPPER_LR
from redline.config.analysis import Analysis
from redline.store.schema import Column

NEARLY = 1 + 1e-9
"""Rates are decimal numbers: 2 x 0.003 is not 0.006."""

BySeed = Mapping[int, float]
Pair = tuple[str, str]
"""Setting and arm."""


@dataclass(frozen=True)
class Window:
    """The mean delta of each seed over a range of LRs; `lacks` says what was not there."""

    by_seed: BySeed
    lacks: str


@dataclass(frozen=True)
class Evidence:
    """One arm against the plain one in one setting.

    `ratio` are the ends of log10(theta_on / theta_off) of each seed, infinite where an arm leaves
    the grid; `span` is the width of that grid in decades; `relative` are the crossings measured
    from the plain arm's best LR.
    """

    control: str
    arm: str
    low: Window
    high: Window
    ratio: Mapping[int, tuple[float, float]]
    span: float
    sensitivity: BySeed
    crossings: tuple[Crossing, ...]
    relative: tuple[Crossing, ...]


def evidence(
    outcomes: pl.DataFrame,
    seed_thresholds: pl.DataFrame,
    seed_differences: Mapping[ArmKey, BySeed],
    registered: Sequence[float] | None,
    analysis: Analysis,
) -> tuple[Evidence, ...]:
    """One for each (control, arm) that has a pair with the plain arm.

    `registered` are the peak LRs of the study's axis: refined points move no hypothesis.
    """
    deltas = _deltas(outcomes, registered)
    optimum = _by_depth(outcomes.select(*ARM_KEY, OPTIMUM_LR).unique())
    tops = _by_depth(range_tops(outcomes).select(*ARM_KEY, RANGE_TOP))
    limits, spans = _limits(seed_thresholds)
    found: list[Evidence] = []
    for (control, arm), by_depth in deltas.items():
        best, top = optimum[control, PLAIN], tops.get((control, arm), {})
        crossings = _crossings(by_depth, top, analysis.m_nec)
        differences = {
            n_layer: seed_differences[control, n_layer, arm]
            for n_layer in by_depth
            if seed_differences.get((control, n_layer, arm))
        }
        found.append(
            Evidence(
                control=control,
                arm=arm,
                low=_low(by_depth, best),
                high=_high(by_depth, best, top),
                ratio=_ratio(limits.get((control, PLAIN), {}), limits.get((control, arm), {})),
                span=spans.get(control, 1.0),
                sensitivity=_over_depths(differences),
                crossings=tuple(crossings),
                relative=tuple(_shifted(one, log10(best[one.n_layer])) for one in crossings),
            )
        )
    return tuple(found)


Deltas = dict[int, dict[float, dict[int, float]]]
"""n_layer -> peak LR, ascending -> seed -> delta."""

Limits = dict[int, dict[int, tuple[float, float]]]
"""n_layer -> seed -> the ends of its highest stable LR in log10."""


def _deltas(outcomes: pl.DataFrame, registered: Sequence[float] | None) -> dict[Pair, Deltas]:
    pairs = paired_deltas(outcomes).drop_nulls(DELTA)
    if registered:
        pairs = pairs.filter(pl.col(PEAK_LR).is_in(list(registered)))
    found: dict[Pair, Deltas] = {}
    columns = (*ARM_KEY, PEAK_LR, SEED, DELTA)
    for control, n_layer, arm, rate, seed, delta in pairs.select(columns).iter_rows():
        of_depth = found.setdefault((control, arm), {}).setdefault(n_layer, {})
        of_depth.setdefault(rate, {})[seed] = delta
    return found


def _by_depth(frame: pl.DataFrame) -> dict[Pair, dict[int, float]]:
    found: dict[Pair, dict[int, float]] = {}
    for control, n_layer, arm, value in frame.drop_nulls().iter_rows():
        found.setdefault((control, arm), {})[n_layer] = value
    return found


def _limits(seed_thresholds: pl.DataFrame) -> tuple[dict[Pair, Limits], dict[str, float]]:
    """Of the headline tier; and the decades from the lowest to the highest rate of a setting."""
    headline = seed_thresholds.filter(pl.col(TIER) == UNSTABLE)
    found: dict[Pair, Limits] = {}
    columns = (CONTROL, Column.ARM, N_LAYER, SEED, LOWER_LR, UPPER_LR)
    for control, arm, n_layer, seed, lower, upper in headline.select(columns).iter_rows():
        of_depth = found.setdefault((control, arm), {}).setdefault(n_layer, {})
        of_depth[seed] = _log(lower), _log(upper)
    ends = headline.group_by(CONTROL).agg(pl.col(TESTED_FROM).min(), pl.col(TESTED_TO).max())
    spans = {control: log10(top / bottom) for control, bottom, top in ends.iter_rows()}
    return found, spans


def _log(rate: float) -> float:
    return rate if rate in (inf, -inf) else log10(rate)


def _low(by_depth: Deltas, best: Mapping[int, float]) -> Window:
    def inside(rate: float, n_layer: int) -> bool:
        return best[n_layer] / 10 <= rate * NEARLY and rate <= best[n_layer] / 2 * NEARLY

    ends = [(best[n_layer] / 10, best[n_layer] / 2) for n_layer in by_depth]
    return _window(by_depth, inside, ends)


def _high(by_depth: Deltas, best: Mapping[int, float], top: Mapping[int, float]) -> Window:
    def inside(rate: float, n_layer: int) -> bool:
        last = top.get(n_layer, 0.0)
        return 2 * best[n_layer] <= rate * NEARLY and rate <= last * NEARLY

    ends = [(2 * best[n_layer], top.get(n_layer, 0.0)) for n_layer in by_depth]
    return _window(by_depth, inside, ends)


def _window(
    by_depth: Deltas,
    inside: Callable[[float, int], bool],
    ends: Sequence[tuple[float, float]],
) -> Window:
    found: dict[int, dict[int, float]] = {}
    for n_layer, by_rate in by_depth.items():
        chosen = [of_seed for rate, of_seed in by_rate.items() if inside(rate, n_layer)]
        if chosen:
            whole = set[int].intersection(*(set(of_seed) for of_seed in chosen))
            found[n_layer] = {s: sum(d[s] for d in chosen) / len(chosen) for s in sorted(whole)}
    empty = [n_layer for n_layer in by_depth if n_layer not in found]
    lacks = ""
    if not found:
        low, high = ends[0]
        place = f"between {low:.3g} and {high:.3g}" if low <= high else f"from {low:.3g} on"
        lacks = f"peak LR {place} at which the arm is stable"
    elif empty:
        lacks = f"such peak LR at n_layer {', '.join(map(str, empty))}"
    return Window(_over_depths(found), lacks)


def _over_depths(by_depth: Mapping[int, BySeed]) -> dict[int, float]:
    """The mean over depths of the seeds that every depth has."""
    if not by_depth:
        return {}
    shared = set[int].intersection(*(set(of_seed) for of_seed in by_depth.values()))
    return {
        seed: sum(of_seed[seed] for of_seed in by_depth.values()) / len(by_depth)
        for seed in sorted(shared)
    }


def _ratio(plain: Limits, other: Limits) -> dict[int, tuple[float, float]]:
    """What the plain arm leaves open above leaves the difference open below, and so on."""
    depths = plain.keys() & other.keys()
    lows = {
        n: {s: other[n][s][0] - plain[n][s][1] for s in plain[n].keys() & other[n].keys()}
        for n in depths
    }
    highs = {
        n: {s: other[n][s][1] - plain[n][s][0] for s in plain[n].keys() & other[n].keys()}
        for n in depths
    }
    low, high = _over_depths(lows), _over_depths(highs)
    return {seed: (low[seed], high[seed]) for seed in low}


def _crossings(by_depth: Deltas, top: Mapping[int, float], margin: float) -> list[Crossing]:
    found: list[Crossing] = []
    for n_layer, by_rate in by_depth.items():
        rates = [rate for rate in sorted(by_rate) if rate <= top.get(n_layer, 0.0)]
        for seed in sorted({seed for rate in rates for seed in by_rate[rate]}):
            of_seed = {rate: by_rate[rate][seed] for rate in rates if seed in by_rate[rate]}
            found.append(crossing(seed, n_layer, of_seed, margin))
    return found


def _shifted(one: Crossing, by: float) -> Crossing:
    at = None if one.at is None else one.at - by
    return replace(one, lower=one.lower - by, upper=one.upper - by, at=at)
