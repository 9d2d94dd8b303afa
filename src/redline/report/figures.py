"""Every figure of a sweep as one Vega-Lite specification, for the page and for files.

A panel shows one setting at one depth. The page holds panels one by one, so that they stack on a
phone; a file holds those of all depths side by side, with a legend.
"""

import re
from dataclasses import dataclass

import altair as alt
import polars as pl

from redline.analysis.comparable import CONTROL, DEPTH_KEY, N_LAYER
from redline.analysis.findings import Findings
from redline.analysis.steps import SHARE
from redline.report import against_lr, delta_map, survival
from redline.report.against_lr import FILLED, MEASURES, MISSING, SHAPES, Measure, kind_of_mark
from redline.report.colours import INK, arm_colours, with_variables
from redline.report.style import Chart, to_png, to_svg
from redline.store.schema import Column


@dataclass(frozen=True)
class Panel:
    """One chart of a figure and what tells it from its neighbours."""

    title: str
    chart: Chart

    @property
    def svg(self) -> str:
        """The picture for the page, in CSS variables; a mark leads to the panel of its trial."""
        return with_variables(to_svg(self.chart).replace(against_lr.LINK, "#trial="))


@dataclass(frozen=True)
class Figure:
    """A figure of one setting; `name` is its kind, for files and for style."""

    name: str
    control: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    needs_legend: bool

    def files(self, study: str, legend: Chart) -> dict[str, bytes]:
        """Suffix -> content of the figure with all its panels, as SVG and PNG."""
        charts = [panel.chart.properties(title=panel.title) for panel in self.panels]
        whole = alt.hconcat(*charts, *([legend] if self.needs_legend else []), spacing=28)
        linked = to_svg(whole.properties(title=f"{study}: {self.title}"))
        svg = re.sub(r"</?a\b[^>]*>", "", linked)  # a file alone has no panel to lead to
        return {"svg": svg.encode(), "png": to_png(svg)}


def figures(found: Findings) -> list[Figure]:
    """The figures of all settings; one that would be empty is left out."""
    drawn: list[Figure] = []
    for control in found.cells[CONTROL].unique(maintain_order=True):
        if maps := _maps(found, control):
            title, caption = delta_map.TITLE, delta_map.CAPTION
            drawn.append(Figure("map", control, title, caption, maps, needs_legend=False))
        drawn += [
            Figure(m.name, control, m.title, m.caption, _panels(found, control, m), True)
            for m in MEASURES
            if found.trials[m.column].is_not_null().any()
        ]
        if curves := _survival(found, control):
            title, caption = survival.TITLE, survival.CAPTION
            drawn.append(Figure("steps", control, title, caption, curves, needs_legend=True))
    return drawn


def legend(found: Findings) -> Chart:
    """Arms and marks with the number of trials behind each, as a chart for files."""
    entries = [(arm, colour, "circle", True) for arm, colour in arms(found).items()]
    entries += [
        (f"{kind} ({n})", INK, SHAPES[kind], kind in FILLED)
        for kind, n in mark_counts(found).items()
    ]
    rows = [
        {"text": text, "row": row, "fill": colour if filled else "transparent"}
        | {"colour": colour, "shape": shape}
        for row, (text, colour, shape, filled) in enumerate(entries)
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(y=alt.Y("row:O", axis=None))
    marks = base.mark_point(size=60, strokeWidth=1.6).encode(
        x=alt.value(6),
        shape=alt.Shape("shape:N", scale=None, legend=None),
        stroke=alt.Stroke("colour:N", scale=None, legend=None),
        fill=alt.Fill("fill:N", scale=None, legend=None),
    )
    words = base.mark_text(align="left", color=INK, fontSize=11).encode(
        x=alt.value(16), text="text:N"
    )
    return alt.layer(marks, words).properties(width=130, height=18 * len(entries))


def mark_counts(found: Findings) -> dict[str, int]:
    """Kind of mark -> number of trials drawn with it, those without any left out."""
    counted = dict(found.trials.select(kind_of_mark())["kind"].value_counts().iter_rows())
    counted[MISSING] = found.missing.height
    return {kind: counted[kind] for kind in SHAPES if counted.get(kind)}


def arms(found: Findings) -> dict[str, str]:
    """Arm -> colour of the arms that are there, the plain one first."""
    present = set(found.cells[Column.ARM])
    return {arm: colour for arm, colour in arm_colours(present).items() if arm in present}


def _panels(found: Findings, control: str, measure: Measure) -> tuple[Panel, ...]:
    depths = found.cells.filter(pl.col(CONTROL) == control)[N_LAYER].unique().sort()
    panels: list[Panel] = []
    for depth in depths:
        here = dict(zip(DEPTH_KEY, (control, depth), strict=True))
        frames = (table.filter(**here) for table in (found.cells, found.trials, found.missing))
        chart = against_lr.chart(*frames, measure=measure, colours=arms(found))
        panels.append(Panel(f"n_layer {depth}", chart))
    return tuple(panels)


def _survival(found: Findings, control: str) -> tuple[Panel, ...]:
    """A panel for each depth in which any trial arrives."""
    curves = found.survival.filter(pl.col(CONTROL) == control)
    return tuple(
        Panel(f"n_layer {depth}", survival.chart(rows, arms(found)))
        for (depth,), rows in curves.group_by(N_LAYER, maintain_order=True)
        if (rows[SHARE] < 1).any()
    )


def _maps(found: Findings, control: str) -> tuple[Panel, ...]:
    """A map for each arm that is compared with the plain one."""
    deltas = found.deltas.filter(pl.col(CONTROL) == control)
    bounds = found.boundaries.filter(pl.col(CONTROL) == control)
    return tuple(
        Panel(
            f"off - {arm}",
            delta_map.chart(rows, bounds.filter(pl.col(Column.ARM) == arm), found.analysis),
        )
        for (arm,), rows in deltas.group_by(Column.ARM, maintain_order=True)
    )
