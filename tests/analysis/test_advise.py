import math
from itertools import chain, pairwise

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redline.analysis.advise import advise
from redline.analysis.comparable import planned
from redline.analysis.place import MAX_FACTOR, Place
from redline.analysis.power import seeds_needed
from redline.analysis.reading import MAX_LR_DECADES, NEEDED, NOT_NEEDED, UNKNOWN
from redline.config.analysis import SAME_LR
from redline.files import UserError

NOISE = (0.004, -0.004, 0.0, 0.003, -0.003)
RATES = (0.001, 0.003, 0.01, 0.03, 0.1)
# Free to drop up to 0.003, needed from 0.03, and 0.01 scatters too much to say.
DELTAS = dict(zip(RATES, (0.0, 0.0, None, 0.3, 0.3), strict=True))
SCATTERED = (-0.05, 0.06, -0.01)


def losses_of(deltas, n_seed=3, on=2.0):
    """Peak LR -> mean of off - on, or None for seeds that scatter, as what `sweep` takes."""
    found = {}
    for rate, mean in deltas.items():
        parts = [SCATTERED[s] if mean is None else mean + NOISE[s] for s in range(n_seed)]
        found["on", rate] = [on] * n_seed
        found["off", rate] = [on + part for part in parts]
    return found


@pytest.fixture
def table(sweep):
    """Tables under one another, each (deltas or losses, changes of the trial), ids kept apart."""

    def build(*parts, **options):
        frames = []
        for index, (deltas, changes) in enumerate(parts):
            is_losses = any(isinstance(key, tuple) for key in deltas)
            losses = deltas if is_losses else losses_of(deltas, **options)
            names = pl.format("{}-{}", pl.lit(str(index)), "trial_id").alias("trial_id")
            done = pl.when(pl.col("non_finite").is_null()).then("n_step").otherwise("steps_done")
            frames.append(sweep(losses, **changes).with_columns(names, steps_done=done))
        return pl.concat(frames)

    return build


@pytest.fixture
def ask(findings, table):
    """Deltas at one place (or a table) and a question -> the first advice."""

    def run(what=DELTAS, n_layer=2, peak_lr=0.001, n_embd=None, n_step=None, tokens=None, **seeds):
        trials = table((what, {}), **seeds) if isinstance(what, dict) else what
        return advise(findings(trials), Place(n_layer, peak_lr, n_embd, n_step, tokens))[0]

    return run


def trials_of(advice):
    return {
        (p.arm, p.changes["model.n_layer"], p.changes["train.peak_lr"], p.changes["seed"])
        for p in advice.next_runs.points
    }


def at(n_layer, rates, seeds, arms=("off", "on")):
    return {(arm, n_layer, rate, seed) for arm in arms for rate in rates for seed in seeds}


def distance(advice, axis):
    (found,) = [d for d in advice.distances if d.axis == axis]
    return found.how, pytest.approx(found.factor)


# One depth, the LR moves


def test_it_is_needed_where_the_tests_from_the_top_reach(ask):
    advice = ask(peak_lr=0.03)
    assert advice.answer == NEEDED
    assert advice.sentence == (
        "From peak LR 0.03 to 0.1 leaving QK-norm out is shown to cost more than 0.1 nat."
    )
    assert (advice.droppable_to, advice.band_lower, advice.needed_from) == (0.003, 0.003, 0.03)
    assert advice.next_runs.points == ()
    assert advice.next_runs.why == ""


def test_it_is_not_needed_where_the_tests_from_below_reach(ask):
    advice = ask(peak_lr=0.003)
    assert advice.answer == NOT_NEEDED
    assert advice.sentence == (
        "Up to peak LR 0.003 dropping QK-norm is shown to cost less than 0.05 nat."
    )


def test_the_evidence_names_its_cells_with_interval_and_trials(ask):
    (cell,) = ask(peak_lr=0.03).evidence
    assert (cell.n_layer, cell.n_embd, cell.n_step, cell.peak_lr) == (2, 64, 400, 0.03)
    assert cell.mean_delta == pytest.approx(0.3)
    assert cell.lower < 0.3 < cell.upper
    assert cell.n_pair == 3
    assert cell.trial_ids == tuple(
        f"0-{arm}-2-0.03-{seed}" for seed in range(3) for arm in ("off", "on")
    )


def test_a_trial_without_its_partner_is_no_evidence(ask):
    lonely = losses_of(DELTAS)
    lonely["off", 0.03] = [*lonely["off", 0.03], 2.3]
    (cell,) = ask(lonely, peak_lr=0.03).evidence
    assert "0-off-2-0.03-3" not in cell.trial_ids
    assert len(cell.trial_ids) == 6


def test_a_rate_between_two_that_agree_has_their_answer(ask):
    advice = ask(peak_lr=0.05)
    assert advice.answer == NEEDED
    assert [cell.peak_lr for cell in advice.evidence] == [0.03, 0.1]
    assert distance(advice, "peak_lr") == ("between", 5 / 3)


def test_a_rate_between_droppable_and_needed_is_unknown_and_is_itself_the_next_run(ask):
    advice = ask({0.001: 0.0, 0.01: 0.3}, peak_lr=0.003)
    assert advice.answer == UNKNOWN
    assert "At 0.001: not needed. At 0.01: needed." in advice.sentence
    assert trials_of(advice) == at(2, [0.003], range(3))


def test_an_undecided_rate_is_unknown_with_its_reason_and_asks_for_the_seeds_of_the_power(ask):
    advice = ask(peak_lr=0.01)
    assert advice.answer == UNKNOWN
    assert "At 0.01: undecided, the 95 % interval" in advice.sentence
    mean, sd = sum(SCATTERED) / 3, pl.Series(SCATTERED).std()
    seeds = seeds_needed(mean, sd, 3, 0.05)
    assert seeds is not None
    assert trials_of(advice) == at(2, [0.01], range(3, seeds))
    assert f"{seeds} seeds have 80 % power at peak LR 0.01" in advice.next_runs.why


def test_where_no_number_of_seeds_would_do_no_run_is_proposed(ask):
    close = {0.001: [0.049 + part for part in (-0.3, 0.3, 0.0)]}
    losses = {("on", 0.001): [2.0] * 3, ("off", 0.001): [2.0 + d for d in close[0.001]]}
    advice = ask(losses, peak_lr=0.001)
    assert advice.next_runs.points == ()
    assert advice.next_runs.why == "500 seeds would not decide at peak LR 0.001."


def test_a_small_benefit_is_unknown_and_no_run_would_settle_it(ask):
    advice = ask({0.001: 0.0, 0.01: 0.075, 0.1: 0.3}, peak_lr=0.01)
    assert advice.answer == UNKNOWN
    assert "At 0.01: small benefit (+0.075 nat), neither needed nor free to drop." in (
        advice.sentence
    )
    assert advice.next_runs.points == ()
    assert "the seeds have decided at 0.01 small benefit" in advice.next_runs.why


def test_where_qk_norm_hurts_it_is_not_needed_and_that_is_said(ask):
    advice = ask({0.001: -0.2, 0.1: 0.3}, peak_lr=0.001)
    assert advice.answer == NOT_NEEDED
    assert advice.sentence.endswith("At 0.001 off is better than on.")


def test_a_cell_that_reads_needed_by_itself_is_unknown_below_one_that_does_not(ask):
    losses = losses_of({0.001: 0.0, 0.01: 0.3, 0.03: 0.3, 0.1: 0.3})
    losses["off", 0.03] = [2.2, 2.3, 2.07]
    advice = ask(losses, peak_lr=0.01)
    assert advice.answer == UNKNOWN
    assert "At 0.01: needed on its own, which no unbroken sequence confirms." in advice.sentence
    # What breaks the sequence is what more seeds can mend.
    assert {rate for _, _, rate, _ in trials_of(advice)} == {0.03}


def test_seeds_are_not_asked_for_where_the_mean_on_the_way_points_elsewhere(ask):
    advice = ask({0.001: 0.0, 0.01: 0.3, 0.03: None, 0.1: 0.3}, peak_lr=0.01)
    assert advice.next_runs.points == ()
    assert "at peak LR 0.03 the mean points to another answer" in advice.next_runs.why


def test_a_decided_cell_in_the_way_leaves_nothing_to_run(ask):
    advice = ask({0.001: 0.3, 0.01: 0.0, 0.1: 0.3}, peak_lr=0.01)
    assert advice.answer == UNKNOWN
    assert advice.next_runs.points == ()
    assert "the seeds have decided at 0.001 needed" in advice.next_runs.why


@pytest.fixture
def beyond_range():
    return losses_of(DELTAS) | {("on", 0.3): [None] * 3, ("off", 0.3): [None] * 3}


@pytest.mark.parametrize("peak_lr", [0.2, 0.3, 0.5, 30.0])
def test_above_the_range_the_arm_itself_fails_and_nothing_is_read(ask, beyond_range, peak_lr):
    advice = ask(beyond_range, peak_lr=peak_lr)
    assert advice.answer == UNKNOWN
    assert advice.sentence == (
        "Above peak LR 0.1 the on arm itself is not stable in most seeds: no difference is read "
        "there."
    )
    assert advice.next_runs.points == ()


def test_below_the_lowest_tested_it_is_carried_half_a_decade_and_says_so(ask):
    advice = ask(peak_lr=0.0005)
    assert advice.answer == NOT_NEEDED
    assert advice.sentence.endswith(
        "Extrapolated by a factor of 2 in peak LR: the nearest tested is 0.001."
    )
    assert distance(advice, "peak_lr") == ("beyond", 2)
    assert trials_of(advice) == at(2, [0.0005], range(3))


def test_above_the_highest_tested_it_is_carried_half_a_decade(ask):
    assert ask(peak_lr=0.3).answer == NEEDED
    assert ask(peak_lr=0.4).answer == UNKNOWN


def test_below_the_lowest_tested_by_more_than_half_a_decade_nothing_is_said(ask):
    advice = ask(peak_lr=0.0002)
    assert advice.answer == UNKNOWN
    assert advice.sentence.startswith(
        "Peak LR 0.0002 lies a factor of 5 below the lowest tested, 0.001: a result is carried "
        "half a decade and no further."
    )


def test_the_boundary_may_lie_between_the_grid_and_a_rate_beyond_it(ask):
    down = ask({0.001: 0.3, 0.003: 0.3}, peak_lr=0.0005)
    up = ask({0.001: 0.0, 0.003: 0.0}, peak_lr=0.005)
    assert (down.answer, up.answer) == (UNKNOWN, UNKNOWN)
    assert "QK-norm is needed; the boundary lies somewhere lower" in down.sentence
    assert "QK-norm is not needed; the boundary lies somewhere higher" in up.sentence
    assert trials_of(up) == at(2, [0.005], range(3))


def test_a_rate_in_another_spelling_is_the_tested_one(ask):
    advice = ask(peak_lr=0.0301)
    assert distance(advice, "peak_lr") == ("tested", 1)
    assert advice.answer == NEEDED


# Seeds and holes


def test_one_seed_is_indicative_and_two_more_are_the_next_runs(ask):
    advice = ask({0.001: 0.0, 0.003: 0.0, 0.1: 0.3}, peak_lr=0.003, n_seed=1)
    assert advice.answer == UNKNOWN
    assert advice.sentence == "Indicative only: one seed has no spread and carries no verdict."
    # The climb from below needs the lower rate too.
    assert trials_of(advice) == at(2, [0.001, 0.003], [1, 2])
    assert "3 seeds are the fewest that decide" in advice.next_runs.why


def test_two_seeds_decide_nothing_and_a_third_is_the_next_run(ask):
    advice = ask({0.001: 0.0, 0.1: 0.3}, peak_lr=0.1, n_seed=2)
    assert advice.answer == UNKNOWN
    assert "two seeds cannot carry a verdict" in advice.sentence
    assert trials_of(advice) == at(2, [0.1], [2])


def test_trials_that_the_study_plans_and_lacks_come_first(findings, sweep, trial):
    losses = losses_of({0.001: 0.0, 0.1: 0.3})
    losses["off", 0.1] = losses["off", 0.1][:2]
    trials = sweep(losses)
    todo = planned([("todo", trial("off", train__peak_lr=0.1, seed=2))])
    design = trials.select(todo.columns).vstack(todo)
    (advice,) = advise(findings(trials, design=design), Place(2, 0.1, None, None, None))
    assert advice.answer == UNKNOWN
    assert advice.next_runs.is_planned
    assert trials_of(advice) == {("off", 2, 0.1, 2)}


def test_a_planned_rate_without_any_pair_is_a_hole_and_not_read_across(findings, sweep, trial):
    trials = sweep(losses_of({0.001: 0.0, 0.1: 0.0}))
    todo = planned(
        [(f"t-{arm}-{s}", trial(arm, seed=s)) for arm in ("off", "on") for s in range(3)]
    )
    found = findings(trials, design=trials.select(todo.columns).vstack(todo))
    for peak_lr in (0.01, 0.003, 0.03):
        (advice,) = advise(found, Place(2, peak_lr, None, None, None))
        assert advice.answer == UNKNOWN
        assert trials_of(advice) == at(2, [0.01], range(3))
        assert advice.next_runs.is_planned


def test_a_planned_rate_above_the_tested_ones_is_not_needed_by_its_neighbours(
    findings, sweep, trial
):
    trials = sweep(losses_of(DELTAS))
    plan = [(arm, trial(arm, train__peak_lr=0.3, seed=s)) for arm in ("off", "on") for s in (0, 1)]
    todo = planned(plan)
    found = findings(trials, design=trials.select(todo.columns).vstack(todo))
    (advice,) = advise(found, Place(2, 0.3, None, None, None))
    assert advice.answer == UNKNOWN
    assert "At 0.3: undecided, no pair of seeds has finished." in advice.sentence
    assert trials_of(advice) == at(2, [0.3], [0, 1])


def test_seeds_without_any_spread_decide_nothing_and_more_of_them_are_not_asked_for(ask):
    losses = {("on", 0.001): [2.0] * 3, ("off", 0.001): [2.0] * 3}
    advice = ask(losses, peak_lr=0.001)
    assert advice.answer == UNKNOWN
    assert advice.next_runs.points == ()
    assert "do not differ at all" in advice.next_runs.why


def test_arms_that_learned_nothing_get_no_answer_and_no_seeds(ask):
    advice = ask(losses_of(DELTAS, on=4.5), peak_lr=0.001)
    assert advice.answer == UNKNOWN
    assert advice.sentence.startswith("Not meaningful: the best mean loss, 4.5")
    assert advice.next_runs.points == ()
    assert "train longer" in advice.next_runs.why


# Depth, width, budget


@pytest.fixture
def depths(table):
    """Depth -> deltas, as one table."""
    return lambda found: table(*((deltas, {"model__n_layer": d}) for d, deltas in found.items()))


EARLY = dict(zip(RATES, (0.0, 0.3, 0.3, 0.3, 0.3), strict=True))


def test_between_two_depths_that_agree_the_answer_is_theirs(ask, depths):
    trials = depths({2: DELTAS, 8: EARLY})
    advice = ask(trials, n_layer=4, peak_lr=0.1)
    assert advice.answer == NEEDED
    assert advice.sentence.startswith("n_layer 2: needed. From peak LR 0.03")
    assert "n_layer 8: needed. From peak LR 0.003" in advice.sentence
    assert distance(advice, "n_layer") == ("between", 2)
    # Both depths count, so that the limits are the outer ones.
    assert (advice.droppable_to, advice.band_lower, advice.needed_from) == (0.001, 0.001, 0.03)
    assert {cell.n_layer for cell in advice.evidence} == {2, 8}


def test_between_two_depths_that_differ_nothing_is_said(ask, depths):
    advice = ask(depths({2: DELTAS, 8: EARLY}), n_layer=4, peak_lr=0.003)
    assert advice.answer == UNKNOWN
    assert "n_layer 2: not needed." in advice.sentence
    assert "n_layer 8: needed." in advice.sentence
    assert trials_of(advice) == at(4, [0.001, 0.003, 0.01], range(3))


@pytest.mark.parametrize("n_layer", [1, 4])
def test_a_factor_of_two_in_depth_is_carried_and_stated(ask, n_layer):
    advice = ask(n_layer=n_layer, peak_lr=0.03)
    assert advice.answer == NEEDED
    assert advice.sentence.endswith(
        "Extrapolated by a factor of 2 in n_layer: the nearest tested is 2."
    )
    assert distance(advice, "n_layer") == ("beyond", 2)
    assert trials_of(advice) == at(n_layer, [0.01, 0.03, 0.1], range(3))


def test_a_factor_of_four_in_depth_is_refused_with_the_limit(ask):
    advice = ask(n_layer=8, peak_lr=0.03)
    assert advice.answer == UNKNOWN
    assert advice.sentence == (
        "The nearest results are at n_layer 2, a factor of 4 away: they are carried a factor of 2 "
        "and no further."
    )
    assert trials_of(advice) == at(8, [0.01, 0.03, 0.1], range(3))


def test_two_axes_at_once_are_refused(ask):
    wide = ask(n_layer=4, n_embd=128, peak_lr=0.03)
    fast = ask(n_layer=4, peak_lr=0.2)
    assert (wide.answer, fast.answer) == (UNKNOWN, UNKNOWN)
    assert "differ from the place in n_layer and n_embd at once" in wide.sentence
    assert "outside of the tested n_layer and peak LR at once" in fast.sentence


def test_the_rate_may_be_interpolated_where_the_depth_is_extrapolated(ask):
    assert ask(n_layer=4, peak_lr=0.05).answer == NEEDED


def test_a_width_that_is_not_tested_is_carried_by_two_and_its_design_names_it(ask):
    advice = ask(n_embd=128, peak_lr=0.03)
    assert advice.answer == NEEDED
    assert {point.changes["model.n_embd"] for point in advice.next_runs.points} == {128}
    assert ask(n_embd=129, peak_lr=0.03).answer == UNKNOWN


@pytest.fixture
def widths(table):
    return table((DELTAS, {}), (EARLY, {"model__n_embd": 256}))


def test_widths_of_one_study_bracket_a_width_between_them(ask, widths):
    assert ask(widths, n_embd=128, peak_lr=0.03).answer == NEEDED
    assert ask(widths, n_embd=128, peak_lr=0.003).answer == UNKNOWN
    assert ask(widths, n_embd=256, peak_lr=0.003).answer == NEEDED


def test_without_a_width_each_width_answers_under_its_name(findings, widths):
    advice = advise(findings(widths), Place(2, 0.003, None, None, None))
    assert {one.setting: one.answer for one in advice} == {
        "n_embd=64": NOT_NEEDED,
        "n_embd=256": NEEDED,
    }


def test_a_budget_is_asked_in_tokens_or_steps(ask, table):
    # 400 steps of 16 windows of 64 tokens are 409,600.
    trials = table((DELTAS, {}), (EARLY, {"train__n_step": 1600}))
    assert ask(trials, n_step=400, peak_lr=0.003).answer == NOT_NEEDED
    near = ask(trials, tokens=400e3, peak_lr=0.003)
    assert near.answer == NOT_NEEDED
    assert distance(near, "tokens") == ("tested", 1.024)
    assert ask(trials, tokens=800e3, peak_lr=0.003).answer == UNKNOWN
    long = ask(trials, tokens=2 * 1600 * 1024, peak_lr=0.003)
    assert long.answer == NEEDED
    assert {point.changes["train.n_step"] for point in long.next_runs.points} == {3200}


def test_a_budget_that_counts_as_tested_is_that_of_the_next_runs(ask):
    advice = ask(n_step=401, peak_lr=0.01)
    assert advice.next_runs.points
    assert not any("train.n_step" in point.changes for point in advice.next_runs.points)


def test_a_table_that_does_not_say_its_width_cannot_be_asked_for_one(ask, table):
    trials = table((DELTAS, {})).with_columns(
        pl.lit(None, pl.Int64).alias("n_embd"), pl.lit("runs.csv").alias("origin")
    )
    assert ask(trials, peak_lr=0.03).answer == NEEDED
    advice = ask(trials, peak_lr=0.03, n_embd=64)
    assert advice.answer == UNKNOWN
    assert "The results do not say their n_embd" in advice.sentence
    assert advice.next_runs.points == ()


def test_the_next_runs_leave_out_what_has_finished(ask, table):
    # At depth 4 one seed of the plain arm is there already.
    trials = table((DELTAS, {}), ({("off", 0.03): [2.3]}, {"model__n_layer": 4}))
    advice = ask(trials, n_layer=4, peak_lr=0.03)
    assert trials_of(advice) == at(4, [0.01, 0.03, 0.1], range(3)) - {("off", 4, 0.03, 0)}


def test_a_rate_in_another_spelling_is_run_as_the_sweep_spells_it(ask):
    advice = ask(n_layer=4, peak_lr=0.0301)
    assert {rate for _, _, rate, _ in trials_of(advice)} == {0.01, 0.03, 0.1}


# Settings and arms


def test_settings_are_never_pooled_and_the_base_answers_first(findings, table):
    trials = table(
        (EARLY, {"train__z_loss": 1e-4}), (DELTAS, {}), (EARLY, {"model__tied_head": False})
    )
    advice = advise(findings(trials), Place(2, 0.003, None, None, None))
    assert [(one.setting, one.answer) for one in advice] == [
        ("base", NOT_NEEDED),
        ("z_loss=0.0001", NEEDED),
        ("tied_head=false", NEEDED),
    ]
    assert all(len(one.evidence[0].trial_ids) == 6 for one in advice)


def test_a_setting_that_can_speak_comes_before_a_base_that_cannot(findings, table):
    trials = table((DELTAS, {}), (EARLY, {"train__z_loss": 1e-4, "model__n_layer": 8}))
    advice = advise(findings(trials), Place(8, 0.003, None, None, None))
    assert [one.answer for one in advice] == [NEEDED, UNKNOWN]
    assert "z_loss" in advice[0].setting


def test_each_arm_has_its_own_answer_and_the_default_comes_first(findings, sweep):
    losses = losses_of(DELTAS)
    losses |= {("frozen", rate): losses["off", rate] for rate in RATES}
    losses |= {("frozen", 0.03): [2.29, 2.3, 2.31]}
    advice = advise(findings(sweep(losses)), Place(2, 0.03, None, None, None))
    assert [(one.arm, one.answer) for one in advice] == [
        ("on", NEEDED),
        ("on gain=frozen", UNKNOWN),
    ]


def test_one_arm_alone_gets_no_advice(findings, sweep):
    trials = sweep({("off", 0.001): [2.0, 2.1, 2.2]})
    assert advise(findings(trials), Place(2, 0.001, None, None, None)) == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"peak_lr": 0.0},
        {"peak_lr": -1e-3},
        {"peak_lr": math.nan},
        {"peak_lr": math.inf},
        {"n_layer": 0},
        {"n_embd": -64},
        {"n_step": 0},
        {"tokens": math.nan},
        {"n_step": 400, "tokens": 4e5},
    ],
)
def test_a_place_that_is_none_is_refused(fields):
    with pytest.raises(UserError):
        Place(
            **(
                {"n_layer": 2, "peak_lr": 0.01, "n_embd": None, "n_step": None, "tokens": None}
                | fields
            )
        )


# What holds for any results


a_mean = st.sampled_from([-0.2, 0.0, 0.075, 0.3, None])
a_depth = st.dictionaries(st.sampled_from(RATES), a_mean, min_size=1)
some_depths = st.dictionaries(st.sampled_from([2, 4, 8]), a_depth, min_size=1, max_size=2)
ASKED = sorted(chain(RATES, (0.0002, 0.0005, 0.002, 0.005, 0.02, 0.05, 0.15, 0.5)))


@settings(max_examples=30, deadline=None)
@given(
    found=some_depths,
    failing=st.sets(st.sampled_from(RATES), max_size=2),
    n_seed=st.sampled_from([1, 2, 3, 3, 3]),
    n_layer=st.sampled_from([1, 2, 3, 4, 6, 8, 16, 32]),
)
def test_the_answers_rise_with_the_rate_and_end_at_the_stated_distances(
    findings, sweep, found, failing, n_seed, n_layer
):
    parts = []
    for depth, deltas in found.items():
        losses = losses_of(deltas, n_seed=n_seed)
        dead = {key: [None] * len(v) for key, v in losses.items() if key[1] in failing}
        parts.append(sweep(losses | dead, model__n_layer=depth))
    results = findings(pl.concat(parts))
    rates = [rate for deltas in found.values() for rate in deltas]
    is_far = n_layer > MAX_FACTOR * max(found) or n_layer < min(found) / MAX_FACTOR
    key = ("arm", "n_layer", "peak_lr", "seed")
    finished = set(results.trials.select(key).iter_rows())
    answers = []
    for peak_lr in ASKED:
        (advice,) = advise(results, Place(n_layer, peak_lr, None, None, None))
        decades = max(math.log10(min(rates) / peak_lr), math.log10(peak_lr / max(rates)))
        if is_far or n_seed < 3 or decades > MAX_LR_DECADES + SAME_LR:
            assert advice.answer == UNKNOWN
        answers.append(advice.answer)
        # What is open says what would settle it, or why nothing would; nothing is run twice.
        assert advice.next_runs.why or advice.answer != UNKNOWN
        assert not trials_of(advice) & finished
    known = [answer for answer in answers if answer != UNKNOWN]
    assert (NEEDED, NOT_NEEDED) not in pairwise(known)
