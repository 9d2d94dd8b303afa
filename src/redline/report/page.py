"""The page: one HTML file that needs no network, and the figures and tables beside it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from redline.analysis.audit import AuditRow
from redline.analysis.comparable import (
    CONTROL,
    HASHES,
    N_LAYER,
    PEAK_LR,
    PLAIN,
    SEED,
    SETTING,
    short_names,
)
from redline.analysis.findings import Findings
from redline.analysis.headline import (
    EARLY_MAX_LOGIT,
    MAX_OUTLIER_RATIO,
    MIN_ENTROPY_NORMALISED,
    RUNNING_MAX_LOGIT,
)
from redline.analysis.hypotheses import Hypothesis
from redline.analysis.outcome import OUTCOME
from redline.analysis.spikes import FIRST_SPIKE_STEP, SPIKE_SCORE
from redline.analysis.verdict import Verdict
from redline.files import to_json, write_atomic
from redline.report.against_lr import FILLED, SHAPES
from redline.report.colours import MUTED, REDLINE, VARIABLES, with_variables
from redline.report.curves import RULE, curves
from redline.report.figures import Figure, arms, figures, legend, mark_counts
from redline.report.style import styled
from redline.report.tables import tables, trial_table, write_tables
from redline.store.schema import GROUP_PREFIX, Column

CURVES = (
    ("Loss", ("loss", "eval_loss"), False),
    ("Gradient norm before clipping", ("grad_norm",), True),
    ("Update norm", ("update_norm",), True),
    ("Max attention logit per layer", ("max_logit",), True),
    ("Attention entropy per layer, normalised", ("entropy_normalised",), False),
    ("Activation outliers per layer, max / median", ("outlier_ratio",), True),
)
"""Title, measures and whether the axis is logarithmic, in the order of the trial's panel."""

RESULTS = (
    Column.INIT_LOSS,
    Column.FINAL_LOSS,
    Column.STEPS_DONE,
    Column.NON_FINITE,
    Column.NON_FINITE_STEP,
    EARLY_MAX_LOGIT,
    RUNNING_MAX_LOGIT,
    MIN_ENTROPY_NORMALISED,
    MAX_OUTLIER_RATIO,
    SPIKE_SCORE,
    FIRST_SPIKE_STEP,
)


@dataclass(frozen=True)
class Report:
    """What a page is made of.

    `facts` and `provenance` are (name, value) pairs, `warnings` are sentences that a reader must
    see before the numbers, `text` is the explicit study or the mapping of another tool's table,
    and `command` trains one trial again, with `{}` where its id stands (empty: it cannot be).
    """

    title: str
    findings: Findings
    series: pl.DataFrame
    probes: pl.DataFrame
    facts: Sequence[tuple[str, str]]
    warnings: Sequence[str]
    audit: Sequence[AuditRow]
    provenance: Sequence[tuple[str, str]]
    text: str
    command: str


def write(report: Report, directory: Path, name: str) -> Path:
    """Write `name.html` and the folder `name` with figures and tables; the path of the page."""
    drawn = figures(report.findings)
    beside = directory / name
    for folder in ("figures", "tables"):
        (beside / folder).mkdir(parents=True, exist_ok=True)
    names = _file_names(drawn)
    for figure in drawn:
        content_of = figure.files(report.title, legend(report.findings))
        for suffix, content in content_of.items():
            write_atomic(
                beside / "figures" / f"{names[figure.name, figure.control]}.{suffix}", content
            )
    write_tables(report.findings, beside / "tables")
    page = directory / f"{name}.html"
    # Last: a page that can be opened is a page that is whole.
    write_atomic(page, html(report, drawn).encode())
    return page


def html(report: Report, drawn: Sequence[Figure]) -> str:
    """The whole page as text."""
    environment = Environment(
        loader=PackageLoader("redline.report"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found = report.findings
    names = short_names(found.cells[CONTROL])
    return environment.get_template("page.html").render(
        report=report,
        verdicts=_verdicts(found),
        hypotheses=_hypotheses(found),
        settings=[(names[control], _of(drawn, control)) for control in found.controls],
        arms=[(arm, VARIABLES[colour]) for arm, colour in arms(found).items()],
        marks=mark_counts(found).items(),
        tables=tables(found),
        trials=trial_table(found),
        curve_rule=RULE,
        data=_embedded({"trials": _trials(report), "curves": curves(report.series, report.probes)}),
        curve_charts=_embedded(curve_specs()),
        has_curves=report.series.height > 0,
        glyphs={kind: (shape, kind in FILLED) for kind, shape in SHAPES.items()},
        library=_library(),
    )


def curve_specs() -> list[dict[str, Any]]:
    """The charts of a trial's panel, without data: specification, title and measures."""
    return [
        {"title": title, "measures": measures, "spec": _curve_chart(is_log=is_log)}
        for title, measures, is_log in CURVES
    ]


def _curve_chart(*, is_log: bool) -> dict[str, Any]:
    rows = alt.Chart(alt.NamedData("curve"))
    scale = alt.Scale(type="log") if is_log else alt.Scale(zero=False, nice=False)
    line = rows.mark_line(strokeWidth=1.3).encode(
        x=alt.X("step:Q", title="step", axis=alt.Axis(grid=False, tickCount=4)),
        y=alt.Y(
            "value:Q",
            title=None,
            scale=scale,
            axis=alt.Axis(tickCount=4, format="~g", grid=not is_log),
        ),
        color=alt.Color(
            "name:N",
            title=None,
            scale=alt.Scale(scheme="category10"),
            legend=alt.Legend(orient="top", labelColor=MUTED),
        ),
    )
    # Every row has a mark there, so that a chart without lost values has no empty layer to warn of.
    lost = rows.mark_point(shape="triangle-up", filled=True, size=50, color=REDLINE).encode(
        x="step:Q",
        y=alt.value(4),
        opacity=alt.condition("datum.lost", alt.value(1), alt.value(0)),
        description="said:N",
    )
    chart = styled(alt.layer(line, lost).properties(width="container", height=130))
    return json.loads(with_variables(to_json(chart.to_dict())))


@cache
def _library() -> Markup:
    """The code that draws the curves of a trial; parsed when the first one is opened."""
    code = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    assert "</script" not in code
    return Markup(code)  # noqa: S704 - our own dependency's


def _embedded(value: Any) -> Markup:
    """JSON that can stand in a script element: no text of other people can end it."""
    return Markup(to_json(value).replace("<", "\\u003c"))  # noqa: S704 - escaped here


def _trials(report: Report) -> dict[str, Any]:
    """What the panel of a trial shows: settings that all trials share, and each trial's own."""
    trials = report.findings.trials
    groups = [name for name in trials.columns if name.startswith(GROUP_PREFIX)]
    fields = [name for name in (*SETTING, *HASHES, *groups) if trials[name].is_not_null().any()]
    shared = [name for name in fields if trials[name].n_unique() == 1]
    return {
        "shared": {name: _plain(trials[name][0]) for name in shared},
        "each": {
            row[Column.TRIAL_ID]: {
                "title": f"{row[Column.ARM]}, n_layer {row[N_LAYER]}, "
                f"peak LR {row[PEAK_LR]:g}, seed {row[SEED]}",
                "outcome": row[OUTCOME],
                "results": {name: _plain(row[name]) for name in RESULTS if row[name] is not None},
                "own": {n: _plain(row[n]) for n in fields if n not in shared},
                "command": report.command.format(row[Column.TRIAL_ID]),
            }
            for row in trials.iter_rows(named=True)
        },
    }


def _plain(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _verdicts(found: Findings) -> list[Verdict]:
    """The base setting first, then the others in their order."""
    names = short_names(found.cells[CONTROL])
    return sorted(found.verdicts, key=lambda v: names[v.control] not in ("", "base"))


def _hypotheses(found: Findings) -> list[tuple[str, list[Hypothesis]]]:
    """Title and hypotheses of each arm that is compared, the base setting first."""
    names = short_names(found.cells[CONTROL])
    by_pair: dict[tuple[str, str], list[Hypothesis]] = {}
    for one in found.hypotheses:
        by_pair.setdefault((one.control, one.arm), []).append(one)
    order = sorted(by_pair, key=lambda pair: found.controls.index(pair[0]))
    titles = {(c, a): ", ".join(filter(None, (names[c], f"{PLAIN} against {a}"))) for c, a in order}
    return [(titles[pair], by_pair[pair]) for pair in order]


def _of(drawn: Sequence[Figure], control: str) -> list[Figure]:
    return [figure for figure in drawn if figure.control == control]


def _file_names(drawn: Sequence[Figure]) -> dict[tuple[str, str], str]:
    """Settings are numbered: their names are made of other people's words."""
    controls = list(dict.fromkeys(figure.control for figure in drawn))
    return {
        (figure.name, figure.control): figure.name
        if len(controls) == 1
        else f"{controls.index(figure.control):02}-{figure.name}"
        for figure in drawn
    }
