"""The share of trials that has not reached the threshold yet, step by step, for each peak LR."""

from collections.abc import Mapping

import altair as alt
import polars as pl

from redline.analysis.comparable import PEAK_LR
from redline.analysis.steps import SHARE, STEP
from redline.report.style import Chart
from redline.store.schema import Column

TITLE = "Steps to threshold"
CAPTION = (
    "Kaplan-Meier: the share of seeds whose loss has not come down to the threshold yet, against "
    "steps. A trial that never arrives, a non-finite one included, stays to the end."
)
WIDTH, HEIGHT, COLUMNS = 104, 84, 6


def chart(curves: pl.DataFrame, colours: Mapping[str, str]) -> Chart:
    """Small charts by peak LR; `curves` are the rows of one setting and depth of the findings."""
    last = curves[STEP].max()
    rows = [
        row
        for (rate, arm), of_cell in curves.sort(STEP).group_by(
            PEAK_LR, Column.ARM, maintain_order=True
        )
        for row in _steps(f"{rate:g}", str(arm), of_cell, last)
    ]
    order = [f"{rate:g}" for rate in sorted(set(curves[PEAK_LR]))]
    arms = [arm for arm in colours if arm in set(curves[Column.ARM])]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_line(interpolate="step-after", strokeWidth=2, opacity=0.85)
        .encode(
            x=alt.X("step:Q", title=None, axis=alt.Axis(tickCount=2, grid=False, format="~s")),
            y=alt.Y(
                "share:Q",
                title=None,
                scale=alt.Scale(domain=[0, 1.03], nice=False),
                axis=alt.Axis(values=[0, 0.5, 1], format="%"),
            ),
            color=alt.Color(
                "arm:N",
                legend=None,
                scale=alt.Scale(domain=arms, range=[colours[arm] for arm in arms]),
            ),
            description="said:N",
        )
        .properties(width=WIDTH, height=HEIGHT)
        .facet(
            facet=alt.Facet("rate:N", sort=order, title="peak LR"),
            columns=min(COLUMNS, len(order)),
            spacing=12,
        )
    )


def _steps(rate: str, arm: str, curve: pl.DataFrame, last: object) -> list[dict[str, object]]:
    """The corners of one curve, from all seeds at step 0 to the last step of any cell."""
    shares = [(0.0, 1.0), *curve.select(STEP, SHARE).iter_rows()]
    shares.append((last, shares[-1][1]))
    said = f"{arm}, peak LR {rate}: {shares[-1][1]:.0%} never arrive"
    return [
        {"rate": rate, "arm": arm, "step": step, "share": share, "said": said}
        for step, share in shares
    ]
