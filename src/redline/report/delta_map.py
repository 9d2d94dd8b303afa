"""The map of peak LR x depth: what dropping QK-norm costs, and where the boundary stands."""

from collections.abc import Sequence

import altair as alt
import polars as pl

from redline.analysis import necessity as nec
from redline.analysis.comparable import N_LAYER, PEAK_LR
from redline.config.analysis import Analysis
from redline.report.colours import DELTA_COLOURS, GROUND, INK, REDLINE
from redline.report.style import WIDTH, Chart

TITLE = "What dropping QK-norm costs"
CAPTION = (
    "Paired difference in final loss, off - arm, in nats: positive where QK-norm helps. Below it "
    "what the paired tests decide. The red line stands where QK-norm is needed from; the dotted "
    "one ends the range up to which it can be dropped."
)
CELL_HEIGHT, MIN_CELL_WIDTH = 46, 58


def chart(deltas: pl.DataFrame, boundaries: pl.DataFrame, analysis: Analysis) -> Chart:
    """The map of one arm in one setting; the frames are those rows of the findings."""
    rows = [
        {
            "rate": f"{row[PEAK_LR]:g}",
            "n_layer": row[N_LAYER],
            # A pair without any loss has no colour of its own and no number.
            "delta": 0 if (mean := row[nec.MEAN_DELTA]) is None else mean,
            "text": "?" if mean is None else f"{mean:+.2f}",
            "state": row[nec.STATE],
            "said": f"n_layer {row[N_LAYER]}, peak LR {row[PEAK_LR]:g}: "
            f"{'no loss' if mean is None else f'{mean:+.4f} nat'}, {row[nec.STATE]}",
        }
        for row in deltas.iter_rows(named=True)
    ]
    rates = [f"{rate:g}" for rate in sorted(set(deltas[PEAK_LR]))]
    depths = sorted(set(deltas[N_LAYER]), reverse=True)
    base = alt.Chart(alt.Data(values=rows)).encode(
        x=alt.X("rate:O", sort=rates, title="peak LR", axis=alt.Axis(labelAngle=0, ticks=False)),
        y=alt.Y("n_layer:O", sort=depths, title="n_layer", axis=alt.Axis(ticks=False)),
    )
    m_eq, m_nec = analysis.m_eq, analysis.m_nec
    tints = alt.Scale(
        type="threshold",
        domain=[-m_nec, -m_eq, m_eq, m_nec, 3 * m_nec],
        range=list(DELTA_COLOURS),
    )
    return alt.layer(
        base.mark_rect(stroke=GROUND, strokeWidth=2).encode(
            fill=alt.Fill("delta:Q", scale=tints, legend=None), description="said:N"
        ),
        base.mark_text(dy=-7, fontSize=12, fontWeight=600, color=INK, aria=False).encode(
            text="text:N"
        ),
        base.mark_text(dy=9, fontSize=9, color=INK, aria=False).encode(text="state:N"),
        _edge(boundaries, nec.NEEDED_FROM, rates, depths, side=0.0, dash=[1, 0]),
        _edge(boundaries, nec.DROPPABLE_TO, rates, depths, side=1.0, dash=[2, 3]),
    ).properties(width=max(WIDTH, MIN_CELL_WIDTH * len(rates)), height=CELL_HEIGHT * len(depths))


def _edge(
    boundaries: pl.DataFrame,
    column: str,
    rates: Sequence[str],
    depths: Sequence[int],
    *,
    side: float,
    dash: Sequence[int],
) -> Chart:
    """A line at the left (0) or right (1) side of the cell that a boundary names, in each depth."""
    rows = [
        {"rate": f"{row[column]:g}", "n_layer": row[N_LAYER]}
        for row in boundaries.drop_nulls(column).iter_rows(named=True)
    ]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_rule(color=REDLINE, strokeWidth=3, strokeDash=dash, aria=False)
        .encode(
            x=alt.X("rate:O", sort=list(rates), bandPosition=side),
            y=alt.Y("n_layer:O", sort=list(depths), bandPosition=0),
            y2=alt.Y2("n_layer:O", bandPosition=1),
        )
    )
