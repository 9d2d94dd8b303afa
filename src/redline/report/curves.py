"""The curves of a trial for its panel on the page: raw values, thinned, never smoothed.

Of the steps in each of `N_BUCKET` equal stretches, the one with the lowest and the one with the
highest value are kept, and steps whose value is not finite. So a spike of one step is seen, and
each point drawn is a row of `series.jsonl` or `probes.jsonl`.
"""

from math import isfinite
from typing import Any

import polars as pl

from redline.store.schema import Column

N_BUCKET = 40
MAX_NON_FINITE = 20
DIGITS = 4

SERIES = (Column.LOSS, Column.EVAL_LOSS, Column.GRAD_NORM, Column.UPDATE_NORM)
PROBES = (Column.MAX_LOGIT, Column.ENTROPY_NORMALISED, Column.OUTLIER_RATIO)
RULE = (
    f"Curves are raw, not smoothed. Of {2 * N_BUCKET} or more steps, those with the lowest and the "
    f"highest value of each of {N_BUCKET} equal stretches are drawn, with the first, the last and "
    f"up to {MAX_NON_FINITE} that are not finite."
)

KEYS = (Column.TRIAL_ID, Column.LAYER)
VALUE = "value"

Curve = dict[str, Any]


def curves(series: pl.DataFrame, probes: pl.DataFrame) -> dict[str, list[Curve]]:
    """Trial id -> its curves, each `{measure, layer, steps, values}`; layer is null in series."""
    series = series.with_columns(pl.lit(None, pl.Int64).alias(Column.LAYER))
    found: dict[str, list[Curve]] = {}
    for frame, names in ((series, SERIES), (probes, PROBES)):
        for name in names:
            points = frame.select(*KEYS, Column.STEP, pl.col(name).alias(VALUE)).drop_nulls(VALUE)
            grouped = thinned(points).group_by(KEYS, maintain_order=True).agg(Column.STEP, VALUE)
            for trial_id, layer, steps, values in grouped.iter_rows():
                written = [_written(value) for value in values]
                curve = {"measure": name, "layer": layer, "steps": steps, "values": written}
                found.setdefault(trial_id, []).append(curve)
    return found


def thinned(points: pl.DataFrame) -> pl.DataFrame:
    """The rows (trial_id, layer, step, value) that are drawn, in the order of their steps."""
    points = points.sort(*KEYS, Column.STEP).with_columns(
        _n=pl.len().over(KEYS),
        _row=pl.int_range(pl.len()).over(KEYS),
        _lost=~pl.col(VALUE).is_finite(),
    )
    is_short = pl.col("_n") <= 2 * N_BUCKET
    is_end = (pl.col("_row") == 0) | (pl.col("_row") == pl.col("_n") - 1)
    is_lost = pl.col("_lost") & (pl.col("_lost").cum_sum().over(KEYS) <= MAX_NON_FINITE)
    stretch = [*KEYS, pl.col("_row") * N_BUCKET // pl.col("_n")]
    # A value that is not finite must not be the highest of its stretch and hide the finite one.
    finite = pl.when(~pl.col("_lost")).then(VALUE)
    is_extreme = (
        pl.col("_row") == pl.col("_row").sort_by(finite, nulls_last=True).first().over(stretch)
    ) | (
        pl.col("_row")
        == pl.col("_row").sort_by(finite, descending=True, nulls_last=True).first().over(stretch)
    )
    return points.filter(is_short | is_end | is_lost | (is_extreme & ~pl.col("_lost"))).drop(
        "_n", "_row", "_lost"
    )


def _written(value: float) -> float | str:
    return float(f"{value:.{DIGITS}g}") if isfinite(value) else str(value)
