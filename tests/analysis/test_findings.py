"""Poisoned sweeps through the whole analysis: right tables and words, or one sentence."""

import math

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from redline.analysis.findings import Design, Measured, find
from redline.files import UserError

NAN, INF = math.nan, math.inf
RATES = (0.001, 0.01, 0.1)

# Three seeds that differ by chance, and a plain arm that loses 0.4 nat at the highest rate.
HEALTHY = {
    ("off", 0.001): [2.21, 2.23, 2.22],
    ("on", 0.001): [2.20, 2.23, 2.23],
    ("off", 0.01): [2.01, 2.03, 2.02],
    ("on", 0.01): [2.00, 2.03, 2.03],
    ("off", 0.1): [2.51, 2.53, 2.52],
    ("on", 0.1): [2.10, 2.13, 2.13],
}
RULE = "Up to peak LR 0.01 you can drop QK-norm. From 0.1 you need it."


@pytest.fixture
def healthy(sweep):
    return sweep(HEALTHY)


def poisoned(trials, name_of_row, **values):
    """The table with other values in one row."""
    here = pl.col("trial_id") == name_of_row
    return trials.with_columns(
        pl.when(here).then(pl.lit(value)).otherwise(pl.col(name)).alias(name)
        for name, value in values.items()
    )


def refusal(findings, trials, **options):
    """The one sentence with which a table is refused."""
    with pytest.raises(UserError) as caught:
        findings(trials, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def no_number_is_lost(found):
    """No NaN or infinity in a table of results: null is null, and a bound is a bound."""
    for name in ("cells", "deltas", "boundaries", "thresholds", "optima", "sensitivities"):
        table = found.result_tables[name]
        numbers = table.select(pl.selectors.float())
        assert (
            not numbers.select(pl.any_horizontal((~pl.all().is_finite()).any()))
            .to_series()
            .any(ignore_nulls=True)
        ), name


def test_a_healthy_sweep_has_its_rule_and_all_its_tables(healthy, findings):
    found = findings(healthy)
    (verdict,) = found.verdicts
    assert verdict.rule == RULE
    assert found.state == "18 of 18 trials have a result"
    assert (found.n_expected, found.n_duplicate, found.missing.height) == (18, 0, 0)
    assert set(found.tables) == {
        "trials",
        "missing",
        "cells",
        "deltas",
        "boundaries",
        "thresholds",
        "optima",
        "sensitivities",
        "steps",
        "survival",
        "mechanism",
        "hypotheses",
        "robustness",
    }
    assert found.cells.height == 6
    assert found.deltas.height == 3
    assert found.thresholds.height == 2 * 4
    no_number_is_lost(found)


@pytest.mark.parametrize("loss", [NAN, INF, -INF, None])
def test_case_a07_a_final_loss_beyond_numbers_is_a_d0_and_no_missing_row(healthy, findings, loss):
    """A07 (optuna/optuna#2809, #3205): SQL turned NaN into NULL, refused inf, and lost the trial.

    A final loss that is no number is a finished trial that diverged: it counts at its initial loss,
    and it is neither missing nor out of a mean.
    """
    reason = {"non_finite": "loss", "non_finite_step": 99, "steps_done": 99} if loss is None else {}
    found = findings(poisoned(healthy, "off-2-0.1-0", final_loss=loss, **reason))
    cell = found.cells.filter(arm="off", peak_lr=0.1).row(0, named=True)
    assert (cell["n_finished"], cell["n_d0"]) == (3, 1)
    assert cell["mean_loss"] == pytest.approx((5.5 + 2.53 + 2.52) / 3)
    assert found.missing.is_empty()
    assert found.deltas.filter(peak_lr=0.1)["n_pair"].item() == 3
    assert found.verdicts[0].rule == (
        "Up to peak LR 0.01 you can drop QK-norm. Above it: undecided."
    )
    no_number_is_lost(found)


def test_case_a07_an_infinite_logit_is_apart_from_one_that_was_not_measured(
    healthy, series, probes, analysis
):
    """A07: `inf`, `nan` and "missing" are three things, in a cell too."""

    def row(trial_id, value):
        return {"trial_id": trial_id, "step": 400, "layer": 0, "max_logit": value}

    rows = [row("on-2-0.1-0", 7.0), row("on-2-0.1-1", INF)]
    measured = Measured(healthy, series("none", loss=[]), probes(rows))
    found = find(measured, Design(healthy, None), analysis)
    by_id = {row["trial_id"]: row for row in found.trials.iter_rows(named=True)}
    assert by_id["on-2-0.1-0"]["running_max_logit"] == 7.0
    assert by_id["on-2-0.1-1"]["outcome"] == "non_finite"
    assert by_id["on-2-0.1-1"]["running_max_logit"] == INF
    assert by_id["on-2-0.1-2"]["running_max_logit"] is None
    assert by_id["on-2-0.1-2"]["outcome"] == "degraded_0.1"


@pytest.mark.parametrize("key", ["trial_id", "arm", "n_layer", "peak_lr", "seed"])
def test_case_a05_a_row_without_a_key_is_refused_by_name(healthy, findings, key):
    """A05 (PEtab-dev/PEtab#298): group-by dropped rows with a missing key without a word."""
    message = refusal(findings, poisoned(healthy, "off-2-0.01-1", **{key: None}), design=healthy)
    assert message.startswith(f"{key} is missing in 1 of the trials: ")


def test_case_a05_every_row_is_used_or_listed(healthy, findings):
    """A05: rows in = rows used + copies, and expected = there + missing."""
    copies = pl.concat([healthy, healthy.head(2)])
    found = findings(copies.filter(pl.col("trial_id") != "on-2-0.1-2"), design=healthy)
    assert found.trials.height + found.n_duplicate == copies.height - 1
    assert found.cells["n_finished"].sum() == found.trials.height
    assert found.n_expected == found.trials.height + found.missing.height


def test_a_column_that_is_missing_is_named(healthy, findings):
    message = refusal(findings, healthy.drop("final_loss"), design=healthy)
    assert message == "the table of trials lacks the column final_loss"


def test_exact_copies_count_once_and_change_no_table(healthy, findings):
    found = findings(pl.concat([healthy, healthy, healthy.head(1)]))
    assert found.n_duplicate == 19
    alone = findings(healthy)
    tables, others = found.result_tables, alone.result_tables
    for name in set(tables) - {"trials"}:
        assert_frame_equal(tables[name], others[name])
    assert found.verdicts == alone.verdicts


def test_copies_that_disagree_are_refused_with_both_rows(healthy, findings):
    other = healthy.filter(trial_id="off-2-0.1-0").with_columns(
        final_loss=pl.lit(2.9), trial_id=pl.lit("other")
    )
    message = refusal(findings, pl.concat([healthy, other]))
    assert message.startswith("one trial has different results in 2 of the trials: ")
    assert "(off-2-0.1-0)" in message
    assert "(other)" in message


def test_case_a10_a_trial_outside_the_study_is_shown_and_was_not_expected(healthy, findings):
    """A10 (marin-community/marin#2037): the folder held results of an older grid than the code's.

    An extra rate has a cell that says that none was expected, and makes up for nothing missing.
    """
    design = healthy.filter(pl.col("peak_lr") < 0.1)
    done = healthy.filter(pl.col("trial_id") != "on-2-0.01-2")
    found = findings(done, design=design)
    assert found.state == "11 of 12 trials have a result"
    assert found.missing["trial_id"].to_list() == ["on-2-0.01-2"]
    extra = found.cells.filter(peak_lr=0.1)
    assert extra["n_expected"].to_list() == [0, 0]
    assert extra["n_finished"].to_list() == [3, 3]


def test_case_a11_one_seed_gives_no_spread_and_no_verdict(sweep, findings):
    """A11 (wandb/senpai#1722): a conclusion from one run, whose scatter may equal the gap.

    There is a grid interval and a mean; no sd, no interval, no margin, no X and no Y.
    """
    found = findings(sweep({cell: of_seed[:1] for cell, of_seed in HEALTHY.items()}))
    (verdict,) = found.verdicts
    assert verdict.standing == "indicative"
    assert not any(word in str(verdict) for word in ("±", "need", "drop", "interval"))
    spreads = {
        "cells": ("loss_sd", "mean_loss_low", "mean_loss_high"),
        "deltas": ("delta_sd", "lower", "upper", "supported_margin"),
        "boundaries": ("droppable_to", "needed_from", "band_lower"),
        "thresholds": ("estimate_lr", "estimate_lower", "estimate_upper", "ed10_lr"),
        "sensitivities": ("lower", "upper", "difference_lower", "difference_upper"),
        "optima": ("own_best_loss", "own_best_sd", "own_delta"),
    }
    for name, columns in spreads.items():
        for column in columns:
            assert found.tables[name][column].null_count() == found.tables[name].height, column
    assert set(found.deltas["state"]) == {"undecided"}
    unstable = found.thresholds.filter(tier="unstable", arm="off").row(0, named=True)
    assert (unstable["lower_lr"], unstable["upper_lr"]) == (0.01, 0.1)


def test_two_seeds_give_intervals_and_no_verdict(sweep, findings):
    found = findings(sweep({cell: of_seed[:2] for cell, of_seed in HEALTHY.items()}))
    assert found.verdicts[0].standing == "undecided"
    assert found.deltas["lower"].null_count() == 0
    assert found.boundaries.select("droppable_to", "needed_from").row(0) == (None, None)


def test_case_a02_all_diverged_is_a_bound_in_every_table(sweep, findings):
    """A02 (Lightning-AI/pytorch-lightning#10557): no candidate was left, and None became an LR."""
    found = findings(sweep({cell: [None] * 3 for cell in HEALTHY}))
    assert set(found.thresholds["censored"]) == {"<"}
    assert set(found.thresholds["upper_lr"]) == {0.001}
    assert found.thresholds["lower_lr"].null_count() == found.thresholds.height
    assert found.thresholds["estimate_lr"].null_count() == found.thresholds.height
    assert set(found.deltas["state"]) == {"beyond the range"}
    assert found.sensitivities["sensitivity"].null_count() == found.sensitivities.height
    said = str(found.verdicts[0])
    assert said.count("none: below 0.001 (lowest tested)") == 2
    assert found.verdicts[0].standing == "undecided"
    no_number_is_lost(found)


def test_case_a02_all_stable_is_a_bound_in_every_table(sweep, findings):
    """A02: the highest rate that was tested is no maximum, and the table carries the mark."""
    stable = {(arm, lr): HEALTHY[arm, 0.01] for arm, lr in HEALTHY}
    found = findings(sweep(stable))
    assert set(found.thresholds["censored"]) == {">="}
    assert set(found.thresholds["lower_lr"]) == {0.1}
    assert found.thresholds["upper_lr"].null_count() == found.thresholds.height
    assert found.thresholds["estimate_lr"].null_count() == found.thresholds.height
    boundary = found.boundaries.row(0, named=True)
    assert (boundary["droppable_to"], boundary["needed_from"]) == (0.1, None)
    assert (boundary["crossing"], boundary["censored"]) == (0.1, ">=")
    assert found.verdicts[0].rule == "Up to peak LR 0.1 you can drop QK-norm."
    no_number_is_lost(found)


def test_all_losses_equal_decide_nothing(sweep, findings):
    """Seeds that are copies, as when a seed option does nothing, make no test certain."""
    found = findings(sweep({cell: [2.0] * 3 for cell in HEALTHY}))
    assert found.verdicts[0].standing == "undecided"
    assert "do not differ at all" in str(found.verdicts[0])
    assert found.sensitivities["sensitivity"].to_list() == pytest.approx([0.0, 0.0])
    assert found.boundaries.select("droppable_to", "needed_from").row(0) == (None, None)
    no_number_is_lost(found)


def test_a_hole_is_named_in_every_place(healthy, findings):
    done = healthy.filter(~pl.col("trial_id").is_in(["off-2-0.01-1", "on-2-0.1-0"]))
    found = findings(done, design=healthy)
    assert found.state == "16 of 18 trials have a result"
    assert found.missing["trial_id"].to_list() == ["off-2-0.01-1", "on-2-0.1-0"]
    assert dict(found.deltas.select("peak_lr", "n_pair").rows()) == {0.001: 3, 0.01: 2, 0.1: 2}
    left_out = dict(found.sensitivities.select("arm", "left_out").rows())
    assert left_out == {"off": [1], "on": [0]}
    assert "off at 0.01 (2 of 3 seeds), on at 0.1 (2 of 3 seeds)" in str(found.verdicts[0])


def test_one_arm_alone_has_its_tables_and_no_comparison(healthy, findings):
    found = findings(healthy.filter(arm="on"))
    assert found.verdicts[0].standing == "no comparison"
    assert found.deltas.is_empty()
    assert found.boundaries.is_empty()
    assert set(found.thresholds["arm"]) == {"on"}
    # Each seed: 0.2, 0 and 0.1 above its best rate.
    assert found.sensitivities["sensitivity"].item() == pytest.approx(0.1)


def test_nothing_finished_is_all_missing_and_no_crash(healthy, findings):
    found = findings(healthy.clear(), design=healthy)
    assert found.state == "0 of 18 trials have a result"
    assert found.missing.height == 18
    assert found.cells["n_finished"].sum() == 0
    assert found.thresholds.is_empty()
    assert found.verdicts[0].rule == "No seed has finished in both arms."


def test_nothing_expected_and_nothing_finished_are_empty_tables(healthy, findings):
    found = findings(healthy.clear(), design=healthy.clear())
    assert found.state == "0 of 0 trials have a result"
    assert all(table.is_empty() for table in found.tables.values())
    assert found.verdicts == ()


@pytest.mark.parametrize("name", ["token_sha256", "tokenizer_sha256"])
def test_case_d08_case_a12_two_texts_or_tokenizers_are_two_settings(healthy, sweep, findings, name):
    """D08 (karpathy/nanoGPT#10): the hosted corpus changed under a chart. A12
    (thinking-machines-lab/tinker-cookbook#823): a loss per token depends on what a token holds.

    Results of both kinds stand apart: each has its own reference, pairs with itself alone, and says
    the same as it says without the other.
    """
    worse = {cell: [loss + 1 for loss in of_seed] for cell, of_seed in HEALTHY.items()}
    other = sweep(worse).with_columns(
        pl.lit("c" * 64).alias(name), (pl.lit("new-") + pl.col("trial_id")).alias("trial_id")
    )
    found = findings(pl.concat([healthy, other]))
    old_name, new_name = f"{name}={healthy[name][0][:12]}", f"{name}=cccccccccccc"
    assert set(found.cells["control"]) == {old_name, new_name}
    assert found.deltas["n_pair"].to_list() == [3] * 6
    references = dict(found.trials.select("control", "best_loss").unique().rows())
    assert references == pytest.approx({old_name: 2.02, new_name: 3.02})
    assert [verdict.rule for verdict in found.verdicts] == [RULE, RULE]
    alone = findings(healthy)
    for table in ("cells", "deltas", "boundaries", "thresholds", "optima", "sensitivities"):
        apart = found.tables[table].filter(control=old_name).drop("control")
        assert_frame_equal(apart, alone.tables[table].drop("control"))


def test_case_d08_a_hole_of_one_text_is_not_filled_by_the_other(healthy, findings):
    """D08: one trial was trained on another text. It stands apart, and its place is empty."""
    found = findings(poisoned(healthy, "off-2-0.1-2", token_sha256="c" * 64))
    assert found.deltas.filter(peak_lr=0.1)["n_pair"].to_list() == [2]
    assert found.cells.filter(arm="off", peak_lr=0.1)["n_finished"].to_list() == [2, 1]
    old = found.cells.filter(arm="off", peak_lr=0.1, control="token_sha256=aaaaaaaaaaaa")
    assert old["mean_loss"].item() == pytest.approx(2.52)


def test_case_a08_a_nan_in_the_series_reaches_every_table(healthy, series, probes, analysis):
    """A08 (huggingface/trl#6702): a filter put the running mean where the log had a NaN.

    One NaN at step 5 with a finite end is a diverged trial in the cells and in the pairs.
    """
    log = series("off-2-0.1-0", loss=[1.0] * 4 + [NAN] + [1.0] * 395)
    found = find(Measured(healthy, log, probes()), Design(healthy, None), analysis)
    row = found.trials.filter(trial_id="off-2-0.1-0").row(0, named=True)
    assert (row["outcome"], row["non_finite_step"]) == ("non_finite", 5)
    assert found.cells.filter(arm="off", peak_lr=0.1)["n_d0"].item() == 1
    delta = found.deltas.filter(peak_lr=0.1).row(0, named=True)
    assert delta["mean_delta"] == pytest.approx((5.5 - 2.10 + 0.40 + 0.39) / 3)


def foreign(trials, **nulls):
    """Rows as another tool's table gives them: no step, no hash, no line of bigram counts."""
    unknown = ("steps_done", "bigram_loss", "token_sha256", "tokenizer_sha256", "n_step", "device")
    return trials.with_columns(
        pl.lit("sweep.csv").alias("origin"),
        *(pl.lit(None, trials.schema[name]).alias(name) for name in (*unknown, *nulls)),
    )


def test_a_sweep_of_another_tool_says_what_ours_would(healthy, findings):
    ours = findings(healthy, is_whole=False)
    theirs = findings(foreign(healthy, init_loss=None), is_whole=False)
    assert theirs.verdicts[0].rule == RULE
    for name in ("deltas", "boundaries", "optima", "sensitivities"):
        assert_frame_equal(theirs.tables[name], ours.tables[name])
    # Without bigram counts `failed` is above R* + 0.3, and so off at 0.1 has failed.
    assert theirs.cells.filter(arm="off", peak_lr=0.1)["n_failed"].item() == 3
    assert ours.cells.filter(arm="off", peak_lr=0.1)["n_failed"].item() == 0


def test_a_sweep_without_a_plan_misses_the_combinations_that_it_lacks(healthy, findings):
    found = findings(foreign(healthy.slice(1)), is_whole=False)
    assert found.state == "17 of 18 trials have a result"
    assert found.missing.select("arm", "peak_lr", "seed").rows() == [("off", 0.001, 0)]


@pytest.mark.parametrize("reason", ["loss", None])
def test_a_foreign_d0_without_a_loss_to_count_at_is_refused(healthy, findings, reason):
    """Without an initial loss a diverged trial would leave every mean without a word."""
    table = poisoned(
        foreign(healthy, init_loss=None), "off-2-0.1-0", final_loss=NAN, non_finite=reason
    )
    message = refusal(findings, table, is_whole=False)
    assert "without init_loss" in message
    assert "off-2-0.1-0" in message


def test_groups_of_another_tool_are_never_pooled(healthy, findings):
    rows = foreign(healthy)
    wide = rows.with_columns(
        (pl.lit("w-") + pl.col("trial_id")).alias("trial_id"), pl.col("final_loss") - 0.5
    )
    both = pl.concat([rows.with_columns(a=pl.lit("64")), wide.with_columns(a=pl.lit("128"))])
    found = findings(both.rename({"a": "group.width"}), is_whole=False)
    assert set(found.cells["control"]) == {"width=64", "width=128"}
    assert [verdict.rule for verdict in found.verdicts] == [RULE, RULE]
    assert found.missing.is_empty()


def tables_of(found):
    return {name: table for name, table in found.result_tables.items() if name != "trials"}


losses = st.none() | st.floats(1.5, 3.5)
sweeps = st.lists(
    st.lists(losses, min_size=4, max_size=4), min_size=len(HEALTHY), max_size=len(HEALTHY)
)


@settings(max_examples=15, deadline=None)
@given(sweeps, st.integers(0, 10**6))
def test_the_order_of_rows_changes_no_number(sweep, findings, values, seed):
    trials = sweep(dict(zip(HEALTHY, values, strict=True)))
    one = findings(trials)
    other = findings(trials.sample(fraction=1, shuffle=True, seed=seed))
    others = other.result_tables
    for name, table in tables_of(one).items():
        assert_frame_equal(table, others[name], abs_tol=1e-9)
    assert_frame_equal(one.trials.sort("trial_id"), other.trials.sort("trial_id"), abs_tol=1e-9)
    assert [verdict.rule for verdict in one.verdicts] == [v.rule for v in other.verdicts]


@settings(max_examples=15, deadline=None)
@given(sweeps, st.permutations(range(4)))
def test_the_names_of_seeds_change_no_number(sweep, findings, values, names):
    trials = sweep(dict(zip(HEALTHY, values, strict=True)))
    names_of = {old: 100 + 7 * new for old, new in enumerate(names)}
    one = findings(trials)
    other = findings(trials.with_columns(pl.col("seed").replace_strict(names_of)))
    others = other.result_tables
    for name, table in tables_of(one).items():
        assert_frame_equal(table, others[name], abs_tol=1e-9)
    assert [verdict.rule for verdict in one.verdicts] == [v.rule for v in other.verdicts]


@settings(max_examples=25, deadline=None)
@given(sweeps, st.sets(st.integers(0, 23), max_size=24))
def test_no_sweep_crashes_and_every_row_is_accounted_for(sweep, findings, values, holes):
    design = sweep(dict(zip(HEALTHY, values, strict=True)))
    done = design.with_row_index().filter(~pl.col("index").is_in(list(holes))).drop("index")
    found = findings(done, design=design)
    assert found.trials.height == done.height
    assert found.missing.height == len(holes)
    assert found.cells["n_finished"].sum() == done.height
    assert found.cells["n_d0"].sum() == done["non_finite"].count()
    no_number_is_lost(found)
