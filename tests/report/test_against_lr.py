import math
import os
import resource

import polars as pl
import pytest
from sweeps import RATES, findings, parting

from redline.report import against_lr
from redline.report.against_lr import LINK, LOSS, MEASURES, Axis
from redline.report.colours import arm_colours
from redline.report.figures import figures, mark_counts
from redline.report.style import to_png, to_svg


def points(found, measure=LOSS):
    """The marks of the chart of a sweep with one setting and one depth."""
    chart = against_lr.chart(
        found.cells, found.trials, found.missing, measure, arm_colours(found.cells["arm"])
    )
    return chart, chart.to_dict()["layer"][2]["data"]["values"]


def notes(chart):
    return [row["text"] for row in chart.to_dict()["layer"][3]["data"]["values"]]


def test_every_seed_of_every_cell_has_its_mark():
    found = findings()
    _, marks = points(found)
    assert len(marks) == found.trials.height == 2 * len(RATES) * 3
    assert {mark["href"] for mark in marks} == {LINK + i for i in found.trials["trial_id"]}


def test_a_mark_says_in_words_what_it_is():
    _, marks = points(findings())
    assert marks[0]["text"].startswith("off, peak LR 0.001, seed 0: ")
    assert "loss 2.0" in marks[0]["text"]


def test_case_r02_what_has_no_place_on_an_axis_is_marked_and_counted():
    """R02 (matplotlib#27085, seaborn#3488): the log of a value that is not positive was clipped or
    masked by mode, so that points vanished or stood at an arbitrary tiny value.

    Of the losses 2, inf and NaN one is a value and two are marks above; a missing trial is another
    mark below; the legend counts all of them.
    """
    outcome = {(1e-3, 0): 2.0, (1e-3, 1): math.nan, (1e-3, 2): math.nan, (1e-2, 0): None}
    found = findings(
        arms=("off",), rates=(1e-3, 1e-2), loss=lambda a, n, r, s: outcome.get((r, s), 2.1)
    )
    chart, marks = points(found)
    kinds = [mark["kind"] for mark in marks]
    assert len(marks) == 6
    assert kinds.count("non-finite") == 2
    assert kinds.count("missing") == 1
    finite = [mark["y"] for mark in marks if mark["kind"] not in ("non-finite", "missing")]
    assert all(m["y"] > max(finite) for m in marks if m["kind"] == "non-finite")
    assert all(m["y"] < min(finite) for m in marks if m["kind"] == "missing")
    assert notes(chart) == ["non-finite", "missing"]
    assert mark_counts(found) == {"stable": 3, "non-finite": 2, "missing": 1}


def test_a_log_axis_shows_zero_at_its_low_end_and_infinity_above():
    axis = Axis.of([0.0, 0.1, 10.0, math.inf], is_log=True)
    assert axis.place(0.0) == pytest.approx(0.1)
    assert axis.place(5.0) == 5.0
    assert axis.at(1.1) > 10
    assert axis.ticks == pytest.approx([0.1, 1.0, 10.0])


def test_an_infinite_logit_is_a_mark_above_the_others():
    found = findings()
    trials = found.trials.with_columns(
        running_max_logit=pl.when(pl.col("seed") == 0).then(math.inf).otherwise("running_max_logit")
    )
    chart = against_lr.chart(
        found.cells, trials, found.missing, MEASURES[1], arm_colours(found.cells["arm"])
    )
    marks = chart.to_dict()["layer"][2]["data"]["values"]
    lost = [mark for mark in marks if mark["strip"] == against_lr.ABOVE]
    assert len(lost) == 2 * len(RATES)
    assert all(math.isfinite(mark["y"]) for mark in marks)
    assert "non-finite" in notes(chart)


@pytest.mark.parametrize(
    "loss",
    [lambda *_: math.nan, lambda *_: 2.0, lambda arm, n, rate, seed: parting(arm, n, rate, 0)],
    ids=["all diverged", "all equal", "no spread"],
)
@pytest.mark.parametrize("rates", [RATES, (1e-3,)], ids=["a sweep", "one rate"])
def test_case_r03_limits_come_from_finite_values_alone(loss, rates):
    """R03 (MockingBird#571, remodnav#14): limits by plain min and max over NaN or inf crashed.

    All diverged, one cell and equal losses each give a figure.
    """
    found = findings(loss=loss, rates=rates)
    for figure in figures(found):
        for panel in figure.panels:
            svg = panel.svg
            assert "NaN" not in svg
            assert "Infinity" not in svg
    chart, marks = points(found)
    assert len(marks) == found.trials.height
    assert ("non-finite" in notes(chart)) == found.trials["final_loss"].is_null().all()


def test_case_r03_an_axis_without_any_finite_value_says_so():
    """R03: the fallback range carries no meaning, and the figure says that nothing has a place."""
    found = findings()
    lost = pl.lit(math.inf)
    cells = found.cells.with_columns(
        running_max_logit=lost, running_max_logit_low=lost, running_max_logit_high=lost
    )
    trials = found.trials.with_columns(running_max_logit=lost)
    colours = arm_colours(cells["arm"])
    chart = against_lr.chart(cells, trials, found.missing, MEASURES[1], colours)
    assert notes(chart) == ["non-finite", "no finite value"]
    assert "Infinity" not in to_svg(chart)


def test_case_r05_figures_do_not_pile_up(monkeypatch):
    """R05 (MIPCandy#237, matplotlib#8519): a global registry kept each figure alive.

    60 pictures without a display: nothing is kept, and memory stays.
    """
    monkeypatch.delenv("DISPLAY", raising=False)
    chart, _ = points(findings())
    to_png(to_svg(chart))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for n in range(60):
        svg = to_svg(chart)
        if n % 6 == 0:
            to_png(svg)
    unit = 1024 if os.uname().sysname == "Linux" else 1
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit < 100e6


def test_a_slow_trial_is_hollow_and_not_crossed_out():
    found = findings(loss=lambda arm, n, rate, seed: 2.0 if rate > 5e-3 else 3.5)
    _, marks = points(found)
    slow = [mark for mark in marks if mark["kind"] == "slow"]
    assert slow
    assert {mark["fill"] for mark in slow} == {"transparent"}
    assert all(mark["y"] > 3 for mark in slow)


def test_an_arm_has_one_colour_in_every_picture():
    def loss(arm, n_layer, rate, seed):
        return None if arm == "l2" and n_layer == 4 else parting(arm, n_layer, rate, seed)

    found = findings(arms=("off", "l2", "on"), depths=(2, 4), loss=loss)
    seen = {}
    for figure in figures(found):
        if figure.name == "map":
            continue
        for panel in figure.panels:
            chart = panel.chart.to_dict()
            drawn = chart["spec"] if "spec" in chart else chart["layer"][1]
            scale = drawn["encoding"]["color"]["scale"]
            for arm, colour in zip(scale["domain"], scale["range"], strict=True):
                seen.setdefault(arm, set()).add(colour)
    assert seen.keys() == {"off", "l2", "on"}
    assert all(len(colours) == 1 for colours in seen.values())


def test_the_mean_line_holds_the_dead_seed_at_its_initial_loss():
    found = findings(
        arms=("off",), loss=lambda a, n, r, s: math.nan if (r, s) == (1e-2, 0) else 2.0
    )
    chart, _ = points(found)
    line = {row["peak_lr"]: row for row in chart.to_dict()["layer"][1]["data"]["values"]}
    assert line[1e-2]["y"] == pytest.approx((5.5 + 2 + 2) / 3)
    assert line[1e-3]["y"] == 2.0


def test_one_seed_has_a_line_without_a_band():
    found = findings(n_seed=1)
    chart, _ = points(found)
    rows = chart.to_dict()["layer"][0]["data"]["values"]
    assert rows
    assert all(row["low"] == row["y"] == row["high"] for row in rows)
