"""Learning-rate sensitivity (2309.14322): how much of the best loss a wrong peak LR costs.

Per seed: mean over the grid of min(loss, l0) minus its minimum over the grid. The mean and the t
interval are over seeds. A seed with a missing cell is left out and named; refined points near a
boundary do not enter; and a stuck arm, which would score 0, has no sensitivity at all.
"""

from collections.abc import Sequence
from typing import Any

import polars as pl

from redline.analysis.comparable import ARM_KEY, CONTROL, N_LAYER, PLAIN, TRIAL_KEY
from redline.analysis.grid import is_log_uniform, matching
from redline.analysis.intervals import mean_interval
from redline.analysis.losses import ArmKey, Losses, losses_by_arm
from redline.analysis.outcome import REFERENCE_LOSS
from redline.store.schema import Column

GRID = "grid"
STUDY_GRID, WORTSMAN_GRID = "study", "wortsman"
WORTSMAN = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1)

SENSITIVITY = "sensitivity"
LOWER, UPPER, N_SEED = "lower", "upper", "n_seed"
OF_MEAN_CURVE = "of_mean_curve"  # the value of the seed-mean curve, an extra
LEFT_OUT = "left_out"  # seeds with a missing cell
DIFFERENCE = "difference"  # plain arm - this arm, over the seeds that both have
DIFFERENCE_LOWER, DIFFERENCE_UPPER = "difference_lower", "difference_upper"
N_PAIR = "n_pair"
WHY = "why"  # why there is no value
BY_SEED, DIFFERENCE_BY_SEED = "by_seed", "difference_by_seed"

Row = dict[str, Any]


def sensitivities(
    outcomes: pl.DataFrame, expected: pl.DataFrame, registered: Sequence[float] | None
) -> pl.DataFrame:
    """One row a (control, n_layer, arm, grid): sensitivity in nats and its paired difference.

    All arms of a depth are measured on the intersection of their expected grids. `registered` are
    the peak LRs of the study's axis; without it all of them count.
    """
    return as_table(measure(outcomes, expected, registered))


def as_table(rows: Sequence[Row]) -> pl.DataFrame:
    """What `measure` found, without the numbers of single seeds."""
    return pl.DataFrame([{name: row[name] for name in SCHEMA} for row in rows], schema=SCHEMA).sort(
        [*ARM_KEY, GRID]
    )


def seed_differences(rows: Sequence[Row]) -> dict[ArmKey, dict[int, float]]:
    """Arm -> seed -> sensitivity of the plain arm minus its own, on the grid of the study."""
    return {
        (row[CONTROL], row[N_LAYER], row[Column.ARM]): row[DIFFERENCE_BY_SEED]
        for row in rows
        if row[GRID] == STUDY_GRID
    }


def measure(
    outcomes: pl.DataFrame, expected: pl.DataFrame, registered: Sequence[float] | None
) -> list[Row]:
    """The rows of `sensitivities`, each with the sensitivity of every seed."""
    arms = losses_by_arm(outcomes)
    stuck = _stuck_arms(outcomes)
    rows: list[Row] = []
    for depth, planned in _planned(expected).items():
        seeds = sorted({seed for of_rate in planned.values() for _, seed in of_rate})
        for arm in sorted(planned):
            # The plain arm itself stands on what all arms share, so that it can face each of them.
            sides = (
                planned if arm == PLAIN else {a: planned[a] for a in (PLAIN, arm) if a in planned}
            )
            rates = _shared_rates(sides, registered)
            wortsman = matching(rates, WORTSMAN)
            for grid, points in {STUDY_GRID: rates, WORTSMAN_GRID: wortsman}.items():
                if points is None:
                    continue
                both = {
                    side: _of_arm(
                        arms.get((*depth, side), {}), points, seeds, (*depth, side) in stuck
                    )
                    for side in {arm, PLAIN} & planned.keys()
                }
                plain = both.get(PLAIN) if arm != PLAIN else None
                key = dict(zip(ARM_KEY, (*depth, arm), strict=True)) | {GRID: grid}
                rows.append(key | both[arm] | _paired(plain, both[arm]))
    return rows


def _planned(expected: pl.DataFrame) -> dict[tuple[str, int], dict[str, set[tuple[float, int]]]]:
    """Setting and depth -> arm -> the (peak LR, seed) that it was to have."""
    found: dict[tuple[str, int], dict[str, set[tuple[float, int]]]] = {}
    for control, n_layer, arm, rate, seed in expected.select(TRIAL_KEY).iter_rows():
        found.setdefault((control, n_layer), {}).setdefault(arm, set()).add((rate, seed))
    return found


def _stuck_arms(outcomes: pl.DataFrame) -> set[tuple[Any, ...]]:
    """Arms whose best loss does not beat bigram counts."""
    stuck = outcomes.filter(pl.col(REFERENCE_LOSS) >= pl.col(Column.BIGRAM_LOSS))
    return set(stuck.select(ARM_KEY).unique().iter_rows())


def _shared_rates(
    planned: dict[str, set[tuple[float, int]]], registered: Sequence[float] | None
) -> list[float]:
    by_arm = [{rate for rate, _ in of_arm} for of_arm in planned.values()]
    shared = set[float].intersection(*by_arm)
    return sorted(shared & set(registered) if registered else shared)


def _of_arm(losses: Losses, points: Sequence[float], seeds: Sequence[int], is_stuck: bool) -> Row:
    whole = {
        seed: [losses[rate][seed] for rate in points]
        for seed in seeds
        if all(seed in losses.get(rate, {}) for rate in points)
    }
    why = _why_not(points, whole, is_stuck)
    by_seed = {} if why else {seed: _sensitivity(curve) for seed, curve in whole.items()}
    found = mean_interval(list(by_seed.values()))
    mean_curve = [sum(of_rate) / len(whole) for of_rate in zip(*whole.values(), strict=True)]
    return {
        SENSITIVITY: found.mean,
        LOWER: found.lower,
        UPPER: found.upper,
        N_SEED: found.n,
        OF_MEAN_CURVE: None if why else _sensitivity(mean_curve),
        LEFT_OUT: [seed for seed in seeds if seed not in whole],
        WHY: why,
        BY_SEED: by_seed,
    }


def _sensitivity(curve: Sequence[float]) -> float:
    return sum(curve) / len(curve) - min(curve)


def _why_not(points: Sequence[float], whole: dict[int, list[float]], is_stuck: bool) -> str:
    if len(points) < 2:
        return "the arms share fewer than two learning rates"
    if points != matching(points, WORTSMAN) and not is_log_uniform(points):
        return "the learning rates are not spaced evenly in log10"
    if not whole:
        return "no seed has finished at every learning rate"
    if is_stuck:
        return "not meaningful: the arm's best loss does not beat bigram counts"
    return ""


def _paired(plain: Row | None, row: Row) -> Row:
    """The difference to the plain arm; the plain arm itself has none."""
    here: dict[int, float] = row[BY_SEED]
    there: dict[int, float] = plain[BY_SEED] if plain else {}
    by_seed = {seed: there[seed] - here[seed] for seed in here if seed in there}
    found = mean_interval(list(by_seed.values()))
    return {
        DIFFERENCE: found.mean,
        DIFFERENCE_LOWER: found.lower,
        DIFFERENCE_UPPER: found.upper,
        N_PAIR: found.n,
        DIFFERENCE_BY_SEED: by_seed,
    }


_OF_ARM = (SENSITIVITY, LOWER, UPPER, OF_MEAN_CURVE)
_OF_PAIR = (DIFFERENCE, DIFFERENCE_LOWER, DIFFERENCE_UPPER)
SCHEMA = (
    {**dict.fromkeys(ARM_KEY, pl.String()), "n_layer": pl.Int64(), GRID: pl.String()}
    | dict.fromkeys((*_OF_ARM, *_OF_PAIR), pl.Float64())
    | {N_SEED: pl.Int64(), N_PAIR: pl.Int64(), LEFT_OUT: pl.List(pl.Int64()), WHY: pl.String()}
)
