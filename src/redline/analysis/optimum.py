"""The best peak LR of each arm, how well it is known, and the arms at their own best rates."""

from collections.abc import Mapping
from dataclasses import replace
from math import sqrt
from typing import Any

import polars as pl

from redline.analysis.comparable import ARM_KEY, PLAIN
from redline.analysis.intervals import LEVEL, Mean, mean_interval, p_greater
from redline.analysis.losses import Losses, losses_by_arm
from redline.analysis.outcome import OPTIMUM_LR, REFERENCE_LOSS

LOWER_LR, UPPER_LR = "lower_lr", "upper_lr"
AT_END = "at_end"  # "lowest" or "highest": the optimum lies at an end of the grid and is censored
OWN_LOSS, OWN_SD, N_SEED = "own_best_loss", "own_best_sd", "n_seed"
OWN_DELTA, OWN_DELTA_LOWER, OWN_DELTA_UPPER = "own_delta", "own_delta_lower", "own_delta_upper"


def optima(outcomes: pl.DataFrame) -> pl.DataFrame:
    """One row a (control, n_layer, arm): the optimum of the seed mean, its interval, its loss.

    The interval holds the neighbours in the grid and every LR that is not significantly worse by a
    paired one-sided t test (.05). `own_best_loss` chooses each seed's LR on the other seeds, so the
    choice does not flatter it; `own_delta` is plain arm - this arm of that.
    """
    arms = losses_by_arm(outcomes)
    own = {
        key: {seed: losses[rate][seed] for seed, rate in choices(losses).items()}
        for key, losses in arms.items()
    }
    best = {
        key: (rate, loss)
        for *key, rate, loss in outcomes.select(*ARM_KEY, OPTIMUM_LR, REFERENCE_LOSS)
        .unique()
        .iter_rows()
        for key in [tuple(key)]
    }
    rows: list[dict[str, Any]] = []
    for key, losses in arms.items():
        rate, loss = best[key]
        plain = own.get((*key[:2], PLAIN), {}) if key[2] != PLAIN else {}
        rows.append(
            dict(zip(ARM_KEY, key, strict=True))
            | {OPTIMUM_LR: rate, REFERENCE_LOSS: loss}
            | _interval(losses, rate)
            | _at_own_best(own[key], plain)
        )
    return pl.DataFrame(rows, schema=SCHEMA).sort(ARM_KEY)


def _interval(losses: Losses, best: float) -> dict[str, Any]:
    rates = list(losses)
    at = rates.index(best)
    near = set(rates[max(0, at - 1) : at + 2])
    alike = near | {rate for rate in rates if not _is_worse(losses[rate], losses[best])}
    ends = {0: "lowest", len(rates) - 1: "highest"} if len(rates) > 1 else {0: "only"}
    return {LOWER_LR: min(alike), UPPER_LR: max(alike), AT_END: ends.get(at, "")}


def _is_worse(losses: Mapping[int, float], best: Mapping[int, float]) -> bool:
    both = losses.keys() & best.keys()
    # One seed can show no difference to be significant: it leaves the neighbours alone.
    if len(both) < 2:
        return True
    return p_greater([losses[seed] - best[seed] for seed in both], 0.0) < 1 - LEVEL


def choices(losses: Losses) -> dict[int, float]:
    """Seed -> the LR that is best for the other seeds, where the seed itself has a loss."""
    found: dict[int, float] = {}
    for seed in sorted({seed for of_seed in losses.values() for seed in of_seed}):
        others = {
            rate: [loss for other, loss in of_seed.items() if other != seed]
            for rate, of_seed in losses.items()
        }
        means = {rate: sum(rest) / len(rest) for rate, rest in others.items() if rest}
        best = min(means, key=lambda rate: means[rate]) if means else None
        if best is not None and seed in losses[best]:
            found[seed] = best
    return found


def _at_own_best(own: Mapping[int, float], plain: Mapping[int, float]) -> dict[str, Any]:
    here = mean_interval(list(own.values()))
    delta = _dependent(mean_interval([plain[seed] - own[seed] for seed in own.keys() & plain]))
    return {
        OWN_LOSS: here.mean,
        OWN_SD: here.sd,
        N_SEED: here.n,
        OWN_DELTA: delta.mean,
        OWN_DELTA_LOWER: delta.lower,
        OWN_DELTA_UPPER: delta.upper,
    }


def _dependent(delta: Mean) -> Mean:
    """The interval of a mean whose values chose their LR on one another.

    Any two of them share all but two of the seeds that chose, so that they err together: the
    variance of a mean of independent values grows by the share of tested to choosing seeds
    (Nadeau and Bengio, Machine Learning 52, 2003). Without it 95 % intervals held 82 %.
    """
    if delta.mean is None or delta.lower is None or delta.upper is None:
        return delta
    wider = sqrt(1 + delta.n / (delta.n - 1))
    lower, upper = ((limit - delta.mean) * wider for limit in (delta.lower, delta.upper))
    return replace(delta, lower=delta.mean + lower, upper=delta.mean + upper)


_NUMBERS = (OPTIMUM_LR, REFERENCE_LOSS, LOWER_LR, UPPER_LR)
_OWN = (OWN_LOSS, OWN_SD, OWN_DELTA, OWN_DELTA_LOWER, OWN_DELTA_UPPER)
SCHEMA = (
    {**dict.fromkeys(ARM_KEY, pl.String()), "n_layer": pl.Int64()}
    | dict.fromkeys(_NUMBERS, pl.Float64())
    | {AT_END: pl.String()}
    | dict.fromkeys(_OWN, pl.Float64())
    | {N_SEED: pl.Int64()}
)
