"""How many steps training takes to reach a loss; a trial that never arrives is not dropped.

The threshold is that of the study, or the bigram loss of its corpus. A trial that never arrives, a
non-finite one included, is censored at `n_step` and not where it died: its death is informative,
and a censoring that is not would make early deaths look like early departures (protocol section 9).
"""

from collections.abc import Iterator
from typing import Any

import polars as pl
from scipy import stats

from redline.analysis.comparable import ARM_KEY, CELL_KEY, DEPTH_KEY, PEAK_LR, PLAIN, SEED
from redline.analysis.intervals import summarised, with_interval
from redline.config.analysis import Analysis
from redline.store.schema import Column

THRESHOLD = "threshold"
STEPS = "steps"  # null: it never arrived
RESTRICTED = "restricted_steps"  # min(steps, n_step)
N_TRIAL, N_ARRIVED = "n_trial", "n_arrived"
MEAN_STEPS, STEPS_LOWER, STEPS_UPPER = "mean_steps", "lower", "upper"
SAVED = "steps_saved"  # plain arm - this arm, over the seeds that both have
SAVED_LOWER, SAVED_UPPER, N_PAIR = "saved_lower", "saved_upper", "n_pair"
LOG_RANK_P = "log_rank_p"  # ignores the pairing: a description
STEP, SHARE, N_AT_RISK = "step", "share_not_arrived", "n_at_risk"


def steps_to_threshold(
    outcomes: pl.DataFrame, series: pl.DataFrame, analysis: Analysis
) -> pl.DataFrame:
    """One row a trial that was evaluated: the first evaluation at or below the threshold.

    A trial without a series, such as another tool's, has no row.
    """
    threshold = pl.lit(analysis.loss_threshold, pl.Float64)
    trials = outcomes.select(
        Column.TRIAL_ID,
        *CELL_KEY,
        SEED,
        "n_step",
        pl.coalesce(threshold, Column.BIGRAM_LOSS).alias(THRESHOLD),
    )
    # A loss that is not a number compares as the largest one: it never arrives.
    evaluated = series.drop_nulls(Column.EVAL_LOSS).join(trials, on=Column.TRIAL_ID)
    arrived = pl.col(Column.EVAL_LOSS) <= pl.col(THRESHOLD)
    first = evaluated.group_by(Column.TRIAL_ID).agg(
        pl.col(Column.STEP).filter(arrived).min().cast(pl.Int64).alias(STEPS)
    )
    steps = trials.join(first, on=Column.TRIAL_ID, maintain_order="left")
    return steps.with_columns(pl.coalesce(STEPS, "n_step").cast(pl.Float64).alias(RESTRICTED))


def restricted_means(steps: pl.DataFrame) -> pl.DataFrame:
    """One row a (control, n_layer, arm, peak_lr): mean restricted steps, and the plain arm's lead.

    Intervals are t intervals over seeds; `steps_saved` is positive where the arm arrives sooner.
    """
    alone = _interval(
        steps.group_by(CELL_KEY).agg(
            *summarised(RESTRICTED),
            pl.len().cast(pl.Int64).alias(N_TRIAL),
            pl.col(STEPS).count().cast(pl.Int64).alias(N_ARRIVED),
            pl.col(THRESHOLD).first(),
        ),
        MEAN_STEPS,
        (STEPS_LOWER, STEPS_UPPER),
    ).drop("_n")
    saved = _interval(
        _pairs(steps).group_by(CELL_KEY).agg(*summarised(SAVED)), SAVED, (SAVED_LOWER, SAVED_UPPER)
    ).rename({"_n": N_PAIR})
    ranks = pl.DataFrame(list(_log_ranks(steps)), schema=RANK_SCHEMA)
    keys = list(CELL_KEY)
    table = alone.join(saved, on=keys, how="left").join(ranks, on=keys, how="left")
    return table.sort(CELL_KEY).select(*CELL_KEY, *COLUMNS)


def survival_curves(steps: pl.DataFrame) -> pl.DataFrame:
    """Kaplan-Meier: the share of a cell's trials that has not arrived yet, after each step."""
    rows: list[dict[str, Any]] = []
    for key, arrived, censored in _times(steps):
        curve = stats.ecdf(_data(arrived, censored)).sf
        at = dict(zip(CELL_KEY, key, strict=True))
        for step, share in zip(curve.quantiles, curve.probabilities, strict=True):
            n_at_risk = sum(time >= step for time in (*arrived, *censored))
            rows.append(at | {STEP: step, SHARE: share, N_AT_RISK: n_at_risk})
    return pl.DataFrame(rows, schema=SURVIVAL_SCHEMA)


def _interval(frame: pl.DataFrame, mean: str, limits: tuple[str, str]) -> pl.DataFrame:
    unused = ("_margin", "_sd", "_flat")
    return with_interval(frame, *limits, "_margin").drop(unused).rename({"_mean": mean})


def _pairs(steps: pl.DataFrame) -> pl.DataFrame:
    keys = [*DEPTH_KEY, PEAK_LR, SEED]
    plain = steps.filter(pl.col(Column.ARM) == PLAIN).select(*keys, RESTRICTED)
    other = steps.filter(pl.col(Column.ARM) != PLAIN)
    pairs = other.join(plain, on=keys, suffix=f"_{PLAIN}")
    saved = pl.col(f"{RESTRICTED}_{PLAIN}") - pl.col(RESTRICTED)
    return pairs.select(*CELL_KEY, SEED, saved.alias(SAVED))


def _times(steps: pl.DataFrame) -> Iterator[tuple[tuple[Any, ...], list[float], list[float]]]:
    """Each cell's steps of arrival, and those at which the others were still on their way."""
    cells = (
        steps.sort(*CELL_KEY, SEED)
        .group_by(CELL_KEY, maintain_order=True)
        .agg(
            pl.col(RESTRICTED).filter(pl.col(STEPS).is_not_null()).alias("arrived"),
            pl.col(RESTRICTED).filter(pl.col(STEPS).is_null()).alias("censored"),
        )
    )
    for *key, arrived, censored in cells.iter_rows():
        yield tuple(key), arrived, censored


def _data(arrived: list[float], censored: list[float]) -> stats.CensoredData:
    return stats.CensoredData(uncensored=arrived, right=censored)


def _log_ranks(steps: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """Cells of two or more trials in both arms, where at least one of them arrived."""
    cells = {key: (arrived, censored) for key, arrived, censored in _times(steps)}
    for key, times in cells.items():
        control, n_layer, arm, rate = key
        plain = cells.get((control, n_layer, PLAIN, rate))
        if arm == PLAIN or plain is None:
            continue
        enough = all(len(a) + len(c) > 1 for a, c in (plain, times))
        if enough and (times[0] or plain[0]) and not _alike(*plain, *times):
            p = float(stats.logrank(_data(*plain), _data(*times)).pvalue)
            yield dict(zip(CELL_KEY, key, strict=True)) | {LOG_RANK_P: p}


def _alike(*times: list[float]) -> bool:
    """Whether all trials ended at one step: then no order exists to be tested."""
    return len({time for of_arm in times for time in of_arm}) == 1


COLUMNS = (
    THRESHOLD,
    N_TRIAL,
    N_ARRIVED,
    MEAN_STEPS,
    STEPS_LOWER,
    STEPS_UPPER,
    N_PAIR,
    SAVED,
    SAVED_LOWER,
    SAVED_UPPER,
    LOG_RANK_P,
)
_KEYS = {**dict.fromkeys(ARM_KEY, pl.String()), "n_layer": pl.Int64(), PEAK_LR: pl.Float64()}
RANK_SCHEMA = _KEYS | {LOG_RANK_P: pl.Float64()}
SURVIVAL_SCHEMA = _KEYS | {STEP: pl.Float64(), SHARE: pl.Float64(), N_AT_RISK: pl.Int64()}
