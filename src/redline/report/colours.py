"""One colour for each arm, the same in every picture, and the few others a picture needs.

Pictures are drawn once in the colours below. On the page each of them becomes a CSS variable, so
that one picture serves the light and the dark page.
"""

from collections.abc import Iterable

from redline.analysis.comparable import PLAIN

INK, MUTED, GRID, GROUND = "#1d1f24", "#6a6f7a", "#dfe2e7", "#fdfdfe"
REDLINE = "#c8102f"

PLAIN_COLOUR = "#d1580c"
ARM_COLOURS = (
    "#0b6cad",
    "#138a6b",
    "#a8519b",
    "#8a6d0f",
    "#3f4aa3",
    "#5f6670",
    "#a33f55",
    "#2f7f9e",
)
"""Okabe and Ito's scheme, darkened until text in them is legible on white."""

DELTA_COLOURS = ("#f2b48a", "#f9dcc6", "#eef0f3", "#cfe3f3", "#9cc8e8", "#62a6d8")
"""From where the plain arm is better to where it is far worse: tints of the arms' colours."""

VARIABLES = {
    INK: "ink",
    MUTED: "muted",
    GRID: "grid",
    GROUND: "ground",
    REDLINE: "redline",
    PLAIN_COLOUR: "plain",
    **{colour: f"arm-{n}" for n, colour in enumerate(ARM_COLOURS)},
    **{colour: f"delta-{n}" for n, colour in enumerate(DELTA_COLOURS)},
}
"""Colour -> name of the CSS variable that stands for it on the page."""


def arm_colours(arms: Iterable[str]) -> dict[str, str]:
    """Arm -> colour, the plain arm first; from the ninth other arm on colours come again."""
    others = sorted(set(arms) - {PLAIN})
    shown = {arm: ARM_COLOURS[n % len(ARM_COLOURS)] for n, arm in enumerate(others)}
    return {PLAIN: PLAIN_COLOUR, **shown}


def with_variables(svg: str) -> str:
    """The same picture with CSS variables in place of colours."""
    for colour, name in VARIABLES.items():
        svg = svg.replace(f'"{colour}"', f'"var(--{name})"')
    return svg
