import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.analysis.comparable import planned
from redline.analysis.grid import expected_trials
from redline.analysis.headline import headlines
from redline.analysis.outcome import labels, outcomes
from redline.analysis.summary import cells

NAN = math.nan


@pytest.fixture
def table(series, probes, trial, analysis):
    """Trials, probes and the (name, trial) that are expected -> cells."""

    def run(trials, rows=(), expected=None):
        judged = outcomes(trials, series("none", loss=[]), probes(), analysis).join(
            headlines(trials, probes(rows)), on="trial_id", how="left"
        )
        plan = planned(expected) if expected else trials
        return cells(judged, expected_trials(plan, judged), analysis)

    return run


def logits(seed, early, running):
    name = {"trial_id": f"off-2-0.01-{seed}", "layer": 0, "entropy": 1.0 + seed}
    return [name | {"step": 8, "max_logit": early}, name | {"step": 80, "max_logit": running}]


def test_a_cell_by_hand_with_its_dead_seed_in_the_mean(table, sweep):
    rows = [row for seed in range(3) for row in logits(seed, 1.0 + seed, 20.0 * seed**3)]
    cell = table(sweep({("off", 0.01): [2.0, 2.2, None]}), rows).row(0, named=True)
    assert cell["n_finished"] == cell["n_expected"] == 3
    assert cell["mean_loss"] == pytest.approx((2.0 + 2.2 + 5.5) / 3)
    assert cell["loss_sd"] == pytest.approx(1.965, abs=1e-3)
    assert cell["mean_loss_low"] == pytest.approx(3.2333 - 1.965, abs=1e-3)
    assert cell["mean_loss_high"] == pytest.approx(3.2333 + 1.965, abs=1e-3)
    assert cell["n_d0"] == cell["n_non_finite"] == cell["n_diverged"] == cell["n_unstable"] == 1
    assert cell["n_slow"] + cell["n_stable"] == 2
    assert cell["early_max_logit"] == 2.0
    assert (cell["early_max_logit_low"], cell["early_max_logit_high"]) == (1.0, 3.0)
    assert cell["running_max_logit"] == 20.0
    assert cell["min_entropy"] == 2.0


def test_one_seed_has_no_spread(table, sweep):
    out = table(sweep({("off", 0.01): [2.0], ("on", 0.01): [1.9]}))
    assert out["loss_sd"].to_list() == [None, None]
    assert out["mean_loss_low"].to_list() == out["mean_loss_high"].to_list() == [None, None]


def test_a_lost_logit_is_the_highest_of_its_cell(table, sweep):
    rows = [*logits(0, 1.0, 5.0), *logits(1, 1.0, NAN), *logits(2, 1.0, 7.0)]
    cell = table(sweep({("off", 0.01): [2.0] * 3}), rows).row(0, named=True)
    assert cell["running_max_logit_low"] == 5.0
    assert math.isnan(cell["running_max_logit_high"])


def test_a_cell_that_has_not_run_keeps_its_row(table, sweep, trial):
    expected = [
        ("off-2-0.01-0", trial()),
        ("todo0", trial(train__peak_lr=0.1)),
        ("todo1", trial(seed=1)),
    ]
    out = table(sweep({("off", 0.01): [2.0]}), expected=expected)
    rows = {row["peak_lr"]: row for row in out.iter_rows(named=True)}
    assert (rows[0.01]["n_finished"], rows[0.01]["n_expected"]) == (1, 2)
    assert (rows[0.1]["n_finished"], rows[0.1]["n_expected"]) == (0, 1)
    assert rows[0.1]["mean_loss"] is None
    assert rows[0.1]["n_d0"] == 0


def test_a_missing_trial_stands_with_its_finished_siblings(table, sweep, trial):
    expected = [
        ("off-2-0.01-0", trial(seed=0)),
        ("todo", trial(seed=1)),
        ("another setting", trial(train__z_loss=1e-4)),
    ]
    out = table(sweep({("off", 0.01): [2.0]}), expected=expected)
    assert out.select("control", "n_finished", "n_expected").rows() == [
        ("", 1, 2),
        ("z_loss=0.0001", 0, 1),
    ]


def test_nothing_finished_is_a_table_of_expected_cells(table, sweep, trial):
    none = sweep({("off", 0.01): [2.0]}).clear()
    out = table(none, expected=[("a", trial("off")), ("b", trial("on"))])
    assert out["n_expected"].to_list() == [1, 1]
    assert out["n_finished"].to_list() == [0, 0]


def test_a_trial_outside_the_study_keeps_its_row_and_was_not_expected(table, sweep, trial):
    out = table(sweep({("off", 0.01): [2.0, 2.1]}), expected=[("off-2-0.01-0", trial())])
    assert out.select("n_finished", "n_expected").rows() == [(2, 1)]
    out = table(sweep({("off", 0.1): [2.0]}), expected=[("off-2-0.01-0", trial())])
    assert out.select("peak_lr", "n_finished", "n_expected").rows() == [(0.01, 0, 1), (0.1, 1, 0)]


def test_two_corpora_are_two_cells(table, row, frame, trial):
    old = [row(2.0), row(2.0, arm="on")]
    new = [item | {"token_sha256": "c" * 64, "trial_id": f"new{i}"} for i, item in enumerate(old)]
    expected = [(name, trial(name[:3].strip("-"))) for name in ("off-2-0.01-0", "on-2-0.01-0")]
    out = table(frame([*old, *new]), expected=expected)
    assert out["n_finished"].to_list() == [1, 1, 1, 1]
    assert out.filter(control="token_sha256=cccccccccccc")["n_expected"].sum() == 0


def test_outcomes_that_noise_decides_are_counted_as_such(table, sweep):
    losses = {("off", 1e-3): [2.0, 2.5, 2.0], ("off", 1e-2): [4.0, 2.4, 2.9], ("on", 1e-3): [2.0]}
    cell = table(sweep(losses)).filter(arm="off", peak_lr=1e-2).row(0, named=True)
    assert cell["n_below_noise"] == 3
    assert cell["n_stable"] == 0
    assert cell["below_noise_0.3"]


def test_a_model_that_is_non_finite_before_its_first_step_is_counted_and_in_no_mean(
    table, frame, row
):
    dead = row(None, seed=1) | {"init_loss": NAN, "non_finite": "loss", "non_finite_step": 0}
    cell = table(frame([row(2.0), dead])).row(0, named=True)
    assert (cell["mean_loss"], cell["n_d0"], cell["n_finished"]) == (2.0, 1, 2)
    assert cell["n_never_began"] == 1


@given(st.lists(st.none() | st.floats(0.5, 9.0), min_size=1, max_size=6))
def test_a_d0_never_leaves_a_mean(sweep, analysis, series, probes, losses):
    """Each seed counts once: at its loss, at 5.5 where it lies above that, at 5.5 where it died."""
    trials = sweep({("off", 0.01): losses})
    judged = outcomes(trials, series("none", loss=[]), probes(), analysis)
    judged = judged.join(headlines(trials, probes()), on="trial_id")
    cell = cells(judged, expected_trials(trials, judged), analysis).row(0, named=True)
    counted = [5.5 if loss is None else min(loss, 5.5) for loss in losses]
    assert cell["mean_loss"] == pytest.approx(sum(counted) / len(counted))
    assert cell["n_finished"] == len(losses)
    assert cell["n_d0"] == losses.count(None)
    assert sum(cell[f"n_{label}"] for label in labels(analysis)) == len(losses)


def test_a_median_over_seeds_lies_between_the_middle_two(table, sweep):
    values = [40.0, 1.0, 800.0, 2.0]
    rows = [row for seed, value in enumerate(values) for row in logits(seed, 0.5, value)]
    cell = table(sweep({("off", 0.01): [2.0] * 4}), rows).row(0, named=True)
    assert cell["running_max_logit"] == (2.0 + 40.0) / 2
