"""A measure of each trial against its peak LR: both arms, centre and spread, every seed.

A value that is not finite has no place on an axis: it becomes a mark of its own above the others,
and a trial without a result one below them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import Any
from urllib.parse import quote

import altair as alt
import polars as pl

from redline.analysis.comparable import PEAK_LR, SEED
from redline.analysis.headline import (
    MAX_OUTLIER_RATIO,
    MIN_ENTROPY_NORMALISED,
    RUNNING_MAX_LOGIT,
)
from redline.analysis.outcome import CAPPED_LOSS, D0, OUTCOME, SLOW, UNSTABLE
from redline.analysis.summary import HIGH, LOW, MEAN_LOSS
from redline.report.colours import MUTED
from redline.report.style import HEIGHT, WIDTH, Chart
from redline.store.schema import Column

Row = dict[str, Any]

STABLE, IS_SLOW, IS_UNSTABLE = "stable", "slow", "degraded or failed"
NON_FINITE, MISSING = "non-finite", "missing"
SHAPES = {
    STABLE: "circle",
    IS_SLOW: "circle",
    IS_UNSTABLE: "M-1,-1L1,1M-1,1L1,-1",
    NON_FINITE: "triangle-up",
    MISSING: "square",
}
"""Kind of mark -> its shape; a path is one of SVG, within -1 and 1."""
FILLED = (STABLE, NON_FINITE)

LINK = "https://trial.invalid/"
"""What the link of a mark begins with; Vega would resolve a bare fragment against its own site."""

DODGE_DECADE = 0.028  # arms at one learning rate stand side by side
ABOVE, BELOW = 1.16, -0.16  # the strips for what has no place, as shares of the axis


@dataclass(frozen=True)
class Measure:
    """A quantity of a trial; `centre` and its spread are columns of `Findings.cells`."""

    name: str
    title: str
    column: str
    centre: str
    is_log: bool
    caption: str


LOSS = Measure(
    "loss",
    "Final loss (nats)",
    CAPPED_LOSS,
    MEAN_LOSS,
    is_log=False,
    caption="Final loss against peak LR. A dot is a seed, the line the mean, the band one standard "
    "deviation to both sides. A loss above the initial one is drawn, and counts, as the "
    "initial one; so does a non-finite trial in the mean.",
)
MEASURES = (
    LOSS,
    Measure(
        "max-logit",
        "Max attention logit",
        RUNNING_MAX_LOGIT,
        RUNNING_MAX_LOGIT,
        is_log=True,
        caption="Largest attention logit over layers, heads and probed steps. Line: median over "
        "seeds; band: lowest to highest seed.",
    ),
    Measure(
        "entropy",
        "Attention entropy, normalised",
        MIN_ENTROPY_NORMALISED,
        MIN_ENTROPY_NORMALISED,
        is_log=False,
        caption="Lowest mean attention entropy of a layer over probed steps; 1 is uniform "
        "attention. Line: median over seeds; band: lowest to highest seed.",
    ),
    Measure(
        "outliers",
        "Activation outliers: max / median",
        MAX_OUTLIER_RATIO,
        MAX_OUTLIER_RATIO,
        is_log=True,
        caption="Largest activation of the residual stream over the median one, highest over "
        "layers and probed steps. Line: median over seeds; band: lowest to highest seed.",
    ),
)


@dataclass(frozen=True)
class Axis:
    """Where values stand: finite ones between `low` and `high`, the others above and below.

    Both ends are exponents of 10 on a logarithmic axis.
    """

    low: float
    high: float
    is_log: bool

    @staticmethod
    def of(values: Sequence[float], *, is_log: bool) -> "Axis":
        """The range of the values that have a place, widened where it is empty or a point."""
        usable = [v for v in values if isfinite(v) and (v > 0 or not is_log)]
        ends = (min(usable), max(usable)) if usable else (1.0, 10.0)
        low, high = map(log10, ends) if is_log else ends
        least = 0.3 if is_log else max(0.02 * abs(high), 0.01)
        middle, half = (low + high) / 2, max(high - low, least) / 2
        return Axis(middle - half, middle + half, is_log)

    def at(self, share: float) -> float:
        """The value at a share of the range: 0 is its low end, 1 its high end."""
        value = self.low + share * (self.high - self.low)
        return 10**value if self.is_log else value

    def place(self, value: float) -> float:
        """A finite value; what a logarithmic axis cannot show stands at its low end."""
        return self.at(0) if self.is_log and value <= 0 else value

    @property
    def ticks(self) -> list[float]:
        """Of a logarithmic axis: decades, or 1-2-5 where there are fewer than two."""
        decades = range(ceil(self.low), floor(self.high) + 1)
        if len(decades) >= 2:
            return [10.0**n for n in decades[:: 1 + len(decades) // 7]]
        wide = (m * 10.0**n for n in range(floor(self.low), ceil(self.high) + 1) for m in (1, 2, 5))
        return [tick for tick in wide if self.low <= log10(tick) <= self.high]


def chart(
    cells: pl.DataFrame,
    trials: pl.DataFrame,
    missing: pl.DataFrame,
    measure: Measure,
    colours: Mapping[str, str],
) -> Chart:
    """The chart of one setting at one depth; the frames are those rows of the findings."""
    lines = _lines(cells, measure)
    spread = [row[end] for row in lines for end in ("low", "high")]
    values = [*trials[measure.column].drop_nulls(), *spread]
    axis = Axis.of(values, is_log=measure.is_log)
    arms = [arm for arm in colours if arm in set(cells[Column.ARM])]
    points = _points(trials, missing, measure, axis, arms, colours)
    strips = {point["strip"] for point in points}
    notes = [
        *([(ABOVE, "non-finite")] if ABOVE in strips else []),
        *([(BELOW, "missing")] if BELOW in strips else []),
        *([] if any(map(isfinite, values)) else [(0.5, "no finite value")]),
    ]
    x = _x(sorted(set(cells[PEAK_LR])))
    scale = alt.Scale(
        type="log" if measure.is_log else "linear",
        domain=[
            axis.at(BELOW - 0.1 if BELOW in strips else -0.05),
            axis.at(ABOVE + 0.1 if ABOVE in strips else 1.05),
        ],
        nice=False,
        zero=False,
    )
    ticks = alt.Axis(format="~g", tickCount=5)
    if measure.is_log:
        ticks = alt.Axis(format="~g", values=axis.ticks)
    y = {"scale": scale, "axis": ticks, "title": measure.title}
    by_arm = alt.Scale(domain=arms, range=[colours[arm] for arm in arms])
    colour = alt.Color("arm:N", scale=by_arm, legend=None)
    drawn = alt.Chart(alt.Data(values=lines)).encode(x=x, color=colour)
    words = [{"y": axis.at(share), "text": text} for share, text in notes]
    return alt.layer(
        drawn.mark_area(opacity=0.16).encode(y=alt.Y("low:Q", **y), y2="high:Q"),
        drawn.mark_line(strokeWidth=1.8).encode(y=alt.Y("y:Q", **y)),
        _marks(points).encode(
            x=x, y=alt.Y("y:Q", **y), stroke=alt.Stroke("arm:N", scale=by_arm, legend=None)
        ),
        alt.Chart(alt.Data(values=words))
        .mark_text(align="left", x=3, dy=-9, fontSize=10, color=MUTED, aria=False)
        .encode(y=alt.Y("y:Q", **y), text="text:N"),
    ).properties(width=WIDTH, height=HEIGHT)


def kind_of_mark() -> pl.Expr:
    """How a trial is drawn, from the flags of its outcome."""
    return (
        pl.when(D0)
        .then(pl.lit(NON_FINITE))
        .when(UNSTABLE)
        .then(pl.lit(IS_UNSTABLE))
        .when(SLOW)
        .then(pl.lit(IS_SLOW))
        .otherwise(pl.lit(STABLE))
        .alias("kind")
    )


def _x(rates: Sequence[float]) -> alt.X:
    return alt.X(
        "peak_lr:Q",
        title="peak LR",
        scale=alt.Scale(type="log", domain=[rates[0] / 1.35, rates[-1] * 1.35], nice=False),
        axis=alt.Axis(values=rates, format="~g", grid=False, labelOverlap="greedy"),
    )


def _marks(points: Sequence[Row]) -> Chart:
    shapes = alt.Scale(domain=list(SHAPES), range=list(SHAPES.values()))
    return (
        alt.Chart(alt.Data(values=points))
        .mark_point(size=38, strokeWidth=1.5)
        .encode(
            shape=alt.Shape("kind:N", scale=shapes, legend=None),
            fill=alt.Fill("fill:N", scale=None, legend=None),
            href="href:N",
            description="text:N",
        )
    )


def _lines(cells: pl.DataFrame, measure: Measure) -> list[Row]:
    """Centre and spread of each cell where they have a place on the axis."""
    rows = cells.select(
        pl.col(Column.ARM).alias("arm"),
        PEAK_LR,
        y=pl.col(measure.centre),
        low=pl.coalesce(f"{measure.centre}{LOW}", measure.centre),
        high=pl.coalesce(f"{measure.centre}{HIGH}", measure.centre),
    )
    has_place = pl.all_horizontal(pl.col("y", "low", "high").is_finite())
    if measure.is_log:
        has_place &= pl.col("low") > 0
    return rows.filter(has_place).sort("arm", PEAK_LR).to_dicts()


def _points(
    trials: pl.DataFrame,
    missing: pl.DataFrame,
    measure: Measure,
    axis: Axis,
    arms: Sequence[str],
    colours: Mapping[str, str],
) -> list[Row]:
    middle = (len(arms) - 1) / 2
    dodge = {arm: 10 ** (DODGE_DECADE * (n - middle)) for n, arm in enumerate(arms)}
    points: list[Row] = []
    for row in trials.with_columns(kind_of_mark()).iter_rows(named=True):
        value: float | None = row[measure.column]
        arm, kind = row[Column.ARM], row["kind"]
        # A non-finite trial counts at its initial loss and did not end there: it stands above.
        lost = measure is LOSS and kind == NON_FINITE
        if value is None and not lost:
            continue  # it was not measured, and its mark stands in the picture of the loss
        place = None if lost or value is None or not isfinite(value) else axis.place(value)
        points.append(
            {
                "arm": arm,
                "peak_lr": row[PEAK_LR] * dodge[arm],
                "y": axis.at(ABOVE) if place is None else place,
                "strip": ABOVE if place is None else 0,
                "kind": kind,
                "fill": colours[arm] if kind in FILLED else "transparent",
                "href": f"{LINK}{quote(row[Column.TRIAL_ID], safe='')}",
                "text": _spoken(row, measure, value),
            }
        )
    for row in missing.iter_rows(named=True):
        arm = row[Column.ARM]
        points.append(
            {
                "arm": arm,
                "peak_lr": row[PEAK_LR] * dodge[arm],
                "y": axis.at(BELOW),
                "strip": BELOW,
                "kind": MISSING,
                "fill": "transparent",
                "href": None,
                "text": f"{_name(row)}: missing",
            }
        )
    return points


def _name(row: Row) -> str:
    return f"{row[Column.ARM]}, peak LR {row[PEAK_LR]:g}, seed {row[SEED]}"


def _spoken(row: Row, measure: Measure, value: float | None) -> str:
    loss = row[Column.FINAL_LOSS]
    shown = "no loss" if loss is None else f"loss {loss:.4g}"
    also = "" if measure is LOSS or value is None else f", {measure.title.lower()} {value:.3g}"
    return f"{_name(row)}: {row[OUTCOME]}, {shown}{also}"
