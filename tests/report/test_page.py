import json
import math
import re
from dataclasses import replace

import polars as pl
import pytest
from sweeps import findings, parting, report, sweep

from redline.analysis.cautions import cautions
from redline.analysis.findings import Design, find
from redline.report.colours import VARIABLES
from redline.report.figures import figures
from redline.report.page import html, write
from redline.study.spec import default_analysis

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'"


@pytest.fixture(scope="module")
def page():
    return html(report(), figures(findings()))


def without_library(page):
    return re.sub(r'<script type="text/plain" id="library">.*?</script>', "", page, flags=re.S)


def text_of(page):
    """What a reader sees, without scripts, styles and data."""
    bare = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", bare))


def data_of(page):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    return json.loads(found.group(1))


def with_cautions(**options):
    made = report(**options)
    return text_of(html(replace(made, warnings=cautions(made.findings)), []))


def test_the_verdict_comes_first(page):
    text = text_of(page)
    assert text.index("When is QK-norm needed?") < text.index("What dropping QK-norm costs")
    assert "From 0.03 you need it." in text


def test_each_hypothesis_stands_with_its_verdict_its_numbers_and_what_would_decide(page):
    """An undecided one is as large as a supported one."""
    cards = re.findall(r'<article class="claim (\w+)">(.*?)</article>', page, re.S)
    assert [re.search(r"H\d", text).group() for _, text in cards] == ["H1", "H2", "H3"]
    for verdict, text in cards:
        assert f'<span class="standing">{verdict}</span>' in text
        assert ("What would decide:" in text) == (verdict == "undecided")
    assert "mean delta at low LR" in cards[0][1]


def test_nothing_is_fetched(page):
    outside = without_library(page)
    urls = re.findall(r'(?:src|href|url|@import)\s*[=(]\s*["\']?([^"\'\s>)]+)', outside)
    assert all(url.startswith(("#", "data:", "var(")) for url in urls), urls
    known = re.sub(r"http://www\.w3\.org/|https://vega\.github\.io/schema", "", outside)
    assert not re.findall(r"https?://[^\s\"']*", known)


def test_every_colour_variable_has_a_value_in_light_and_dark(page):
    style = re.search(r"<style>(.*?)</style>", page, re.S).group(1)
    light, dark = re.findall(r":root \{([^}]*--ink[^}]*)\}", style)
    for name in VARIABLES.values():
        assert f"--{name}:" in light
        assert f"--{name}:" in dark


def test_the_light_page_has_the_colours_of_the_files(page):
    light = re.search(r":root \{([^}]*)\}", page).group(1)
    for colour, name in VARIABLES.items():
        if name != "muted":
            assert f"--{name}: {colour};" in light


def test_text_of_other_people_shows_as_text():
    made = replace(
        report(title=EVIL),
        warnings=[EVIL],
        provenance=[(EVIL, EVIL)],
        text=EVIL,
        facts=[(EVIL, "1")],
    )
    page = without_library(html(made, []))
    assert "<script>alert" not in page
    assert "<img" not in page
    assert text_of(page).count("&lt;script&gt;alert(1)") >= 5


def test_a_trial_name_of_other_people_cannot_leave_its_data():
    measured, design = sweep()
    measured = replace(
        measured, trials=measured.trials.with_columns(pl.lit(EVIL).alias("group.note"))
    )
    design = Design(design.trials.with_columns(pl.lit(EVIL).alias("group.note")), None)
    made = replace(report(), findings=find(measured, design, default_analysis()))
    page = html(made, [])
    assert "<script>alert" not in page
    assert data_of(page)["trials"]["shared"]["group.note"] == EVIL


def test_the_panel_of_a_trial_has_its_settings_results_and_command(page):
    trials = data_of(page)["trials"]
    first = trials["each"]["0" * 16]
    assert first["title"] == "off, n_layer 2, peak LR 0.001, seed 0"
    assert first["command"] == f"redline run study.toml --store replica --only {'0' * 16}"
    assert first["results"]["init_loss"] == "5.5"
    assert trials["shared"]["n_embd"] == "64"
    assert trials["shared"]["token_sha256"] == "a" * 64


def test_a_page_is_the_same_bytes_each_time():
    made = report()
    assert html(made, figures(made.findings)) == html(made, figures(made.findings))


def test_a_report_is_a_page_and_files_beside_it(tmp_path):
    page = write(report(), tmp_path, "mine")
    assert page == tmp_path / "mine.html"
    assert sorted(p.name for p in (tmp_path / "mine" / "figures").iterdir()) == [
        f"{name}.{suffix}"
        for name in ("entropy", "loss", "map", "max-logit", "outliers", "steps")
        for suffix in ("png", "svg")
    ]
    assert (tmp_path / "mine" / "tables" / "deltas.csv").exists()


def test_nothing_finished_is_a_page_that_says_so():
    text = with_cautions(loss=lambda *_: None)
    assert "No seed has finished in both arms." in text
    assert "0 of 30 trials have a result. Missing: off, n_layer 2, peak LR 0.001, seed 0;" in text


def test_case_a11_one_seed_is_indicative_and_decides_nothing():
    """A11 (senpai#1722): a conclusion was drawn from one run, though repeats differ as much.

    With one seed in a cell the head says so, there is no spread, and no rate is called needed.
    """
    text = with_cautions(n_seed=1)
    assert "One seed in every cell: all that follows is indicative." in text
    assert "Indicative only: one seed has no spread and carries no verdict." in text
    assert "±" not in text
    assert "you need" not in text
    assert "you can drop" not in text


@pytest.mark.parametrize("name", ["token_sha256", "tokenizer_sha256"])
def test_case_d08_case_a12_two_texts_or_tokenizers_are_shown_apart(name):
    """D08 (nanoGPT#10): the hosted corpus changed under a name. A12 (tinker-cookbook#823): losses
    per token were compared across tokenizers.

    A loud sentence, two settings, and no picture that holds both.
    """
    measured, design = sweep()
    half = pl.when(pl.col("seed") == 0).then(pl.lit("c" * 64)).otherwise(name).alias(name)
    measured = replace(measured, trials=measured.trials.with_columns(half))
    found = find(measured, design, default_analysis())
    text = text_of(html(replace(report(), findings=found, warnings=cautions(found)), []))
    assert f"The trials differ in {name}: they are shown apart and never pooled." in text
    drawn = [f for f in figures(found) if f.name == "loss"]
    assert len(drawn) == 2
    for figure in drawn:
        hrefs = {
            m["href"]
            for p in figure.panels
            for m in p.chart.to_dict()["layer"][2]["data"]["values"]
            if m["href"]
        }
        seeds = set(found.trials.filter(control=figure.control)["seed"])
        assert len(hrefs) == 10 * len(seeds)
        assert seeds in ({0}, {1, 2})


def test_case_g06_results_of_two_numeric_settings_are_never_pooled():
    """G06 (pytorch#171861): compiled bf16 gave NaN on one kind of chip, and was charted as physics.

    Device and precision are settings: the page says that they differ and keeps them apart.
    """
    measured, design = sweep()
    device = pl.when(pl.col("seed") == 0).then(pl.lit("mps")).otherwise("device").alias("device")
    measured = replace(measured, trials=measured.trials.with_columns(device))
    design = replace(design, trials=design.trials.with_columns(device))
    found = find(measured, design, default_analysis())
    assert found.cells["control"].n_unique() == 2
    assert cautions(found)[0].startswith("The trials differ in device: they are shown apart")


def test_case_t26_two_seeds_with_one_loss_are_pointed_at():
    """T26 (transformers#31818): a seed option was dropped in a refactor and did nothing."""
    text = with_cautions(loss=lambda arm, n, rate, seed: parting(arm, n, rate, max(seed, 1)))
    assert (
        "Seeds 1 and 2" not in text
        and "Seeds 0 and 1 of off, n_layer 2, peak LR 0.001 end at one loss to the last digit"
        in text
    )
    assert "end at one loss" not in with_cautions()


def test_case_s09_case_t27_a_hole_is_named_and_in_no_number():
    """S09 (wandb#1787): a grid with holes was called complete. T27 (senpai#965): trials that a
    clock had stopped at 90 % of their schedule were compared with whole ones.

    A trial without a result, stopped by time or never begun, is missing: named, marked, in no mean.
    """

    def loss(arm, n, rate, seed):
        return None if (arm, rate, seed) == ("on", 1e-2, 1) else parting(arm, n, rate, seed)

    text = with_cautions(loss=loss)
    assert "29 of 30 trials have a result. Missing: on, n_layer 2, peak LR 0.01, seed 1." in text
    found = findings(loss=loss)
    assert found.cells.filter(arm="on", peak_lr=1e-2)["n_finished"].item() == 2
    assert found.deltas.filter(peak_lr=1e-2)["n_pair"].item() == 2
    assert found.sensitivities.filter(arm="on")["left_out"].item().to_list() == [1]


def test_exact_copies_are_counted():
    measured, design = sweep()
    twice = replace(measured, trials=pl.concat([measured.trials, measured.trials[:2]]))
    found = find(twice, design, default_analysis())
    assert found.n_duplicate == 2
    assert "2 rows are exact copies of others and count once." in cautions(found)


def test_rates_that_are_nearly_one_are_pointed_at():
    found = findings(rates=(1e-3, 1.0000000474974513e-3, 1e-2))
    assert "nearly the same" in cautions(found)[-1]


def test_a_diverged_sweep_is_a_page():
    text = with_cautions(loss=lambda *_: math.nan)
    assert "none: below 0.001 (lowest tested)" in text
    assert "non_finite" in text


def test_one_arm_alone_is_a_page():
    assert "only on and nothing to compare with" in with_cautions(arms=("on",))


def test_measured_without_series_has_no_rule_of_curves():
    made = report()
    bare = replace(made, series=made.series.clear(), probes=made.probes.clear())
    assert "Curves are raw" not in html(bare, [])
