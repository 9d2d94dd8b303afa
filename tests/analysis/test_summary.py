import math

import polars as pl
import pytest

from redline.analysis.headline import headlines
from redline.analysis.outcome import outcomes
from redline.analysis.parting import where_the_arms_part
from redline.analysis.summary import cells, paired_deltas
from redline.files import UserError


@pytest.fixture
def tables(sweep, series, probes, trial, analysis):
    """Losses, and seeds expected beyond those that finished -> (cells, deltas, sentences)."""

    def run(losses, missing=(), rows=(), **changes):
        trials = sweep(losses, **changes)
        table = outcomes(trials, series("none", loss=[]), probes(), analysis)
        done = [
            (f"{arm}-2-{lr:g}-{seed}", (arm, lr, seed))
            for (arm, lr), of_seed in losses.items()
            for seed in range(len(of_seed))
        ]
        expected = [
            (name, trial(arm, train__peak_lr=lr, seed=seed, **changes))
            for name, (arm, lr, seed) in [*done, *((f"todo{m}", m) for m in missing)]
        ]
        summary = cells(table, headlines(trials, probes(rows)), expected, analysis)
        deltas = paired_deltas(table)
        return summary, deltas, where_the_arms_part(summary, deltas, analysis)

    return run


def logits(seed, early, running):
    name = {"trial_id": f"off-2-0.01-{seed}", "layer": 0, "entropy": 1.0 + seed}
    return [name | {"step": 8, "max_logit": early}, name | {"step": 80, "max_logit": running}]


def test_a_cell_by_hand_with_its_dead_seed_in_the_mean(tables):
    rows = [row for seed in range(3) for row in logits(seed, 1.0 + seed, 20.0 * seed**3)]
    summary, _, _ = tables({("off", 0.01): [2.0, 2.2, None]}, rows=rows)
    cell = summary.row(0, named=True)
    assert cell["n_finished"] == cell["n_expected"] == 3
    assert cell["mean_loss"] == pytest.approx((2.0 + 2.2 + 5.5) / 3)
    assert cell["loss_sd"] == pytest.approx(1.965, abs=1e-3)
    assert cell["n_d0"] == cell["n_non_finite"] == cell["n_diverged"] == 1
    assert cell["n_slow"] + cell["n_stable"] == 2
    assert cell["early_max_logit"] == 2.0
    assert cell["running_max_logit"] == 20.0
    assert cell["min_entropy"] == 2.0


def test_one_seed_has_no_spread(tables):
    summary, deltas, _ = tables({("off", 0.01): [2.0], ("on", 0.01): [1.9]})
    assert summary["loss_sd"].to_list() == [None, None]
    assert deltas["delta_sd"].to_list() == [None]


def test_a_cell_that_has_not_run_keeps_its_row(tables):
    summary, _, _ = tables({("off", 0.01): [2.0]}, missing=[("off", 0.1, 0), ("off", 0.01, 1)])
    rows = {row["peak_lr"]: row for row in summary.iter_rows(named=True)}
    assert (rows[0.01]["n_finished"], rows[0.01]["n_expected"]) == (1, 2)
    assert (rows[0.1]["n_finished"], rows[0.1]["n_expected"]) == (0, 1)
    assert rows[0.1]["mean_loss"] is None


def test_a_missing_trial_stands_with_its_finished_siblings(sweep, series, probes, trial, analysis):
    trials = sweep({("off", 0.01): [2.0]})
    table = outcomes(trials, series("none", loss=[]), probes(), analysis)
    expected = [
        ("off-2-0.01-0", trial(seed=0)),
        ("todo", trial(seed=1)),
        ("another setting", trial(train__z_loss=1e-4)),
    ]
    summary = cells(table, headlines(trials, probes()), expected, analysis)
    assert summary.select("control", "n_finished", "n_expected").rows() == [
        ("", 1, 2),
        ("z_loss=0.0001", 0, 1),
    ]


def test_nothing_finished_is_a_table_of_expected_cells(sweep, series, probes, trial, analysis):
    none = sweep({("off", 0.01): [2.0]}).clear()
    table = outcomes(none, series("none", loss=[]), probes(), analysis)
    expected = [("a", trial("off")), ("b", trial("on"))]
    summary = cells(table, headlines(none, probes()), expected, analysis)
    assert summary["n_expected"].to_list() == [1, 1]
    assert "No seed has finished" in where_the_arms_part(summary, paired_deltas(table), analysis)


def test_a_delta_is_plain_minus_arm_over_the_shared_seeds(tables):
    losses = {("off", 0.01): [2.0, 3.0, 9.0], ("on", 0.01): [1.5, 2.9], ("l2", 0.01): [None]}
    _, deltas, _ = tables(losses)
    rows = {row["arm"]: row for row in deltas.iter_rows(named=True)}
    assert rows["on"]["n_pair"] == 2
    assert rows["on"]["mean_delta"] == pytest.approx(0.3)
    assert rows["on"]["min_delta"] == pytest.approx(0.1)
    assert rows["on"]["delta_sd"] == pytest.approx(0.4 / math.sqrt(2))
    assert rows["l2"]["mean_delta"] == pytest.approx(2.0 - 5.5)


def test_settings_are_never_paired_with_each_other(row, frame, series, probes, analysis):
    trials = frame([row(2.0), row(1.0, arm="on", train__z_loss=1e-4)])
    table = outcomes(trials, series("none", loss=[]), probes(), analysis)
    assert paired_deltas(table).is_empty()


PART = {
    ("off", 0.001): [2.5, 2.5],
    ("on", 0.001): [2.45, 2.5],
    ("off", 0.01): [2.0, 2.0],
    ("on", 0.01): [1.98, 2.0],
    ("off", 0.1): [None, 2.6],
    ("on", 0.1): [2.0, 2.05],
}


def test_where_the_arms_part_says_both_rates_and_what_fails(tables):
    said = tables(PART)[2]
    assert said == (
        "n_layer 2, off against on: Up to peak LR 0.01 they stay within 0.1 nat. "
        "From 0.1, off is worse by more than 0.1 nat in every seed (+2.025 there). "
        "At 0.1: off 1 non_finite, 1 degraded_0.3; on 2 stable. "
        "off is last stable in most seeds at 0.01. "
        "on is stable in most seeds up to >= 0.1 (highest tested). "
        "Undecided: two seeds cannot carry a verdict, it needs more seeds."
    )


def test_a_mean_that_one_seed_carries_is_said_to_be_a_mean(tables):
    said = tables(PART | {("off", 0.1): [None, 2.1]})[2]
    assert "in the mean (+1.775 there)" in said


@pytest.mark.parametrize("n_seed", [1, 2])
def test_one_or_two_seeds_carry_no_verdict(tables, n_seed):
    said = tables({cell: of_seed[:n_seed] for cell, of_seed in PART.items()})[2]
    assert ("indicative" if n_seed == 1 else "Undecided") in said
    assert not any(word in said for word in ("necessary", "needed", "supported", "±", "+-"))


def test_three_seeds_leave_the_decision_to_the_tests(tables):
    assert tables({("off", 0.01): [2.0] * 3, ("on", 0.01): [2.0] * 3})[2].endswith(
        "Means over 3 seeds; the paired tests decide."
    )


def test_arms_that_never_part(tables):
    losses = {(arm, lr): [2.0, 2.0] for arm in ("off", "on") for lr in (0.001, 0.3)}
    said = tables(losses)[2]
    assert "off does not fall behind up to 0.3." in said
    assert "off is stable in most seeds up to >= 0.3 (highest tested)." in said
    assert "From" not in said


def test_case_a02_nothing_stable_is_a_bound_and_no_number(tables):
    """A02 (Lightning-AI/pytorch-lightning#10557): no candidate was left, and None became an LR."""
    losses = {(arm, lr): [None, None] for arm in ("off", "on") for lr in (1e-4, 0.01)}
    said = tables(losses)[2]
    assert "off has no stable peak LR: below 0.0001 (lowest tested)." in said
    assert "on has no stable peak LR: below 0.0001 (lowest tested)." in said
    assert "does not fall behind" not in said


def test_beyond_the_range_of_the_arm_a_difference_means_nothing(tables):
    losses = PART | {("off", 0.3): [None, None], ("on", 0.3): [5.0, None]}
    said = tables(losses)[2]
    assert "From 0.1," in said
    assert "on is last stable in most seeds at 0.1." in said
    # At the top the plain arm is the better one, and still nothing there moves the range.
    losses |= {("off", 0.3): [5.4, 5.4], ("on", 0.3): [None, None]}
    assert "From 0.1," in tables(losses)[2]


def test_an_arm_that_hurts_is_said_to_hurt(tables):
    said = tables({("off", 0.01): [2.0, 2.0], ("on", 0.01): [2.3, 2.3]})[2]
    assert "on is worse by more than 0.1 nat at 0.01." in said
    assert "stay within" not in said


def test_parting_at_the_lowest_rate_is_said(tables):
    said = tables({("off", 0.01): [2.3, 2.3], ("on", 0.01): [2.0, 2.0]})[2]
    assert "From 0.01, the lowest tested, off is worse" in said


def test_a_hole_is_named(tables):
    said = tables(PART, missing=[("off", 0.3, 0), ("on", 0.01, 2)])[2]
    assert "Missing: off at 0.3 (0 of 1 seeds), on at 0.01 (2 of 3 seeds)." in said


def test_one_arm_has_nothing_to_compare_with(tables):
    assert tables({("on", 0.01): [2.0]})[2] == "n_layer 2: only on and nothing to compare with."


def test_no_shared_seed_is_said(tables):
    said = tables({("off", 0.01): [2.0], ("on", 0.1): [2.0]})[2]
    assert "No seed has finished in both arms." in said


def test_two_corpora_are_two_lines(row, frame, series, probes, trial, analysis):
    old = [row(2.0), row(2.0, arm="on")]
    new = [item | {"token_sha256": "c" * 64, "trial_id": f"new{i}"} for i, item in enumerate(old)]
    trials = frame([*old, *new])
    table = outcomes(trials, series("none", loss=[]), probes(), analysis)
    expected = [(name, trial(name[:3].strip("-"))) for name in ("off-2-0.01-0", "on-2-0.01-0")]
    summary = cells(table, headlines(trials, probes()), expected, analysis)
    assert summary["n_finished"].to_list() == [1, 1, 1, 1]
    assert summary.filter(pl.col("control").str.contains("ccc"))["n_expected"].sum() == 0
    assert where_the_arms_part(summary, paired_deltas(table), analysis).count("\n") == 1


def test_a_rate_in_the_middle_where_the_plain_arm_fails_is_not_forgotten(tables):
    losses = {
        ("off", 1e-3): [2.0] * 3,
        ("off", 1e-2): [2.35] * 3,
        ("off", 3e-2): [2.30] * 3,
        ("on", 1e-3): [2.0] * 3,
        ("on", 1e-2): [2.0] * 3,
        ("on", 3e-2): [2.25] * 3,
    }
    said = tables(losses)[2]
    assert "off is worse by more than 0.1 nat at 0.01, and not at 0.03." in said
    assert "does not fall behind" not in said
    assert "off is stable in most seeds up to >= 0.03 (highest tested), but not at 0.01." in said


def test_outcomes_that_noise_decides_are_marked(tables):
    losses = {("off", 1e-3): [2.0, 2.5, 2.0], ("off", 1e-2): [4.0, 2.4, 2.9], ("on", 1e-3): [2.0]}
    summary, _, said = tables(losses)
    assert summary.filter(arm="off", peak_lr=1e-2)["n_below_noise"].item() == 3
    assert summary.filter(arm="off", peak_lr=1e-2)["n_stable"].item() == 0
    assert "Delta 0.3 is below seed noise in off: no verdict." in said


def test_a_budget_too_short_for_the_bigram_line_is_said_once(tables):
    short = {("off", 1e-3): [3.9, 3.9], ("on", 1e-3): [3.9, 3.9]}
    assert tables(short)[2].count("too short for the bigram line") == 1
    assert "too short" not in tables(PART)[2]


def test_a_model_that_is_non_finite_before_its_first_step_is_named_and_in_no_mean(
    frame, row, series, probes, trial, analysis
):
    dead = row(None, seed=1) | {"init_loss": math.nan, "non_finite": "loss", "non_finite_step": 0}
    trials = frame([row(2.0), dead, row(2.0, arm="on"), row(2.1, arm="on", seed=1)])
    table = outcomes(trials, series("none", loss=[]), probes(), analysis)
    expected = [(name, trial("off")) for name in trials["trial_id"][:1]]
    summary = cells(table, headlines(trials, probes()), expected, analysis)
    off = summary.filter(arm="off").row(0, named=True)
    assert (off["mean_loss"], off["n_d0"], off["n_finished"]) == (2.0, 1, 2)
    deltas = paired_deltas(table)
    assert deltas["n_pair"].to_list() == [1]
    said = where_the_arms_part(summary, deltas, analysis)
    assert "1 of off at 0.01 non-finite before the first step: in no mean." in said


def test_a_pair_that_read_other_batches_is_refused(frame, row, series, probes, analysis):
    trials = frame([row(2.0), row(1.9, arm="on")])
    table = outcomes(trials, series("none", loss=[]), probes(), analysis)
    same = table.with_columns(pl.lit("a").alias("batch_sha256"))
    assert paired_deltas(same).height == 1
    other = same.with_columns(pl.col("arm").alias("batch_sha256"))
    with pytest.raises(UserError, match="differs in batch_sha256"):
        paired_deltas(other)


def test_arms_that_learned_nothing_are_not_called_stable(tables):
    said = tables({("off", 1e-3): [5.4] * 3, ("on", 1e-3): [5.4] * 3})[2]
    assert said.startswith("n_layer 2, off against on: Not meaningful: the best mean loss, 5.400,")
    assert "stable in most seeds" not in said
