"""How every picture looks, and how a chart becomes a picture without a browser."""

from typing import Any

import vl_convert

from redline.report.colours import GRID, GROUND, INK, MUTED

Chart = Any
"""A chart of altair, whose own types fit no layered chart."""

WIDTH, HEIGHT = 292, 200
FONT = "Inter, system-ui, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"
PNG_SCALE = 2


def styled(chart: Chart) -> Chart:
    """The chart in the one style of all figures."""
    return (
        chart.configure(background=GROUND, font=FONT, padding=4)
        .configure_view(stroke=None)
        .configure_axis(
            gridColor=GRID,
            domainColor=MUTED,
            tickColor=MUTED,
            labelColor=MUTED,
            titleColor=INK,
            labelFontSize=11,
            titleFontSize=12,
            titleFontWeight="normal",
        )
        .configure_header(labelColor=MUTED, titleColor=INK, labelFontSize=11, titleFontSize=12)
        .configure_title(color=INK, fontSize=13, anchor="start", fontWeight=600)
    )


def to_svg(chart: Chart) -> str:
    """The chart as SVG text."""
    return vl_convert.vegalite_to_svg(styled(chart).to_dict())


def to_png(svg: str) -> bytes:
    """The same picture as pixels, at twice its size."""
    return vl_convert.svg_to_png(svg, scale=PNG_SCALE)
