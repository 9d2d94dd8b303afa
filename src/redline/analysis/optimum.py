"""The best peak LR of each arm, how well it is known, and the arms at their own best rates."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from redline.analysis.comparable import ARM_KEY, DEPTH_KEY, PEAK_LR, PLAIN, SEED
from redline.analysis.intervals import LEVEL, mean_interval, p_greater
from redline.analysis.outcome import CAPPED_LOSS, OPTIMUM_LR, REFERENCE_LOSS
from redline.store.schema import Column

LOWER_LR, UPPER_LR = "lower_lr", "upper_lr"
AT_END = "at_end"  # "lowest" or "highest": the optimum lies at an end of the grid and is censored
OWN_LOSS, OWN_SD, N_SEED = "own_best_loss", "own_best_sd", "n_seed"
OWN_DELTA, OWN_DELTA_LOWER, OWN_DELTA_UPPER = "own_delta", "own_delta_lower", "own_delta_upper"

Losses = dict[float, dict[int, float]]


def optima(outcomes: pl.DataFrame) -> pl.DataFrame:
    """One row a (control, n_layer, arm): the optimum of the seed mean, its interval, its loss.

    The interval holds the neighbours in the grid and every LR that is not significantly worse by a
    paired one-sided t test (.05). `own_best_loss` chooses each seed's LR on the other seeds, so the
    choice does not flatter it; `own_delta` is plain arm - this arm of that.
    """
    rows: list[dict[str, Any]] = []
    for key, depth in outcomes.group_by(DEPTH_KEY, maintain_order=True):
        arms = {str(arm): _by_rate(rows_) for (arm,), rows_ in depth.group_by(Column.ARM)}
        own = {arm: _own_best(losses) for arm, losses in arms.items()}
        for arm in sorted(arms):
            if arms[arm]:
                rows.append(
                    dict(zip(DEPTH_KEY, key, strict=True))
                    | {Column.ARM: arm}
                    | _interval(depth.filter(arm=arm), arms[arm])
                    | _at_own_best(own[arm], own.get(PLAIN, {}) if arm != PLAIN else {})
                )
    return pl.DataFrame(rows, schema=SCHEMA).sort(ARM_KEY)


def _by_rate(trials: pl.DataFrame) -> Losses:
    found: Losses = {}
    columns = trials.drop_nulls(CAPPED_LOSS).sort(PEAK_LR).select(PEAK_LR, SEED, CAPPED_LOSS)
    for rate, seed, loss in columns.iter_rows():
        found.setdefault(rate, {})[seed] = loss
    return found


def _interval(trials: pl.DataFrame, losses: Losses) -> dict[str, Any]:
    rates = list(losses)
    best = trials[OPTIMUM_LR][0]
    at = rates.index(best)
    near = set(rates[max(0, at - 1) : at + 2])
    alike = near | {rate for rate in rates if not _is_worse(losses[rate], losses[best])}
    ends = {0: "lowest", len(rates) - 1: "highest"} if len(rates) > 1 else {0: "only"}
    return {
        OPTIMUM_LR: best,
        REFERENCE_LOSS: trials[REFERENCE_LOSS][0],
        LOWER_LR: min(alike),
        UPPER_LR: max(alike),
        AT_END: ends.get(at, ""),
    }


def _is_worse(losses: Mapping[int, float], best: Mapping[int, float]) -> bool:
    both = losses.keys() & best.keys()
    # One seed can show no difference to be significant: it leaves the neighbours alone.
    if len(both) < 2:
        return True
    return p_greater([losses[seed] - best[seed] for seed in both], 0.0) < 1 - LEVEL


def _own_best(losses: Losses) -> dict[int, float]:
    """Seed -> its loss at the LR that is best for the other seeds; needs the same seeds per LR."""
    seeds = set[int].union(*(set(of_seed) for of_seed in losses.values())) if losses else set[int]()
    whole = {rate: of_seed for rate, of_seed in losses.items() if of_seed.keys() == seeds}
    if len(seeds) < 2 or not whole:
        return {}
    total = {rate: sum(of_seed.values()) for rate, of_seed in whole.items()}
    chosen = {seed: min(whole, key=lambda rate: total[rate] - whole[rate][seed]) for seed in seeds}
    return {seed: whole[rate][seed] for seed, rate in chosen.items()}


def _at_own_best(own: Mapping[int, float], plain: Mapping[int, float]) -> dict[str, Any]:
    here = mean_interval(list(own.values()))
    delta = mean_interval([plain[seed] - own[seed] for seed in own.keys() & plain.keys()])
    return {
        OWN_LOSS: here.mean,
        OWN_SD: here.sd,
        N_SEED: here.n,
        OWN_DELTA: delta.mean,
        OWN_DELTA_LOWER: delta.lower,
        OWN_DELTA_UPPER: delta.upper,
    }


_NUMBERS = (OPTIMUM_LR, REFERENCE_LOSS, LOWER_LR, UPPER_LR)
_OWN = (OWN_LOSS, OWN_SD, OWN_DELTA, OWN_DELTA_LOWER, OWN_DELTA_UPPER)
SCHEMA = (
    {**dict.fromkeys(ARM_KEY, pl.String()), "n_layer": pl.Int64()}
    | dict.fromkeys(_NUMBERS, pl.Float64())
    | {AT_END: pl.String()}
    | dict.fromkeys(_OWN, pl.Float64())
    | {N_SEED: pl.Int64()}
)
