import re
from math import inf

import polars as pl
import pytest
from sweeps import findings, parting

from redline.analysis import necessity as nec
from redline.report import delta_map
from redline.report.colours import VARIABLES, arm_colours, with_variables
from redline.report.figures import figures, legend


@pytest.fixture(scope="module")
def found():
    return findings(depths=(2, 4))


def tiles(found):
    chart = delta_map.chart(found.deltas, found.boundaries, found.analysis).to_dict()
    return chart["layer"][0]["data"]["values"], chart


def test_a_sweep_has_a_map_and_four_measures_of_each_depth(found):
    drawn = figures(found)
    assert [f.name for f in drawn] == [
        "map",
        "loss",
        "max-logit",
        "entropy",
        "outliers",
        "steps",
    ]
    assert [p.title for p in drawn[1].panels] == ["n_layer 2", "n_layer 4"]
    assert [p.title for p in drawn[0].panels] == ["off - on"]


def test_each_setting_has_its_own_figures():
    measured = [findings(), findings(train__z_loss=1e-4)]
    assert {f.control for m in measured for f in figures(m)} == {""}


def test_a_measure_that_nothing_probed_has_no_figure(found):
    bare = findings().trials.with_columns(running_max_logit=pl.lit(None, pl.Float64))
    drawn = figures(type(found)(**{**findings().__dict__, "trials": bare}))
    assert "max-logit" not in [f.name for f in drawn]


def test_the_map_says_the_difference_and_the_decision_of_each_cell(found):
    rows, _ = tiles(found)
    assert len(rows) == found.deltas.height
    for row, delta in zip(rows, found.deltas.iter_rows(named=True), strict=True):
        assert row["text"] == f"{delta[nec.MEAN_DELTA]:+.2f}"
        assert row["state"] == delta[nec.STATE]


def test_the_boundary_stands_at_the_sides_of_the_cells_it_names(found):
    _, chart = tiles(found)
    needed, droppable = chart["layer"][3], chart["layer"][4]
    assert [r["rate"] for r in needed["data"]["values"]] == ["0.03", "0.03"]
    assert needed["encoding"]["x"]["bandPosition"] == 0
    assert [r["rate"] for r in droppable["data"]["values"]] == ["0.01", "0.01"]
    assert droppable["encoding"]["x"]["bandPosition"] == 1


def test_a_boundary_that_is_not_known_is_not_drawn():
    _, chart = tiles(findings(n_seed=2))
    assert chart["layer"][3]["data"]["values"] == []
    assert chart["layer"][4]["data"]["values"] == []


def test_a_pair_without_any_loss_is_a_question_mark(found):
    deltas = found.deltas.with_columns(mean_delta=pl.lit(None, pl.Float64))
    chart = delta_map.chart(deltas, found.boundaries, found.analysis).to_dict()
    assert {r["text"] for r in chart["layer"][0]["data"]["values"]} == {"?"}


def test_every_colour_of_a_picture_becomes_a_variable_on_the_page(found):
    for figure in figures(found):
        for panel in figure.panels:
            colours = re.findall(r'"(#[0-9a-f]{3,6})"', panel.svg)
            assert not [c for c in colours if c in VARIABLES]
            assert set(colours) <= {"#000", "#ddd", "#888"}, set(colours)


def test_a_mark_leads_to_its_trial_on_the_page_and_nowhere_in_a_file(found):
    loss = figures(found)[1]
    links = re.findall(r'href="([^"]*)"', loss.panels[0].svg)
    assert links
    here = found.trials.filter(n_layer=2)["trial_id"]
    assert set(links) == {f"#trial={trial_id}" for trial_id in here}
    assert "href" not in loss.files("s", legend(found))["svg"].decode()


def test_pictures_on_one_page_share_no_element_ids(found):
    assert not any(' id="' in panel.svg for f in figures(found) for panel in f.panels)


def test_variables_stand_only_where_a_colour_stood():
    assert with_variables('<text fill="#1d1f24">#1d1f24</text>') == (
        '<text fill="var(--ink)">#1d1f24</text>'
    )


def test_a_ninth_arm_has_a_colour():
    arms = ["off", *(f"arm {n}" for n in range(12))]
    assert set(arm_colours(arms)) == set(arms)


def test_a_file_holds_all_depths_a_legend_and_a_title(found):
    content = figures(found)[1].files("my study", legend(found))
    svg = content["svg"].decode()
    for text in ("my study: Final loss (nats)", "n_layer 2", "n_layer 4", "off", "stable ("):
        assert text in svg
    assert "var(" not in svg
    assert content["png"].startswith(b"\x89PNG")


def test_text_of_other_people_in_a_title_stays_text(found):
    svg = figures(found)[0].files("<script>x</script>&", legend(found))["svg"].decode()
    assert "<script" not in svg
    assert "&lt;script&gt;" in svg


def test_a_diverged_arm_still_has_a_map():
    found = findings(loss=lambda a, n, r, s: float("nan") if a == "off" else parting(a, n, r, s))
    rows, _ = tiles(found)
    assert all(abs(row["delta"]) < inf for row in rows)
    assert {row["state"] for row in rows} == {"needed"}
