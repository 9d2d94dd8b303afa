import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redline.analysis.robustness import REGISTERED

RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
ON = (2.2, 2.0, 2.02, 2.05, 2.1)
GAP = (0.0, 0.01, 0.03, 0.15, 1.0)


@pytest.fixture(scope="module")
def losses():
    """Four seeds: droppable up to 0.01, needed from 0.03, off fails at 0.1."""
    seeds = range(4)
    on = {r: [loss + 0.002 * s for s in seeds] for r, loss in zip(RATES, ON, strict=True)}
    off = {
        r: [on[r][s] + gap + 0.001 * ((3 * s + k) % 4) for s in seeds]
        for k, (r, gap) in enumerate(zip(RATES, GAP, strict=True))
    }
    return {("off", r): v for r, v in off.items()} | {("on", r): v for r, v in on.items()}


@pytest.fixture(scope="module")
def found(findings, sweep, losses):
    return findings(sweep(losses))


@pytest.fixture(scope="module")
def table(found):
    return {row["change"]: row for row in found.robustness.iter_rows(named=True)}


def test_the_registered_analysis_comes_first_and_moves_nothing(found, table):
    first = found.robustness.row(0, named=True)
    assert first["change"] == REGISTERED
    assert first["moves"] == ""
    bounds = found.boundaries.row(0, named=True)
    assert (first["droppable_to"], first["needed_from"]) == (0.01, 0.03)
    assert (bounds["droppable_to"], bounds["needed_from"]) == (0.01, 0.03)
    verdicts = {h.name: h.verdict for h in found.hypotheses}
    assert {name: first[name] for name in verdicts} == verdicts


def test_every_kind_of_change_is_there(table):
    assert set(table) == {
        REGISTERED,
        "only diverged counts as unstable",
        "unstable from delta 0.1 on",
        "unstable from delta 0.5 on",
        "reference common to both arms",
        "m_nec 0.05",
        "m_nec 0.2",
        "m_eq 0.025",
        "m_eq 0.1",
        "prior scales times 0.5",
        "prior scales times 2",
        "losses capped at the bigram loss",
        "best LR one step lower",
        "best LR one step higher",
        *(f"without seed {seed}" for seed in range(4)),
        *(f"without peak LR {rate:g}" for rate in RATES),
    }


def test_margins_move_the_rule_and_it_is_said_what_moved(table):
    assert table["m_nec 0.2"]["needed_from"] == 0.1
    assert "needed" in table["m_nec 0.2"]["moves"]
    assert "droppable" not in table["m_nec 0.2"]["moves"]
    assert table["m_eq 0.025"]["droppable_to"] == 0.003
    assert "droppable" in table["m_eq 0.025"]["moves"]


def test_dropping_a_trial_set_is_analysing_without_it(found, findings, sweep, losses, table):
    fewer = {key: seeds[1:] for key, seeds in losses.items()}
    rest = findings(sweep(fewer)).boundaries.row(0, named=True)
    row = table["without seed 0"]
    assert (row["droppable_to"], row["needed_from"]) == (rest["droppable_to"], rest["needed_from"])
    without = {key: seeds for key, seeds in losses.items() if key[1] != 3e-2}
    rest = findings(sweep(without)).boundaries.row(0, named=True)
    row = table["without peak LR 0.03"]
    assert (row["droppable_to"], row["needed_from"]) == (rest["droppable_to"], rest["needed_from"])


def test_a_cap_at_the_bigram_loss_hides_what_lies_above_it(findings, sweep, losses):
    """Bigrams reach 4.0: without the cap off counts at 5.5 where it left the numbers."""
    died = losses | {("off", 0.1): [None] * 4}
    found = findings(sweep(died))
    capped = found.robustness.filter(change="losses capped at the bigram loss")
    assert capped["needed_from"].to_list() == [0.03]
    delta = found.deltas.filter(peak_lr=0.1)["mean_delta"].item()
    assert delta == pytest.approx(5.5 - 2.103, abs=1e-6)


def test_the_tier_decides_what_the_range_is(findings, sweep, losses):
    """With QK-norm 0.1 is 0.25 above its best: unstable from delta 0.1, stable at 0.3."""
    higher = losses | {("on", 0.1): [2.25, 2.26, 2.25, 2.26], ("off", 0.1): [3.2] * 4}
    found = findings(sweep(higher)).robustness
    rows = {row["change"]: row for row in found.iter_rows(named=True)}
    assert rows[REGISTERED]["needed_from"] == 0.03
    assert rows["unstable from delta 0.1 on"]["limit_of_arm"] != rows[REGISTERED]["limit_of_arm"]


def test_the_best_lr_moves_the_windows_of_h1_and_stays_in_its_grid(table):
    for word in ("lower", "higher"):
        assert table[f"best LR one step {word}"]["droppable_to"] == 0.01
    # One step higher, 0.003 is low LR and 0.03 high; one lower, no rate is below half of the best.
    assert table["best LR one step lower"]["H1"] == "undecided"


def test_an_axis_of_two_is_not_thinned(findings, sweep, losses):
    two = {key: seeds[:2] for key, seeds in losses.items() if key[1] in (3e-3, 3e-2)}
    changes = findings(sweep(two)).robustness["change"]
    assert not changes.str.starts_with("without").any()


def test_without_a_comparison_there_is_no_row(findings, sweep, losses):
    alone = {key: seeds for key, seeds in losses.items() if key[0] == "off"}
    assert findings(sweep(alone)).robustness.is_empty()


def test_a_large_table_keeps_its_base_setting(row, frame, findings, monkeypatch):
    monkeypatch.setattr("redline.analysis.findings.MAX_ROBUST", 10)
    rows = [
        row(2.0 + 0.01 * seed, arm=arm, seed=seed, train__peak_lr=rate, train__z_loss=z)
        for arm in ("off", "on")
        for rate in (1e-3, 1e-2)
        for seed in (0, 1)
        for z in (0.0, 1e-4)
    ]
    found = findings(frame(rows))
    assert found.cells["control"].n_unique() == 2
    assert found.robustness["control"].n_unique() == 1
    assert isinstance(found.tables["robustness"], pl.DataFrame)


@settings(max_examples=10)
@given(
    st.lists(
        st.lists(st.none() | st.floats(1.5, 6.0), min_size=3, max_size=3), min_size=10, max_size=10
    ),
    st.sets(st.integers(0, 29), max_size=28),
)
def test_no_sweep_crashes_it_and_its_first_row_is_the_analysis(findings, sweep, values, holes):
    cells = [(arm, rate) for arm in ("off", "on") for rate in RATES]
    design = sweep(dict(zip(cells, values, strict=True)))
    done = design.with_row_index().filter(~pl.col("index").is_in(list(holes))).drop("index")
    found = findings(done, design=design)
    first = found.robustness.filter(change=REGISTERED)
    keys = ("control", "n_layer", "arm", "droppable_to", "needed_from")
    assert first.select(keys).equals(found.boundaries.select(keys))
    for h in found.hypotheses:
        assert first[h.name].to_list() == [h.verdict]
