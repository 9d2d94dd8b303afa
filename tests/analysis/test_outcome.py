import math

import pytest

from redline.analysis.outcome import below_noise, d2, labels
from redline.config.analysis import Analysis
from redline.files import UserError

NAN, INF = float("nan"), float("inf")
LN_V = math.log(256)


def outcome_by_lr(out, arm="off"):
    return {row["peak_lr"]: row["outcome"] for row in out.values() if row["arm"] == arm}


def test_every_tier_by_hand(sweep, judge):
    # R = R* = 2.0 at 3e-3, b = 4.0, so the lines are 2.1, 2.3 and 4.0.
    losses = {0.001: 2.5, 0.003: 2.0, 0.01: 2.05, 0.02: 2.2, 0.03: 2.4, 0.1: 4.2, 0.3: None}
    out = judge(sweep({("off", lr): [loss] for lr, loss in losses.items()}))
    assert outcome_by_lr(out) == {
        0.001: "slow",
        0.003: "stable",
        0.01: "stable",
        0.02: "degraded_0.1",
        0.03: "degraded_0.3",
        0.1: "failed",
        0.3: "non_finite",
    }
    rows = list(out.values())
    assert [row["unstable"] for row in rows] == [False] * 4 + [True] * 3
    assert [row["diverged"] for row in rows] == [False] * 5 + [True] * 2
    assert [row["d2_0.1"] for row in rows] == [False] * 3 + [True] * 3 + [False]
    assert {row["optimum_lr"] for row in rows} == {0.003}
    assert {row["reference_loss"] for row in rows} == {2.0}


def test_the_margin_replaces_the_bigram_line_when_the_budget_is_short(sweep, judge):
    # R* = 3.8 > b - 0.3 = 3.7: the line is 4.1, not 4.0.
    out = judge(sweep({("off", 0.001): [3.8], ("off", 0.01): [4.05], ("off", 0.1): [4.15]}))
    assert all(row["short_budget"] for row in out.values())
    assert outcome_by_lr(out) == {0.001: "stable", 0.01: "degraded_0.1", 0.1: "failed"}


def test_a_budget_that_passes_the_bigram_line_is_not_flagged(sweep, judge):
    assert not judge(sweep({("off", 0.001): [3.7]}))["off-2-0.001-0"]["short_budget"]


def test_a_loss_below_the_optimum_lr_is_slow_and_never_failed(sweep, judge):
    out = judge(sweep({("off", 0.001): [5.0], ("off", 0.01): [2.0]}))
    slow = out["off-2-0.001-0"]
    assert slow["outcome"] == "slow"
    assert not (slow["d1"] or slow["d2_0.3"] or slow["unstable"])


def test_a_non_finite_trial_below_the_optimum_lr_is_still_d0(sweep, judge):
    out = judge(sweep({("off", 0.001): [None], ("off", 0.01): [2.0]}))
    assert out["off-2-0.001-0"]["outcome"] == "non_finite"
    assert out["off-2-0.001-0"]["unstable"]


def test_the_reference_of_an_arm_is_its_own(sweep, judge):
    # Against the best arm, 1.5, the plain arm would be degraded at each LR.
    losses = {("off", 0.001): [2.0], ("off", 0.01): [2.05], ("on", 0.001): [1.5], ("on", 0.01): [2]}
    out = judge(sweep(losses))
    assert outcome_by_lr(out) == {0.001: "stable", 0.01: "stable"}
    assert outcome_by_lr(out, "on") == {0.001: "stable", 0.01: "degraded_0.3"}
    assert {row["best_loss"] for row in out.values()} == {1.5}


def test_depths_have_their_own_references(row, frame, judge):
    out = judge(frame([row(2.0), row(3.0, model__n_layer=4)]))
    assert [item["best_loss"] for item in out.values()] == [2.0, 3.0]


def test_an_arm_stuck_at_chance_fails_although_it_equals_its_own_best(sweep, judge):
    stuck = {("off", lr): [LN_V] for lr in (0.001, 0.01, 0.1)}
    out = judge(sweep(stuck | {("on", 0.001): [2.0]}))
    # All its LRs tie, so the optimum is the lowest, and there the word is slow.
    assert outcome_by_lr(out) == {0.001: "slow", 0.01: "failed", 0.1: "failed"}


def test_ties_go_to_the_lowest_lr(sweep, judge):
    out = judge(sweep({("off", 0.1): [2.0], ("off", 0.01): [2.0], ("off", 0.03): [2.5]}))
    assert {row["optimum_lr"] for row in out.values()} == {0.01}
    assert outcome_by_lr(out)[0.03] == "degraded_0.3"


def test_the_reference_is_the_best_seed_mean_with_d0_at_the_initial_loss(sweep, judge):
    # Means: 2.2 and (1.9 + 5.5) / 2 = 3.7. Dropping the dead seed would make 0.1 the best LR.
    out = judge(sweep({("off", 0.01): [2.1, 2.3], ("off", 0.1): [1.9, None]}))
    assert {row["optimum_lr"] for row in out.values()} == {0.01}
    assert out["off-2-0.01-0"]["reference_loss"] == pytest.approx(2.2)
    assert out["off-2-0.1-1"]["capped_loss"] == 5.5


def test_a_loss_above_the_initial_loss_counts_as_the_initial_loss(sweep, judge):
    out = judge(sweep({("off", 0.01): [2.0], ("off", 0.1): [40.0]}))
    assert out["off-2-0.1-0"]["capped_loss"] == 5.5
    assert out["off-2-0.1-0"]["outcome"] == "failed"


def test_a_delta_below_seed_noise_keeps_its_flag_and_decides_nothing(sweep, judge):
    # Seeds 2.0 and 2.2: sd 0.1414, so 0.3 < 0.424 lies below noise as well as 0.1.
    out = judge(sweep({("off", 0.01): [2.0, 2.2], ("off", 0.1): [2.2, 2.5]}))
    worst = out["off-2-0.1-1"]
    assert worst["seed_sd"] == pytest.approx(0.1 * math.sqrt(2))
    assert worst[below_noise(0.1)]
    assert worst[below_noise(0.3)]
    assert worst[d2(0.3)]
    assert worst["outcome"] == "below_noise"
    assert not worst["unstable"]
    assert not worst["unstable"]


def test_noise_is_the_median_over_cells_up_to_the_optimum_lr(sweep, judge):
    # sd 0.0141, 0.354 and 0.0283 at LR <= 0.01; the wild cell above does not count.
    losses = {0.001: [3.00, 3.02], 0.003: [2.5, 3.0], 0.01: [2.00, 2.04], 0.1: [2.2, 5.0]}
    out = judge(sweep({("off", lr): of_seed for lr, of_seed in losses.items()}))
    row = out["off-2-0.1-0"]
    assert row["seed_sd"] == pytest.approx(0.04 / math.sqrt(2))
    assert not row[below_noise(0.1)]
    assert row["outcome"] == "degraded_0.1"


def test_one_seed_leaves_the_noise_unknown(sweep, judge):
    row = judge(sweep({("off", 0.01): [2.0]}))["off-2-0.01-0"]
    assert row["seed_sd"] is None
    assert row[below_noise(0.1)] is None


@pytest.mark.parametrize("final_loss", [NAN, INF, -INF])
def test_a_non_finite_final_loss_is_d0_with_its_step(row, frame, judge, final_loss):
    dead = judge(frame([row(2.0), row(final_loss, train__peak_lr=0.1)]))["off-2-0.1-0"]
    assert (dead["outcome"], dead["non_finite"], dead["non_finite_step"]) == (
        "non_finite",
        "loss",
        400,
    )
    assert dead["capped_loss"] == 5.5
    assert not (dead["d1"] or dead["d2_0.3"])


def test_case_t27_a_trial_cut_short_by_time_is_never_compared(row, frame, judge):
    """T27 (wandb/senpai#965): a wall-clock limit ended trials before their schedule did.

    Conclusions about the LR were mixed with how far the decay got. Such a row is refused by name.
    """
    with pytest.raises(UserError, match=r"training ended before n_step .* off, n_layer 2"):
        judge(frame([row(2.0), row(2.4, seed=1) | {"steps_done": 240}]))


def test_a_missing_final_loss_without_a_reason_is_refused(row, frame, judge):
    with pytest.raises(UserError, match="final_loss is missing in 1 of the trials"):
        judge(frame([row(None) | {"non_finite": None, "steps_done": 400}]))


def test_case_a08_one_nan_in_the_series_is_enough(sweep, series, judge):
    """A08 (huggingface/trl#6702): a filter put the running mean where the log had a NaN.

    One NaN at step 5 with a finite end is D0, with its reason and step.
    """
    out = judge(
        sweep({("off", 0.01): [2.0]}),
        series("off-2-0.01-0", loss=[1.0] * 4 + [NAN] + [1.0] * 395),
    )
    dead = out["off-2-0.01-0"]
    assert (dead["outcome"], dead["non_finite"], dead["non_finite_step"]) == (
        "non_finite",
        "loss",
        5,
    )


def one_bad(step, value, base=1.0):
    values = [base] * 400
    values[step - 1] = value
    return values


ZOO = {
    "NaN loss": ({"loss": one_bad(200, NAN)}, 2.0, ("loss", 200)),
    # A float32 norm of finite gradients of 1e20 overflows, and the clip makes them zeros.
    "1e20 gradients": ({"grad_norm": one_bad(60, INF)}, 2.0, ("grad_norm", 60)),
    "NaN weight": ({"param_norm": one_bad(90, NAN)}, 2.0, ("param_norm", 90)),
    "frozen at chance": ({"loss": [2.0] * 200 + [9.0] + [LN_V] * 199}, LN_V, None),
    "above the start": ({"loss": [2.0] * 320 + [7.0] * 80}, 7.0, None),
}


@pytest.mark.parametrize("name", ZOO)
def test_the_divergence_zoo_is_diverged_with_reason_and_step(sweep, series, judge, name):
    columns, final_loss, reason = ZOO[name]
    trials = sweep({("off", 0.01): [2.0], ("off", 0.1): [final_loss]})
    animal = judge(trials, series("off-2-0.1-0", **columns))["off-2-0.1-0"]
    assert animal["diverged"]
    if reason:
        assert (animal["non_finite"], animal["non_finite_step"]) == reason
    else:
        assert animal["outcome"] == "failed"


def test_the_first_of_several_reasons_counts(sweep, series, judge):
    bad = {"loss": one_bad(61, NAN), "grad_norm": one_bad(60, INF), "param_norm": one_bad(99, NAN)}
    dead = judge(sweep({("off", 0.01): [2.0]}), series("off-2-0.01-0", **bad))["off-2-0.01-0"]
    assert (dead["non_finite"], dead["non_finite_step"]) == ("grad_norm", 60)


def test_a_logit_beyond_all_numbers_is_d0(sweep, probes, judge):
    probe = {"trial_id": "off-2-0.01-0", "step": 80, "layer": 1, "max_logit": INF}
    dead = judge(sweep({("off", 0.01): [2.0]}), probes=probes([probe]))["off-2-0.01-0"]
    assert (dead["non_finite"], dead["non_finite_step"]) == ("logit", 80)


def test_a_recovered_spike_is_a_flag_and_no_instability(sweep, series, judge):
    # Eight steps at 4.0: the mean of 16 rises by 8 * 2 / 16 = 1 nat and falls back.
    loss = [2.0] * 200 + [4.0] * 8 + [2.0] * 192
    trials = sweep({("off", 0.01): [2.0], ("off", 0.1): [2.05]})
    control = judge(trials, series("off-2-0.1-0", loss=loss))["off-2-0.1-0"]
    assert control["outcome"] == "spiked"
    assert control["d3"]
    assert not (control["unstable"] or control["diverged"])


def test_a_spike_with_a_bad_end_is_named_by_the_end(sweep, series, judge):
    loss = [2.0] * 200 + [4.0] * 200
    trials = sweep({("off", 0.01): [2.0], ("off", 0.1): [4.5]})
    row = judge(trials, series("off-2-0.1-0", loss=loss))["off-2-0.1-0"]
    assert row["outcome"] == "failed"
    assert not row["d3"]


def test_case_a02_all_stable_and_all_diverged_have_no_invented_number(sweep, judge):
    """A02 (Lightning-AI/pytorch-lightning#10557): no candidate was left, and None became an LR."""
    dead = judge(sweep({("off", lr): [None, None] for lr in (1e-4, 1e-3)}))
    assert all(row["unstable"] for row in dead.values())
    assert {row["reference_loss"] for row in dead.values()} == {5.5}
    fine = judge(sweep({("off", lr): [2.0, 2.0] for lr in (1e-4, 1e-3)}))
    assert {row["outcome"] for row in fine.values()} == {"stable"}


def test_every_row_comes_back_once_in_its_order(sweep, judge):
    trials = sweep({(a, lr): [2.0, None] for a in ("on", "off") for lr in (0.1, 0.001)})
    assert list(judge(trials)) == trials["trial_id"].to_list()


def test_thresholds_are_arguments_and_name_the_labels(sweep, judge):
    strict = Analysis(delta=(0.02, 0.04, 0.3), failed_margin=0.3, m_nec=0.1, m_eq=0.05)
    out = judge(sweep({("off", 0.01): [2.0], ("off", 0.1): [2.05]}), analysis=strict)
    assert out["off-2-0.1-0"]["outcome"] == "degraded_0.04"
    assert not out["off-2-0.1-0"]["unstable"]
    assert labels(strict)[2:5] == ("degraded_0.3", "degraded_0.04", "degraded_0.02")
