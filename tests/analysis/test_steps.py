from math import sqrt

import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter
from lifelines.statistics import logrank_test
from scipy import stats

from redline.analysis.steps import restricted_means, steps_to_threshold, survival_curves

EVALUATED = (0, 100, 200, 300, 400)
T_975_2 = 4.302653


def evaluations(*, trial_id, losses):
    """The evaluations of a trial as a series; None ends it there."""
    return [
        {"trial_id": trial_id, "step": step, "eval_loss": loss}
        for step, loss in zip(EVALUATED, losses, strict=False)
        if loss is not None
    ]


@pytest.fixture
def arrive(judged, arms, analysis):
    """(arm, seed) -> step of arrival, or None -> the table of steps; all at peak LR 0.01."""

    def run(arrivals, **changes):
        n_seed = 1 + max(seed for _, seed in arrivals)
        table = judged(
            arms(**{arm: {1e-2: [2.0] * n_seed} for arm, _ in sorted(arrivals)}),
            analysis.model_copy(update=changes),
        )
        ids = {(row["arm"], row["seed"]): row["trial_id"] for row in table.iter_rows(named=True)}
        rows = []
        for key, arrival in arrivals.items():
            losses = [4.5 if arrival is None or step < arrival else 3.5 for step in EVALUATED]
            rows += evaluations(trial_id=ids[key], losses=losses)
        series = pl.DataFrame(rows)
        return steps_to_threshold(table, series, analysis.model_copy(update=changes))

    return run


def test_a_trial_arrives_at_its_first_evaluation_at_or_below_the_threshold(judged, arms, analysis):
    table = judged(arms(off={1e-2: [2.0]}))
    rows = evaluations(trial_id=table["trial_id"].item(), losses=[5.5, 4.1, 4.0, 4.2, 3.0])
    (row,) = steps_to_threshold(table, pl.DataFrame(rows), analysis).iter_rows(named=True)
    assert (row["threshold"], row["steps"], row["restricted_steps"]) == (4.0, 200, 200.0)


def test_the_study_may_name_its_threshold(arrive):
    (row,) = arrive({("off", 0): 200}, loss_threshold=3.0).iter_rows(named=True)
    assert (row["threshold"], row["steps"], row["restricted_steps"]) == (3.0, None, 400.0)


def test_a_trial_that_died_is_censored_at_the_end_and_not_where_it_died(judged, arms, analysis):
    """Censored at its death, step 123, it would look like a fast one."""
    table = judged(arms(off={1e-2: [None]}))
    rows = evaluations(trial_id=table["trial_id"].item(), losses=[5.5, 4.5])
    (row,) = steps_to_threshold(table, pl.DataFrame(rows), analysis).iter_rows(named=True)
    assert (row["steps"], row["restricted_steps"]) == (None, 400.0)


def test_a_loss_that_is_no_number_never_arrives(judged, arms, analysis):
    table = judged(arms(off={1e-2: [None]}))
    losses = [5.5, float("nan"), float("inf"), float("-inf")]
    rows = evaluations(trial_id=table["trial_id"].item(), losses=losses)
    (row,) = steps_to_threshold(table, pl.DataFrame(rows), analysis).iter_rows(named=True)
    assert row["steps"] is None


def test_a_trial_without_evaluations_has_no_row(judged, arms, analysis):
    table = judged(arms(off={1e-2: [2.0]}))
    series = pl.DataFrame(schema={"trial_id": pl.String, "step": pl.Int64, "eval_loss": pl.Float64})
    steps = steps_to_threshold(table, series, analysis)
    assert steps.is_empty()
    assert restricted_means(steps).is_empty()
    assert survival_curves(steps).is_empty()


def test_means_and_the_paired_lead_by_hand(arrive):
    """off 400, 400, 300 (the first never arrives); on 100, 200, 200: saved 300, 200, 100."""
    arrivals = {("off", 0): None, ("off", 1): 400, ("off", 2): 300}
    arrivals |= {("on", 0): 100, ("on", 1): 200, ("on", 2): 200}
    off, on = restricted_means(arrive(arrivals)).iter_rows(named=True)
    assert (off["n_trial"], off["n_arrived"], on["n_arrived"]) == (3, 2, 3)
    assert off["mean_steps"] == pytest.approx(1100 / 3)
    assert off["steps_saved"] is None
    assert on["steps_saved"] == pytest.approx(200)
    half = T_975_2 * 100 / sqrt(3)
    assert (on["saved_lower"], on["saved_upper"]) == pytest.approx((200 - half, 200 + half))
    assert on["n_pair"] == 3


def test_a_seed_of_one_arm_alone_is_in_no_pair(arrive):
    arrivals = {("off", 0): 300, ("off", 1): 400, ("on", 0): 100, ("on", 1): 100}
    steps = arrive(arrivals)
    hole = (pl.col("arm") == "off") & (pl.col("seed") == 1)
    on = restricted_means(steps.filter(~hole)).filter(arm="on").row(0, named=True)
    assert (on["n_pair"], on["steps_saved"], on["saved_lower"]) == (1, 200.0, None)


def test_curve_and_log_rank_are_those_of_lifelines(arrive):
    off = [None, 400, 300, 300, None, 200]
    on = [100, 200, 200, None, 300, 100]
    arrivals = {("off", s): v for s, v in enumerate(off)} | {("on", s): v for s, v in enumerate(on)}
    steps = arrive(arrivals)
    tables = {
        arm: pd.DataFrame({"t": [v or 400 for v in values], "e": [v is not None for v in values]})
        for arm, values in (("off", off), ("on", on))
    }
    curves = survival_curves(steps)
    for arm, table in tables.items():
        fitter = KaplanMeierFitter().fit(table["t"], table["e"])
        for row in curves.filter(arm=arm).iter_rows(named=True):
            expected = fitter.survival_function_at_times(row["step"]).iloc[0]
            assert row["share_not_arrived"] == pytest.approx(expected)
            at_risk = fitter.event_table.loc[row["step"], "at_risk"]
            assert row["n_at_risk"] == at_risk
    test = logrank_test(
        tables["off"]["t"], tables["on"]["t"], tables["off"]["e"], tables["on"]["e"]
    )
    p = restricted_means(steps).filter(arm="on")["log_rank_p"].item()
    assert p == pytest.approx(test.p_value)


@pytest.mark.parametrize("arrival", [None, 200])
def test_trials_that_all_end_alike_have_no_log_rank(arrive, arrival):
    arrivals = {(arm, seed): arrival for arm in ("off", "on") for seed in range(3)}
    on = restricted_means(arrive(arrivals)).filter(arm="on").row(0, named=True)
    assert on["log_rank_p"] is None
    assert (on["steps_saved"], on["saved_lower"]) == (0.0, None)


def test_arriving_at_the_last_step_is_not_the_same_as_never_arriving(arrive):
    """All leave at step 400, and yet one arm arrives and the other does not."""
    arrivals = {("on", seed): 400 for seed in range(3)} | {("off", seed): None for seed in range(3)}
    p = restricted_means(arrive(arrivals)).filter(arm="on")["log_rank_p"].item()
    expected = logrank_test([400] * 3, [400] * 3, [1] * 3, [0] * 3).p_value
    assert p == pytest.approx(expected)
    assert p < 0.05


def test_one_seed_against_many_has_no_log_rank(arrive):
    arrivals = {("on", 0): 100} | {("off", seed): 300 for seed in range(3)}
    assert restricted_means(arrive(arrivals)).filter(arm="on")["log_rank_p"].item() is None


def cell(arm, rate, arrivals):
    """The table of steps of one cell, written down; None is a trial that never arrives."""
    return [
        {
            "control": "",
            "n_layer": 2,
            "arm": arm,
            "peak_lr": rate,
            "seed": seed,
            "threshold": 4.0,
            "steps": step,
            "restricted_steps": 400.0 if step is None else float(step),
        }
        for seed, step in enumerate(arrivals)
    ]


def censored(arrivals):
    there = [float(step) for step in arrivals if step is not None]
    return stats.CensoredData(uncensored=there, right=[400.0] * arrivals.count(None))


ARRIVALS = st.lists(st.none() | st.sampled_from([0, 100, 200, 300, 400]), min_size=2, max_size=7)


@given(st.lists(st.tuples(ARRIVALS, ARRIVALS), min_size=1, max_size=3))
def test_all_cells_at_once_give_what_scipy_gives_for_each(pairs):
    """Curves and log-rank are counted for all cells together; no cell may reach into another."""
    rows = [
        row
        for n, (off, on) in enumerate(pairs)
        for row in (*cell("off", 0.01 * (n + 1), off), *cell("on", 0.01 * (n + 1), on))
    ]
    steps = pl.DataFrame(rows, schema_overrides={"steps": pl.Int64}).with_columns(n_step=400)
    curves, means = survival_curves(steps), restricted_means(steps)
    for n, (off, on) in enumerate(pairs):
        here = {"peak_lr": 0.01 * (n + 1)}
        for arm, arrivals in (("off", off), ("on", on)):
            expected = stats.ecdf(censored(arrivals)).sf
            curve = curves.filter(arm=arm, **here)
            assert curve["step"].to_list() == expected.quantiles.tolist()
            assert curve["share_not_arrived"].to_list() == pytest.approx(expected.probabilities)
        p = means.filter(arm="on", **here)["log_rank_p"].item()
        everyone = [*off, *on]
        if len(set(everyone)) == 1:
            assert p is None
        else:
            assert p == pytest.approx(stats.logrank(censored(on), censored(off)).pvalue)
    assert means.filter(arm="off")["log_rank_p"].null_count() == len(pairs)
