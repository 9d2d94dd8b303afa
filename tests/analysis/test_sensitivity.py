from math import sqrt

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redline.analysis.comparable import planned
from redline.analysis.grid import expected_trials
from redline.analysis.sensitivity import WORTSMAN, measure, seed_differences, sensitivities

DECADES = (1e-3, 1e-2, 1e-1)
T_975_2 = 4.302653


@pytest.fixture(scope="session")
def measured(judged):
    """Losses, the cells that are expected beyond them, and the registered rates -> rows by arm."""

    def run(losses, expected=None, registered=None, grid="study", **changes):
        outcomes = judged(losses, **changes)
        plan = expected_trials(
            outcomes if expected is None else judged(expected, **changes), outcomes
        )
        found = sensitivities(outcomes, plan, registered).filter(grid=grid)
        return {row["arm"]: row for row in found.iter_rows(named=True)}

    return run


OFF = {1e-3: [2.3, 2.4, 2.5], 1e-2: [2.0, 2.0, 2.0], 1e-1: [2.6, 2.9, 3.2]}
ON = {1e-3: [2.2, 2.2, 2.2], 1e-2: [2.0, 2.0, 2.0], 1e-1: [2.1, 2.4, 2.1]}


def test_a_sensitivity_by_hand(measured, arms):
    """Per seed: the mean over three rates minus the best of them; then the mean over seeds."""
    off = measured(arms(off=OFF, on=ON))["off"]
    by_seed = [6.9 / 3 - 2.0, 7.3 / 3 - 2.0, 7.7 / 3 - 2.0]  # 0.3, 0.4333, 0.5667
    assert off["sensitivity"] == pytest.approx(sum(by_seed) / 3)
    half = T_975_2 * (0.4 / 3) / sqrt(3)  # deviations -0.4/3, 0, 0.4/3: s = 0.4/3
    assert (off["lower"], off["upper"]) == pytest.approx(
        (sum(by_seed) / 3 - half, sum(by_seed) / 3 + half), abs=1e-6
    )
    assert (off["n_seed"], off["left_out"], off["why"]) == (3, [], "")


def test_a_paired_difference_by_hand_is_plain_minus_arm(measured, arms):
    rows = measured(arms(off=OFF, on=ON))
    # on: 0.1, 0.2, 0.1. Differences 0.2, 0.2333, 0.4667: mean 0.3, sum of squares 0.04222.
    on = rows["on"]
    assert on["sensitivity"] == pytest.approx(0.4 / 3)
    assert on["difference"] == pytest.approx(0.3)
    squares = 0.1**2 + (0.2 + 0.1 / 3 - 0.3) ** 2 + (0.4 + 0.2 / 3 - 0.3) ** 2
    half = T_975_2 * sqrt(squares / 2) / sqrt(3)
    assert (on["difference_lower"], on["difference_upper"]) == pytest.approx(
        (0.3 - half, 0.3 + half), abs=1e-6
    )
    assert on["n_pair"] == 3
    assert (rows["off"]["difference"], rows["off"]["n_pair"]) == (None, 0)


def test_the_value_of_the_mean_curve_is_an_extra_of_its_own(measured, arms):
    # Each seed has its best at another rate: the mean curve is flat and scores 0.
    losses = arms(off={1e-3: [2.0, 2.6], 1e-2: [2.3, 2.3], 1e-1: [2.6, 2.0]})
    row = measured(losses)["off"]
    assert row["sensitivity"] == pytest.approx(0.3)
    assert row["of_mean_curve"] == pytest.approx(0.0)


def test_a_d0_counts_at_its_initial_loss_and_keeps_its_seed(measured, arms):
    losses = arms(off={1e-3: [2.3, 2.3], 1e-2: [2.0, 2.0], 1e-1: [None, 9.0]})
    row = measured(losses)["off"]
    # (2.3 + 2.0 + 5.5) / 3 - 2.0 for the dead seed, and for the one that ended above its start.
    assert row["sensitivity"] == pytest.approx(9.8 / 3 - 2.0)
    assert row["n_seed"] == 2


def test_an_arm_stuck_at_chance_has_no_sensitivity_and_no_zero(measured, arms):
    stuck = {lr: [4.1, 4.1, 4.1] for lr in DECADES}  # the bigram line is 4.0
    rows = measured(arms(off=stuck, on=ON))
    assert (rows["off"]["sensitivity"], rows["off"]["of_mean_curve"]) == (None, None)
    assert rows["off"]["why"].startswith("not meaningful")
    assert rows["on"]["sensitivity"] == pytest.approx(0.4 / 3)
    assert (rows["on"]["difference"], rows["on"]["n_pair"]) == (None, 0)


def test_an_arm_that_just_reaches_the_bigram_line_is_stuck(measured, arms):
    at = arms(off={1e-3: [4.0, 4.0], 1e-2: [4.0, 4.0]})
    assert measured(at)["off"]["why"].startswith("not meaningful")
    below = arms(off={1e-3: [4.0, 4.0], 1e-2: [3.99, 3.99]})
    assert measured(below)["off"]["why"] == ""


def test_a_seed_with_a_missing_cell_is_left_out_and_named(measured, arms):
    expected = arms(off=OFF, on=ON)
    losses = arms(off=OFF | {1e-1: [2.6, 2.9]}, on=ON)
    rows = measured(losses, expected)
    assert rows["off"]["left_out"] == [2]
    assert rows["off"]["sensitivity"] == pytest.approx((0.3 + 1.3 / 3) / 2)
    assert rows["on"]["left_out"] == []
    assert rows["on"]["n_seed"] == 3
    # The pair is dropped, and the other arm keeps its own three seeds.
    assert rows["on"]["n_pair"] == 2
    assert rows["on"]["difference"] == pytest.approx((0.2 + 0.7 / 3) / 2)


def test_no_seed_that_is_whole_is_said(measured, arms):
    row = measured(arms(off={1e-3: [2.3], 1e-2: [2.0]}), arms(off=OFF))["off"]
    assert (row["sensitivity"], row["why"]) == (None, "no seed has finished at every learning rate")
    assert row["left_out"] == [0, 1, 2]


def test_grids_that_differ_by_arm_meet_in_what_both_have(measured, arms):
    """The arm went one rate higher, where it loses much: that is no part of the comparison."""
    wider = ON | {1.0: [5.0, 5.0, 5.0]}
    rows = measured(arms(off=OFF, on=wider))
    assert rows["on"]["sensitivity"] == pytest.approx(0.4 / 3)
    assert rows["on"]["difference"] == pytest.approx(0.3)


def test_grids_that_differ_by_arm_meet_without_a_plan_too(findings, sweep, arms):
    """An imported sweep whose arm went one rate higher: nobody planned to run the plain one there.

    The shared rates are those that both arms have, and the pairs on them count.
    """
    trials = sweep(arms(off=OFF, on=ON | {1.0: [5.0, 5.0, 5.0]}))
    found = findings(trials, is_whole=False).sensitivities.filter(arm="on", grid="study")
    assert found["difference"].item() == pytest.approx(0.3)
    assert found["left_out"].to_list() == [[]]


def test_a_third_arm_on_a_shorter_grid_takes_no_rate_from_the_first_two(measured, arms):
    """off and on share three rates; the control arm was tried at two of them alone."""
    rows = measured(arms(off=OFF, on=ON, l2={lr: ON[lr] for lr in DECADES[:2]}))
    assert rows["on"]["difference"] == pytest.approx(0.3)


def test_points_that_refine_a_boundary_do_not_enter(measured, arms):
    refined = {2e-2: [2.0] * 3, 3e-2: [2.0] * 3, 5e-2: [2.0] * 3}
    rows = measured(arms(off=OFF | refined, on=ON | refined), registered=DECADES)
    assert rows["off"]["sensitivity"] == pytest.approx(1.3 / 3)
    assert rows["on"]["difference"] == pytest.approx(0.3)


def test_without_a_registered_axis_all_rates_count(measured, arms):
    rates = {lr: [2.0 + 0.1 * k] for k, lr in enumerate((1e-3, 1e-2, 1e-1, 1.0))}
    assert measured(arms(off=rates))["off"]["sensitivity"] == pytest.approx(0.15)


def test_a_grid_that_is_not_log_uniform_has_no_sensitivity(measured, arms):
    losses = arms(off={1e-3: [2.3, 2.4], 2e-3: [2.0, 2.0], 1e-2: [2.6, 2.5]})
    row = measured(losses)["off"]
    assert (row["sensitivity"], row["n_seed"]) == (None, 0)
    assert row["why"] == "the learning rates are not spaced evenly in log10"


def test_one_shared_rate_is_no_grid(measured, arms):
    rows = measured(arms(off={1e-2: [2.0, 2.1]}, on={1e-2: [2.0, 2.1], 1e-1: [2.2, 2.2]}))
    assert rows["off"]["why"] == "the arms share fewer than two learning rates"
    assert rows["on"]["sensitivity"] is None


def test_one_seed_has_a_sensitivity_without_an_interval(measured, arms):
    row = measured(arms(off={lr: of_seed[:1] for lr, of_seed in OFF.items()}))["off"]
    assert row["sensitivity"] == pytest.approx(0.3)
    assert (row["lower"], row["upper"]) == (None, None)


def bowl(rates, depth):
    return {lr: [2.0 + depth * k, 2.0 + 1.1 * depth * k] for k, lr in enumerate(rates)}


def test_the_seven_points_of_wortsman_are_found_within_three_hundredths_of_a_decade(measured, arms):
    # 2 per decade in equal steps: 10^-3.5 = 3.16e-4 lies 0.023 decades from 3e-4.
    rates = [10 ** (-3.5 + k / 2) for k in range(7)]
    found = measured(arms(off=bowl(rates, 0.1)), grid="wortsman")
    assert found["off"]["sensitivity"] == pytest.approx((0.3 + 0.33) / 2)
    away = [3.3e-4, *rates[1:]]  # 0.041 decades
    assert measured(arms(off=bowl(away, 0.1)), grid="wortsman") == {}
    assert measured(arms(off=bowl(rates[1:], 0.1)), grid="wortsman") == {}


def test_wortsmans_points_count_inside_a_wider_grid(measured, arms):
    wider = [1e-4, *WORTSMAN, 1.0]
    losses = arms(off=bowl(wider, 0.1))
    assert measured(losses)["off"]["sensitivity"] == pytest.approx((0.4 + 0.44) / 2)
    of_seven = measured(losses, grid="wortsman")["off"]
    assert of_seven["sensitivity"] == pytest.approx((0.3 + 0.33) / 2)


@pytest.mark.parametrize("first", [2.81e-4, 3e-4, 3.2e-4])
def test_wortsmans_points_count_whatever_else_the_grid_holds(measured, arms, first):
    """The points are those of the paper: their own unevenness and an extra rate change nothing."""
    points = (first, *WORTSMAN[1:])
    losses = arms(off=bowl(points, 0.1) | {2e-2: [2.0, 2.0]})
    assert measured(losses)["off"]["sensitivity"] is None
    row = measured(losses, grid="wortsman")["off"]
    assert row["sensitivity"] == pytest.approx((0.3 + 0.33) / 2)


def test_depths_and_settings_are_measured_apart(row, frame, findings):
    rows = [
        row(2.0 + k * step, train__peak_lr=lr, model__n_layer=n_layer, train__z_loss=z_loss)
        | {"trial_id": f"{n_layer}-{z_loss}-{lr}"}
        for n_layer, z_loss, step in ((2, 0.0, 0.1), (4, 0.0, 0.2), (2, 1e-4, 0.3))
        for k, lr in enumerate(DECADES)
    ]
    found = findings(frame(rows)).sensitivities
    assert found.select("control", "n_layer", "sensitivity").rows() == [
        ("z_loss=0.0", 2, pytest.approx(0.1)),
        ("z_loss=0.0", 4, pytest.approx(0.2)),
        ("z_loss=0.0001", 2, pytest.approx(0.3)),
    ]


def test_an_arm_of_which_nothing_has_finished_keeps_its_row(sweep, judged, arms, trial):
    outcomes = judged(arms(off=OFF))
    plan = [
        (f"{arm}-2-{lr:g}-{seed}", trial(arm, train__peak_lr=lr, seed=seed))
        for arm in ("off", "on")
        for lr in DECADES
        for seed in range(3)
    ]
    found = sensitivities(outcomes, expected_trials(planned(plan), outcomes), DECADES)
    rows = {row["arm"]: row for row in found.iter_rows(named=True)}
    assert rows["off"]["sensitivity"] == pytest.approx(1.3 / 3)
    assert rows["on"]["why"] == "no seed has finished at every learning rate"
    assert rows["on"]["left_out"] == [0, 1, 2]


loss = st.none() | st.floats(1.0, 3.5)


@settings(max_examples=40)
@given(
    st.lists(st.lists(loss, min_size=3, max_size=3), min_size=2, max_size=5),
    st.lists(st.floats(1.0, 3.5), min_size=0, max_size=2),
)
def test_a_seed_with_missing_cells_changes_no_other_seed(judged, whole, partial):
    """Its cells move the reference of the arm, and nothing that is said of another seed."""
    of_rate = dict(zip(DECADES, zip(*whole, strict=True), strict=True))
    if min(x or 5.5 for of_seed in of_rate.values() for x in of_seed) > 3:
        of_rate |= {DECADES[0]: [2.0] * len(whole)}
    before = {("off", lr): list(x) for lr, x in of_rate.items()}
    after = {
        (arm, lr): [*x, *partial[k : k + 1]] for k, ((arm, lr), x) in enumerate(before.items())
    }
    expected = {cell: [*x, 2.0] for cell, x in before.items()}
    rows = []
    for losses, planned_losses in ((before, before), (after, expected)):
        outcomes = judged(losses)
        plan = expected_trials(judged(planned_losses), outcomes)
        rows.append(sensitivities(outcomes, plan, None).row(0, named=True))
    if rows[0]["why"] or rows[1]["why"]:
        return
    names = ("sensitivity", "lower", "upper", "n_seed", "of_mean_curve")
    assert [rows[0][name] for name in names] == [rows[1][name] for name in names]
    assert rows[1]["left_out"] == [len(whole)]


@settings(max_examples=40)
@given(st.lists(st.lists(loss, min_size=3, max_size=3), min_size=1, max_size=5))
def test_a_sensitivity_is_that_of_the_definition_and_every_d0_is_in_it(judged, seeds):
    losses = {("off", lr): list(x) for lr, x in zip(DECADES, zip(*seeds, strict=True), strict=True)}
    outcomes = judged(losses)
    row = sensitivities(outcomes, expected_trials(outcomes, outcomes), None).row(0, named=True)
    curves = np.array([[5.5 if x is None else x for x in of_seed] for of_seed in seeds])
    if curves.mean(axis=0).min() >= 4.0:
        assert row["sensitivity"] is None
        return
    assert row["n_seed"] == len(seeds)
    assert row["sensitivity"] == pytest.approx(
        float((curves.mean(axis=1) - curves.min(axis=1)).mean()), abs=1e-9
    )


def test_differences_by_seed_are_those_of_the_table(judged, arms):
    outcomes = judged(arms(off=OFF, on=ON))
    found = seed_differences(measure(outcomes, expected_trials(outcomes, outcomes), None))
    assert found["", 2, "on"] == pytest.approx({0: 0.2, 1: 0.7 / 3, 2: 1.4 / 3})
    assert found["", 2, "off"] == {}


def test_nothing_expected_is_an_empty_table(judged):
    none = judged({("off", 0.01): [2.0]}).clear()
    found = sensitivities(none, expected_trials(none, none), None)
    assert found.is_empty()
    assert isinstance(found, pl.DataFrame)
