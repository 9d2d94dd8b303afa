import math

import pytest

from redline.analysis.comparable import planned
from redline.analysis.findings import Design, Measured, find


@pytest.fixture
def said(findings, sweep, trial):
    """Losses, and seeds expected beyond those that finished -> the one verdict as text."""

    def run(losses, missing=()):
        (verdict,) = judge(losses, missing)
        return str(verdict)

    def judge(losses, missing=()):
        trials = sweep(losses)
        todo = [
            (f"todo{m}", trial(arm, train__peak_lr=lr, seed=seed))
            for m, (arm, lr, seed) in enumerate(missing)
        ]
        design = trials
        if todo:
            plan = planned(todo)
            design = trials.select(plan.columns).vstack(plan)
        return findings(trials, design=design).verdicts

    run.judge = judge
    return run


PART = {
    ("off", 0.001): [2.5, 2.5],
    ("on", 0.001): [2.45, 2.5],
    ("off", 0.01): [2.0, 2.0],
    ("on", 0.01): [1.98, 2.0],
    ("off", 0.1): [None, 2.6],
    ("on", 0.1): [2.0, 2.05],
}

# Three seeds: differences of about 0, 0 and 0.3 that scatter by 0.01.
DECIDED = {
    ("off", 0.001): [2.51, 2.52, 2.51],
    ("on", 0.001): [2.50, 2.52, 2.52],
    ("off", 0.01): [2.01, 2.02, 2.01],
    ("on", 0.01): [2.00, 2.02, 2.02],
    ("off", 0.1): [2.41, 2.42, 2.41],
    ("on", 0.1): [2.10, 2.12, 2.12],
}


def test_a_rule_that_three_seeds_decide(said):
    (verdict,) = said.judge(DECIDED)
    assert verdict.standing == "decided"
    assert verdict.rule == "Up to peak LR 0.01 you can drop QK-norm. From 0.1 you need it."
    assert str(verdict) == (
        "n_layer 2, off against on: Up to peak LR 0.01 you can drop QK-norm. From 0.1 you need it. "
        "Droppable is said of the mean: 3 seeds of which none failed leave open that up to 63% of "
        "seeds would (95 %). "
        "The means stay within 0.1 nat up to 0.01. "
        "From 0.1 off is worse by more than 0.1 nat in every seed (+0.300 there). "
        "At 0.1: off 3 degraded_0.3; on 2 degraded_0.1, 1 stable. "
        "Highest stable LR of off: between 0.01 and 0.1. "
        "Highest stable LR of on: >= 0.1 (highest tested)."
    )


def test_where_the_arms_part_says_both_rates_and_what_fails(said):
    assert said(PART) == (
        "n_layer 2, off against on: "
        "Undecided: two seeds cannot carry a verdict, it needs more seeds. "
        "The means stay within 0.1 nat up to 0.01. "
        "From 0.1 off is worse by more than 0.1 nat in every seed (+2.025 there). "
        "At 0.1: off 1 non_finite, 1 degraded_0.3; on 2 stable. "
        "Highest stable LR of off: between 0.01 and 0.1. "
        "Highest stable LR of on: >= 0.1 (highest tested)."
    )


def test_a_mean_that_one_seed_carries_is_said_to_be_a_mean(said):
    assert "in the mean (+1.775 there)" in said(PART | {("off", 0.1): [None, 2.1]})


@pytest.mark.parametrize("n_seed", [1, 2])
def test_one_or_two_seeds_carry_no_verdict(said, n_seed):
    text = said({cell: of_seed[:n_seed] for cell, of_seed in DECIDED.items()})
    assert ("Indicative" if n_seed == 1 else "Undecided") in text
    words = ("necessary", "need it", "need QK", "drop", "supported", "±", "+-")
    assert not any(word in text for word in words)


def test_case_a11_one_seed_is_indicative_and_prints_no_spread(said):
    """A11 (wandb/senpai#1722): a conclusion from one run, whose scatter may equal the gap.

    However far the arms part, the rule says that one seed carries none, and nothing has a ±.
    """
    (verdict,) = said.judge({cell: of_seed[:1] for cell, of_seed in DECIDED.items()})
    assert verdict.standing == "indicative"
    assert verdict.rule == "Indicative only: one seed has no spread and carries no verdict."
    assert not any(word in str(verdict) for word in ("±", "interval", "need", "drop"))


def test_three_seeds_leave_the_decision_to_the_tests(said):
    noisy = {("off", 0.01): [2.0, 2.3, 2.6], ("on", 0.01): [2.0, 2.5, 2.2]}
    (verdict,) = said.judge(noisy)
    assert verdict.standing == "undecided"
    assert verdict.rule == "Undecided at every peak LR with 3 seeds."
    # Differences 0, -0.2, 0.4: mean 0.0667, s = 0.3055, half = 4.3027 * 0.3055 / sqrt 3 = 0.7589.
    assert verdict.reasons[0] == (
        "Undecided at 0.01 with 3 seeds: "
        "the 95 % interval -0.692 to +0.826 is neither below 0.05 nor above 0.1."
    )


def test_seeds_that_do_not_differ_carry_no_verdict(said):
    text = said({("off", 0.01): [2.5] * 3, ("on", 0.01): [2.0] * 3})
    assert "Undecided at every peak LR with 3 seeds." in text
    assert "the seeds do not differ at all" in text


def test_what_lies_between_the_climbs_is_named(said):
    losses = dict(DECIDED)
    losses["off", 0.01], losses["on", 0.01] = [2.0, 2.3, 2.6], [2.0, 2.5, 2.2]
    (verdict,) = said.judge(losses)
    assert verdict.rule == (
        "Up to peak LR 0.001 you can drop QK-norm. From 0.1 you need it. Between: undecided."
    )


def test_a_small_benefit_between_the_climbs_is_no_undecided_one(said):
    losses = dict(DECIDED)
    losses["off", 0.01] = [2.07, 2.095, 2.1]  # 0.07, 0.075, 0.08
    (verdict,) = said.judge(losses)
    assert verdict.rule.endswith("Between: small benefit.")
    assert "On its own, 0.01 reads small benefit" in str(verdict)


def test_a_rate_behind_the_first_failure_is_said_to_decide_nothing(said):
    """needed, undecided, needed: the climb from the top stops at the undecided rate."""
    scatter = {("off", 0.01): [2.0, 2.3, 2.6], ("on", 0.01): [2.0, 2.5, 2.2]}
    losses = DECIDED | scatter | {("off", 0.001): [2.81, 2.82, 2.81]}
    (verdict,) = said.judge(losses)
    assert verdict.rule == "From 0.1 you need QK-norm. Below it: undecided."
    assert "On its own, 0.001 reads needed, which no unbroken sequence confirms." in str(verdict)


def test_droppable_everywhere_needs_no_second_half(said):
    losses = {cell: of_seed for cell, of_seed in DECIDED.items() if cell[1] < 0.1}
    assert said.judge(losses)[0].rule == "Up to peak LR 0.01 you can drop QK-norm."


def test_needed_from_the_lowest_rate_is_said(said):
    losses = {cell: of_seed for cell, of_seed in DECIDED.items() if cell[1] == 0.1}
    assert said.judge(losses)[0].rule == "From 0.1, the lowest tested, you need QK-norm."


def test_arms_that_never_part(said):
    losses = {(arm, lr): [2.0, 2.0] for arm in ("off", "on") for lr in (0.001, 0.3)}
    text = said(losses)
    assert "off does not fall behind up to 0.3." in text
    assert "Highest stable LR of off: >= 0.3 (highest tested)." in text
    assert "From" not in text


def test_case_a02_nothing_stable_is_a_bound_and_no_number(said):
    """A02 (Lightning-AI/pytorch-lightning#10557): no candidate was left, and None became an LR."""
    losses = {(arm, lr): [None] * 3 for arm in ("off", "on") for lr in (1e-4, 0.01)}
    text = said(losses)
    assert "Highest stable LR of off: none: below 0.0001 (lowest tested)." in text
    assert "Highest stable LR of on: none: below 0.0001 (lowest tested)." in text
    assert "on is stable in most seeds at no peak LR" in text
    assert not any(word in text for word in ("does not fall behind", "drop", "need", "None"))


def test_beyond_the_range_of_the_arm_a_difference_means_nothing(said):
    losses = PART | {("off", 0.3): [None, None], ("on", 0.3): [5.0, None]}
    text = said(losses)
    assert "From 0.1 off" in text
    assert "Highest stable LR of on: between 0.1 and 0.3." in text
    assert "Beyond 0.1 on itself is not stable in most seeds: no difference is read there." in text
    # At the top the plain arm is the better one, and still nothing there moves the range.
    losses |= {("off", 0.3): [5.4, 5.4], ("on", 0.3): [None, None]}
    assert "From 0.1 off" in said(losses)


def test_a_rule_ends_where_the_arm_itself_fails(said):
    losses = DECIDED | {("off", 0.3): [2.0, 2.01, 2.02], ("on", 0.3): [None, None, 5.0]}
    assert said.judge(losses)[0].rule == said.judge(DECIDED)[0].rule


def test_an_arm_that_hurts_is_said_to_hurt(said):
    text = said({("off", 0.01): [2.0, 2.0], ("on", 0.01): [2.3, 2.3]})
    assert "on is worse by more than 0.1 nat at 0.01." in text
    assert "stay within" not in text


def test_parting_at_the_lowest_rate_is_said(said):
    text = said({("off", 0.01): [2.3, 2.3], ("on", 0.01): [2.0, 2.0]})
    assert "From 0.01, the lowest tested, off is worse" in text


def test_a_hole_is_named(said):
    text = said(PART, missing=[("off", 0.3, 0), ("on", 0.01, 2)])
    assert "Missing: off at 0.3 (0 of 1 seeds), on at 0.01 (2 of 3 seeds)." in text


def test_one_crashed_trial_hides_no_rule_that_the_other_rates_decide(said):
    """At 0.03 one seed of one arm is missing: that rate is undecided, the ends are not.

    The tables of the same findings say droppable up to 0.01 and needed from 0.1.
    """
    middle = {("off", 0.03): [2.01, 2.02], ("on", 0.03): [2.0, 2.02, 2.02]}
    (verdict,) = said.judge(DECIDED | middle, missing=[("off", 0.03, 2)])
    assert verdict.standing == "decided"
    assert "Up to peak LR 0.01 you can drop QK-norm. From 0.1 you need it." in verdict.rule
    assert "Missing: off at 0.03 (2 of 3 seeds)." in str(verdict)


def test_a_rate_that_is_missing_in_one_arm_is_not_called_needed(said):
    """The plain arm has no result at 0.03 yet: the climb from above cannot pass over it."""
    upper = {("off", 0.01): [2.41, 2.42, 2.41], ("on", 0.03): [2.0, 2.02, 2.02]}
    holes = [("off", 0.03, seed) for seed in range(3)]
    (verdict,) = said.judge(DECIDED | upper, missing=holes)
    assert "From 0.1 you need" in verdict.rule
    assert "From 0.01" not in verdict.rule


def test_a_top_that_has_not_run_in_one_arm_is_in_no_sentence_about_means(said):
    """At 0.1 nothing is known of the plain arm: no mean stays within anything up to there."""
    lower = {cell: of_seed for cell, of_seed in DECIDED.items() if cell != ("off", 0.1)}
    (verdict,) = said.judge(lower, missing=[("off", 0.1, seed) for seed in range(3)])
    assert verdict.rule.startswith("Up to peak LR 0.01 you can drop QK-norm.")
    assert "The means stay within 0.1 nat up to 0.01." in str(verdict)
    assert "up to 0.1." not in str(verdict)


def test_a_top_that_has_not_run_at_all_is_not_called_unstable(said):
    """The sweep is not done: what is missing at 0.1 says nothing of the arm."""
    lower = {cell: of_seed for cell, of_seed in DECIDED.items() if cell[1] < 0.1}
    holes = [(arm, 0.1, seed) for arm in ("off", "on") for seed in range(3)]
    (verdict,) = said.judge(lower, missing=holes)
    assert verdict.rule.startswith("Up to peak LR 0.01 you can drop QK-norm.")
    assert "not stable" not in str(verdict)
    assert "Missing: off at 0.1 (0 of 3 seeds), on at 0.1 (0 of 3 seeds)." in str(verdict)


def test_one_arm_has_nothing_to_compare_with(said):
    (verdict,) = said.judge({("on", 0.01): [2.0]})
    assert str(verdict) == "n_layer 2: only on and nothing to compare with."
    assert verdict.standing == "no comparison"


def test_two_arms_of_which_none_is_plain_have_nothing_to_compare_with(said):
    text = said({("on", 0.01): [2.0], ("l2", 0.01): [2.0]})
    assert text == "n_layer 2: only l2, on and nothing to compare with."


def test_every_arm_has_a_verdict_of_its_own(said):
    losses = DECIDED | {("l2", lr): DECIDED["off", lr] for lr in (0.001, 0.01, 0.1)}
    l2, on = said.judge(losses)
    assert (l2.arm, on.arm) == ("l2", "on")
    assert on.rule == said.judge(DECIDED)[0].rule
    assert l2.standing == "undecided"
    assert "At 0.1: off 3 degraded_0.3; on" in str(on)


def test_no_shared_seed_is_said(said):
    text = said({("off", 0.01): [2.0], ("on", 0.1): [2.0]})
    assert "No seed has finished in both arms." in text


def test_nothing_finished_is_said(findings, sweep):
    design = sweep({("off", 0.01): [2.0], ("on", 0.01): [2.0]})
    (verdict,) = findings(design.clear(), design=design).verdicts
    assert verdict.rule == "No seed has finished in both arms."
    assert "Missing: off at 0.01 (0 of 1 seeds), on at 0.01 (0 of 1 seeds)." in str(verdict)


def test_two_corpora_are_two_verdicts(row, frame, findings):
    old = [row(2.0), row(2.0, arm="on")]
    new = [item | {"token_sha256": "c" * 64, "trial_id": f"new{i}"} for i, item in enumerate(old)]
    both = findings(frame([*old, *new])).verdicts
    assert [verdict.title for verdict in both] == [
        "n_layer 2, token_sha256=aaaaaaaaaaaa, off against on",
        "n_layer 2, token_sha256=cccccccccccc, off against on",
    ]


def test_a_rate_in_the_middle_where_the_plain_arm_fails_is_not_forgotten(said):
    losses = {
        ("off", 1e-3): [2.0] * 3,
        ("off", 1e-2): [2.35] * 3,
        ("off", 3e-2): [2.30] * 3,
        ("on", 1e-3): [2.0] * 3,
        ("on", 1e-2): [2.0] * 3,
        ("on", 3e-2): [2.25] * 3,
    }
    text = said(losses)
    assert "off is worse by more than 0.1 nat at 0.01, and not at 0.03." in text
    assert "does not fall behind" not in text
    # Stable, unstable, stable: the cuts after the first and after the last leave one misfit each.
    assert "Highest stable LR of off: >= 0.001 (outcomes that fit no one boundary: 3)." in text


def test_unstable_below_the_highest_stable_lr_is_not_hidden(said):
    fine = {(arm, lr): [2.0, 2.01] for arm in ("off", "on") for lr in (1e-3, 1e-2, 3e-2, 0.1)}
    text = said(fine | {("off", 1e-2): [None, 2.6]})
    assert "Highest stable LR of off: >= 0.1 (highest tested), but not at 0.01" in text


def test_attention_where_the_arms_part_stands_beside_the_loss(sweep, series, probes, analysis):
    trials = sweep(DECIDED)
    measures = {"off": (2e4, 0.05), "on": (8.0, 0.9)}
    rows = [
        {
            "trial_id": row["trial_id"],
            "step": 400,
            "layer": 0,
            "max_logit": measures[row["arm"]][0],
            "entropy_normalised": measures[row["arm"]][1],
        }
        for row in trials.iter_rows(named=True)
    ]
    measured = Measured(trials, series("none", loss=[]), probes(rows))
    (verdict,) = find(measured, Design(trials, None), analysis).verdicts
    assert (
        "Max attention logit and normalised entropy there: off 2e+04 and 0.05; on 8 and 0.90."
        in str(verdict)
    )


def test_noise_that_a_delta_lies_below_is_said(said):
    losses = {
        ("off", 1e-3): [2.0, 2.5, 2.0],
        ("off", 1e-2): [4.0, 2.4, 2.9],
        ("on", 1e-3): [2.0, 2.01, 2.02],
    }
    text = said(losses)
    assert "Delta 0.3 is below seed noise in off: no verdict." in text
    assert "below seed noise in off, on" not in text


def test_a_delta_below_noise_calls_no_rate_the_highest_stable_one(said):
    """Every seed of off at 0.1 ends half a nat above its best, and noise leaves that open."""
    losses = {
        ("off", 1e-3): [2.0, 2.2, 1.8],
        ("off", 1e-1): [2.5, 2.6, 2.4],
        ("on", 1e-3): [2.0, 2.01, 2.02],
        ("on", 1e-1): [2.0, 2.01, 2.02],
    }
    text = said(losses)
    assert "Delta 0.3 is below seed noise in off: no verdict." in text
    assert "Highest stable LR of off: >= 0.1 (highest tested)" not in text


def test_a_budget_too_short_for_the_bigram_line_is_said_once(said):
    short = {("off", 1e-3): [3.9, 3.9], ("on", 1e-3): [3.9, 3.9]}
    assert said(short).count("too short for the bigram line") == 1
    assert "too short" not in said(PART)


def test_a_model_that_is_non_finite_before_its_first_step_is_named(frame, row, findings):
    dead = row(None, seed=1) | {"init_loss": math.nan, "non_finite": "loss", "non_finite_step": 0}
    trials = frame([row(2.0), dead, row(2.0, arm="on"), row(2.1, arm="on", seed=1)])
    (verdict,) = findings(trials).verdicts
    said = "1 of off at 0.01 non-finite before the first step: in no mean."
    assert said in str(verdict)


def test_arms_that_learned_nothing_are_not_called_stable(said):
    text = said({("off", 1e-3): [5.4] * 3, ("on", 1e-3): [5.4] * 3})
    assert text.startswith("n_layer 2, off against on: Not meaningful: the best mean loss, 5.400,")
    assert "stable LR" not in text
