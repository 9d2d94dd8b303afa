from math import sqrt

import pytest
from scipy import stats

from redline.analysis.optimum import optima

RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
T_975_2 = 4.302653


@pytest.fixture
def optimum(judged, arms):
    """Losses by rate of each arm -> the rows of optima by arm."""

    def run(**of_arms):
        found = optima(judged(arms(**of_arms)))
        return {row["arm"]: row for row in found.iter_rows(named=True)}

    return run


SEEDS = (-0.01, 0.0, 0.01)


def curve(*means, seeds=SEEDS):
    """The seeds scatter in the same way everywhere but for a ripple that differs by rate."""
    return {
        lr: [mean + s + 0.004 * ((k * 2 + seed) % 3) for seed, s in enumerate(seeds)]
        for k, (lr, mean) in enumerate(zip(RATES, means, strict=False))
    }


def test_an_optimum_is_the_lowest_seed_mean_with_its_neighbours(optimum):
    row = optimum(off=curve(2.6, 2.3, 2.0, 2.3, 2.6))["off"]
    assert row["optimum_lr"] == 1e-2
    assert row["reference_loss"] == pytest.approx(2.004)
    assert (row["lower_lr"], row["upper_lr"], row["at_end"]) == (3e-3, 3e-2, "")


def test_an_interval_holds_every_rate_that_is_not_significantly_worse(optimum):
    # At 0.1 the three differences are 0.00, 0.05, 0.01: mean 0.02, t = 1.31, p = 0.16.
    best = [2.0, 2.01, 2.02]
    losses = {1e-3: [3.0, 3.1, 3.2], 3e-3: [2.5, 2.6, 2.7], 1e-2: best, 3e-2: [2.3, 2.4, 2.35]}
    row = optimum(off=losses | {1e-1: [2.0, 2.06, 2.03]})["off"]
    p = stats.ttest_1samp([0.0, 0.05, 0.01], 0, alternative="greater").pvalue
    assert p > 0.05
    assert row["optimum_lr"] == 1e-2
    assert (row["lower_lr"], row["upper_lr"]) == (3e-3, 1e-1)


@pytest.mark.parametrize(("spread", "upper"), [(0.058, 3e-2), (0.061, 1e-1)])
def test_significantly_worse_is_a_one_sided_paired_test_at_a_twentieth(optimum, spread, upper):
    """Differences 0.1 - s, 0.1, 0.1 + s against t(.95, 2) = 2.92: s = 0.1 sqrt(3) / 2.92 = 0.0593.

    A test of two sides would keep the rate from s = 0.0403 on, one without pairs at any of these.
    """
    scatter = (0.0, 0.5, 1.0)
    away = [2.1 + s + d for s, d in zip(scatter, (-spread, 0.0, spread), strict=True)]
    losses = {lr: [3.0 + s for s in scatter] for lr in RATES[:2]}
    losses |= {1e-2: [2.0 + s for s in scatter], 3e-2: [2.4 + s for s in scatter], 1e-1: away}
    assert optimum(off=losses)["off"]["upper_lr"] == upper


@pytest.mark.parametrize(
    ("means", "at_end"),
    [
        ((2.0, 2.3, 2.6), "lowest"),
        ((2.6, 2.3, 2.0), "highest"),
        ((2.3, 2.0, 2.3), ""),
        ((2.0,), "only"),
    ],
)
def test_an_optimum_at_an_end_of_the_grid_is_censored(optimum, means, at_end):
    assert optimum(off=curve(*means))["off"]["at_end"] == at_end


def test_ties_go_to_the_lowest_lr(optimum):
    row = optimum(off={1e-2: [2.0, 2.1], 1e-3: [2.1, 2.0], 1e-1: [3.0, 3.1]})["off"]
    assert row["optimum_lr"] == 1e-3


def test_a_dead_seed_counts_in_the_choice_at_its_initial_loss(optimum):
    # 0.01 is better in the seeds that lived, and its mean with the dead one is not.
    row = optimum(off={1e-3: [2.2, 2.2, 2.2], 1e-2: [2.0, 2.0, None]})["off"]
    assert row["optimum_lr"] == 1e-3


def test_one_seed_has_its_neighbours_and_no_loss_at_a_rate_that_others_chose(optimum):
    row = optimum(off={lr: [x] for lr, x in zip(RATES, (2.6, 2.3, 2.0, 2.3, 2.6), strict=True)})
    assert (row["off"]["lower_lr"], row["off"]["upper_lr"]) == (3e-3, 3e-2)
    assert (row["off"]["own_best_loss"], row["off"]["n_seed"]) == (None, 0)


def test_the_loss_at_the_own_best_lr_is_chosen_on_the_other_seeds(optimum):
    """Each seed is lucky somewhere, and the others send it elsewhere.

    Summed over the others, the three rates have 4.6, 4.2, 4.4 for seed 0, which goes to 0.003, and
    3.6, 4.5, 4.9 for seed 1 and 4.2, 4.3, 4.3 for seed 2, which go to 0.001.
    """
    losses = {1e-3: [1.6, 2.6, 2.0], 3e-3: [2.3, 2.0, 2.2], 1e-2: [2.4, 1.9, 2.5]}
    row = optimum(off=losses)["off"]
    chosen = [2.3, 2.6, 2.0]
    assert row["reference_loss"] == pytest.approx(6.2 / 3)
    assert row["own_best_loss"] == pytest.approx(sum(chosen) / 3)
    assert row["own_best_sd"] == pytest.approx(0.3)
    assert row["n_seed"] == 3


def test_arms_are_compared_each_at_its_own_best_lr(optimum):
    # off is best at 0.001 and on at 0.01, clearly: chosen by the others, each seed is there too.
    off = {1e-3: [2.1, 2.2, 2.3], 1e-2: [3.0, 3.0, 3.0]}
    on = {1e-3: [3.0, 3.0, 3.0], 1e-2: [2.0, 2.0, 2.0]}
    rows = optimum(off=off, on=on)
    assert rows["on"]["own_delta"] == pytest.approx(0.2)
    # The seeds choose on one another: the variance of their mean grows by 3 tested over 2 choosing.
    half = T_975_2 * 0.1 / sqrt(3) * sqrt(1 + 3 / 2)
    limits = (rows["on"]["own_delta_lower"], rows["on"]["own_delta_upper"])
    assert limits == pytest.approx((0.2 - half, 0.2 + half), abs=1e-6)
    assert rows["off"]["own_delta"] is None


def test_arms_of_other_settings_are_not_compared(row, frame, findings):
    rows = [
        row(2.0 + 0.1 * seed + (arm == "off"), arm=arm, seed=seed, **change)
        for arm, change in (("off", {}), ("on", {"train__z_loss": 1e-4}))
        for seed in range(3)
    ]
    assert findings(frame(rows)).optima["own_delta"].to_list() == [None, None]


def test_a_seed_with_missing_cells_takes_no_rate_from_the_others(optimum):
    """Seed 3 has only begun, at the lowest rate: the loss of the first three stays where it was.

    Dropping the rates that it lacks would leave 0.001 alone, where all are half a nat worse.
    """
    whole = {1e-3: [2.5, 2.6, 2.7], 1e-2: [2.0, 2.1, 2.2], 1e-1: [2.4, 2.5, 2.6]}
    before = optimum(off=whole)["off"]
    after = optimum(off=whole | {1e-3: [2.5, 2.6, 2.7, 2.6]})["off"]
    assert before["own_best_loss"] == pytest.approx(2.1)
    assert after["own_best_loss"] == pytest.approx(2.1)
    assert after["n_seed"] == 3


def test_a_rate_of_which_a_seed_is_missing_can_still_be_the_best(optimum):
    losses = {1e-3: [2.5, 2.6, 2.7], 1e-2: [2.0, 2.1], 1e-1: [2.4, 2.5, 2.6]}
    row = optimum(off=losses)["off"]
    assert row["own_best_loss"] == pytest.approx(2.05)
    assert row["n_seed"] == 2


def test_a_refined_point_moves_no_reference(findings, sweep, arms):
    """R and LR_opt are of the registered grid: more tries find a lower loss by luck."""
    coarse = {1e-3: [2.3, 2.31, 2.33], 1e-2: [2.0, 2.02, 2.01], 1e-1: [2.2, 2.24, 2.21]}
    refined = coarse | {2e-2: [1.9, 1.91, 1.93]}
    found = findings(sweep(arms(off=refined, on=refined)), registered=(1e-3, 1e-2, 1e-1))
    assert set(found.optima["optimum_lr"]) == {1e-2}
    assert set(found.trials["reference_loss"].round(6)) == {2.01}


def test_an_arm_that_never_began_has_no_row(frame, row, findings):
    dead = row(None) | {"init_loss": float("nan"), "non_finite": "loss", "non_finite_step": 0}
    assert findings(frame([dead, row(2.0, arm="on")])).optima["arm"].to_list() == ["on"]
