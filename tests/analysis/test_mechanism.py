from math import inf, nan

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from redline.analysis.mechanism import PREDICTORS, mechanism

LOGIT = "early_max_logit"


def table_of(trials):
    """(peak LR, logit, unstable) -> trials of one arm, every predictor the same."""
    rows = [
        {
            "control": "",
            "n_layer": 2,
            "arm": "off",
            "peak_lr": rate,
            "unstable": unstable,
            "diverged": unstable,
        }
        | dict.fromkeys(PREDICTORS, logit)
        for rate, logit, unstable in trials
    ]
    return pl.DataFrame(rows, schema_overrides=dict.fromkeys(PREDICTORS, pl.Float64))


def found_in(table):
    return mechanism(table, pl.col("unstable"))


def row_of(trials):
    return found_in(table_of(trials)).filter(predictor=LOGIT).row(0, named=True)


def pairs(trials):
    """The share of pairs that a value orders rightly, counted one by one."""
    won = [
        1.0 if bad > good else 0.5 if bad == good else 0.0
        for bad, is_bad in trials
        if is_bad
        for good, is_good in trials
        if not is_good
    ]
    return sum(won) / len(won) if won else None


LOGITS = st.sampled_from([0.0, 1.0, 2.0, 5.0, 1e5, inf])
TRIALS = st.lists(
    st.tuples(st.sampled_from([1e-3, 1e-2, 1e-1]), LOGITS, st.booleans()), min_size=1, max_size=14
)


@given(TRIALS)
def test_the_auc_is_a_count_of_pairs(trials):
    row = row_of(trials)
    assert row["auc"] == pytest.approx(pairs([(logit, bad) for _, logit, bad in trials]))
    assert row["auc_of_lr"] == pytest.approx(pairs([(rate, bad) for rate, _, bad in trials]))
    at_one = [
        [(logit, bad) for rate, logit, bad in trials if rate == here]
        for here in {rate for rate, _, _ in trials}
    ]
    counts = [
        (pairs(group), sum(b for _, b in group) * sum(not b for _, b in group)) for group in at_one
    ]
    total = sum(n for _, n in counts)
    expected = sum(auc * n for auc, n in counts if n) / total if total else None
    assert row["auc_at_one_lr"] == pytest.approx(expected)
    assert row["n_pair_at_one_lr"] == total


def test_the_auc_is_that_of_scipys_mann_whitney():
    bad, good = [3.0, 8.0, 5.0, 9.0], [1.0, 4.0, 2.0]
    trials = [(1e-2, x, True) for x in bad] + [(1e-2, x, False) for x in good]
    u = stats.mannwhitneyu(bad, good).statistic
    assert row_of(trials)["auc"] == pytest.approx(u / 12)


def test_a_logit_that_follows_the_lr_says_nothing_among_seeds_of_one_lr():
    """Pooled it orders most pairs, since both rise with the LR; at one LR it orders half."""
    trials = [
        *((1e-3, 1.0, False) for _ in range(3)),
        *((1e-2, 10.0, bad) for bad in (True, False, True, False)),
        *((1e-1, 100.0, True) for _ in range(3)),
    ]
    row = row_of(trials)
    assert row["auc"] > 0.9
    assert row["auc"] == row["auc_of_lr"]
    assert row["auc_at_one_lr"] == 0.5


def test_a_logit_that_is_lost_is_the_largest():
    trials = [(1e-2, nan, True), (1e-2, 1e9, False), (1e-2, 1.0, False)]
    assert row_of(trials)["auc"] == 1.0


def test_the_line_at_ten_thousand_is_counted():
    trials = [(1e-1, 2e4, True), (1e-1, 3e4, False), (1e-2, 1e4, True), (1e-3, 1.0, False)]
    row = row_of(trials)
    assert (row["n_above_line"], row["n_above_line_diverged"]) == (2, 1)
    assert (row["n_below_line"], row["n_below_line_diverged"]) == (2, 1)


def test_what_noise_explains_and_what_was_not_probed_is_left_out_and_counted():
    table = table_of([(1e-2, 5.0, True), (1e-2, 1.0, False), (1e-2, 9.0, False)])
    noisy = table.with_columns(pl.Series("unstable", [True, False, None]))
    row = found_in(noisy).filter(predictor=LOGIT).row(0, named=True)
    assert (row["auc"], row["n_left_out"], row["n_stable"]) == (1.0, 1, 1)
    assert row["n_below_line"] == 3, "the line is drawn through every probed trial"
    all_noise = table.with_columns(pl.lit(None, pl.Boolean).alias("unstable"))
    row = found_in(all_noise).filter(predictor=LOGIT).row(0, named=True)
    assert (row["auc"], row["n_left_out"], row["why"]) == (None, 3, "every outcome is below noise")
    unprobed = table.with_columns(pl.lit(None, pl.Float64).alias(LOGIT))
    row = found_in(unprobed).filter(predictor=LOGIT).row(0, named=True)
    assert (row["auc"], row["n_left_out"], row["why"]) == (None, 3, "not probed")


@pytest.mark.parametrize(
    ("trials", "why"),
    [
        ([(1e-2, 1.0, False), (1e-1, 2.0, False)], "no trial is unstable"),
        ([(1e-2, 1.0, True), (1e-1, 2.0, True)], "no trial is stable"),
        ([(1e-2, 1.0, False), (1e-1, 2.0, True)], "no LR has seeds of both outcomes"),
    ],
)
def test_where_there_is_no_number_it_is_said_why(trials, why):
    assert row_of(trials)["why"] == why


def test_arms_and_depths_are_never_pooled():
    one = table_of([(1e-2, 1.0, False), (1e-2, 2.0, True)])
    other = table_of([(1e-2, 200.0, False), (1e-2, 100.0, True)])
    both = pl.concat(
        [one, other.with_columns(pl.lit("on").alias("arm"))],
    )
    found = found_in(both).filter(predictor=LOGIT)
    assert found["auc"].to_list() == [1.0, 0.0]
    deeper = pl.concat([one, other.with_columns(pl.lit(4, pl.Int64).alias("n_layer"))])
    assert found_in(deeper).filter(predictor=LOGIT)["auc"].to_list() == [1.0, 0.0]
