from math import inf, log10

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from redline.analysis.threshold import (
    estimate_text,
    interval_text,
    seed_thresholds,
    thresholds,
    tiers,
)
from redline.config.analysis import Analysis

RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)


@pytest.fixture(scope="session")
def flagged():
    """Outcomes of one arm from unstable or not, by seed and ascending rate; None is missing.

    The best LR is the lowest, so that every outcome is one of those that the split is made of.
    """

    def run(*seeds, rates=RATES, n_layer=2):
        rows = [
            {
                "control": "",
                "n_layer": n_layer,
                "arm": "off",
                "peak_lr": rate,
                "seed": seed,
                "unstable": bool(flag),
                "diverged": bool(flag),
                "d2_0.1": False,
                "below_noise_0.1": False,
                "d2_0.3": False,
                "below_noise_0.3": False,
                "final_loss": 2.0,
                "best_loss": 2.0,
                "optimum_lr": rates[0],
            }
            for seed, flags in enumerate(seeds)
            for rate, flag in zip(rates, flags, strict=False)
            if flag is not None
        ]
        return pl.DataFrame(rows)

    return run


@pytest.fixture(scope="session")
def limit(analysis):
    """Outcomes -> the row of one tier and arm."""

    def run(table, tier="unstable", arm="off", **options):
        found = thresholds(table, tiers(analysis), **options).filter(tier=tier, arm=arm)
        return found.row(0, named=True)

    return run


def of_seeds(table, analysis, tier="unstable", arm="off"):
    """Seed -> (lower, upper, misfits)."""
    found = seed_thresholds(table, tiers(analysis)).filter(tier=tier, arm=arm)
    return {
        seed: tuple(rest)
        for seed, *rest in found.select("seed", "lower_lr", "upper_lr", "n_misfit").rows()
    }


def split(rates, flags):
    """The definition: of all cuts those with the fewest misfits, from the lowest to the highest."""
    cuts = range(len(rates) + 1)
    misfits = [sum(flags[:k]) + sum(not flag for flag in flags[k:]) for k in cuts]
    best = [k for k in cuts if misfits[k] == min(misfits)]
    lower = rates[best[0] - 1] if best[0] > 0 else -inf
    upper = rates[best[-1]] if best[-1] < len(rates) else inf
    return lower, upper, min(misfits)


flags = st.lists(st.sampled_from([True, False, None]), min_size=5, max_size=5).filter(
    lambda of_seed: any(flag is not None for flag in of_seed)
)


@given(st.lists(flags, min_size=1, max_size=5))
def test_a_split_has_the_fewest_misfits_of_all_and_ties_widen_it(flagged, analysis, seeds):
    """Against the definition by brute force; what is missing is left out, which widens too."""
    found = of_seeds(flagged(*seeds), analysis)
    for seed, of_seed in enumerate(seeds):
        known = [(rate, f) for rate, f in zip(RATES, of_seed, strict=True) if f is not None]
        assert found[seed] == split([rate for rate, _ in known], [f for _, f in known])


@pytest.mark.parametrize(
    ("of_seed", "expected"),
    [
        ([0, 0, 1, 1, 1], (3e-3, 1e-2, 0)),
        ([0, 0, 0, 0, 0], (1e-1, inf, 0)),
        ([1, 1, 1, 1, 1], (-inf, 1e-3, 0)),
        # No single first failure decides: one misfit at 0.003, then a clean edge.
        ([0, 1, 0, 0, 1], (3e-2, 1e-1, 1)),
        # Before the failure, or after the recovery: both leave one misfit.
        ([0, 1, 0, 1, 1], (1e-3, 3e-2, 1)),
        ([0, 1, 1, 0, 0], (1e-3, inf, 2)),
        ([0, 0, None, 1, 1], (3e-3, 3e-2, 0)),
        ([0, 0, 0, None, None], (1e-2, inf, 0)),
    ],
)
def test_splits_by_hand(flagged, analysis, of_seed, expected):
    known = [None if flag is None else bool(flag) for flag in of_seed]
    assert of_seeds(flagged(known), analysis) == {0: expected}


def test_the_row_of_an_arm_is_its_median_seed(flagged, limit):
    row = limit(flagged([0, 0, 1, 1, 1], [0, 0, 0, 1, 1], [0, 0, 0, 0, 0]))
    assert (row["lower_lr"], row["upper_lr"]) == (1e-2, 3e-2)
    assert (row["lowest_lr"], row["highest_lr"]) == (3e-3, None)
    assert (row["tested_from"], row["tested_to"], row["n_seed"]) == (1e-3, 1e-1, 3)
    assert (row["n_misfit"], row["censored"]) == (0, "")


def test_an_even_number_of_seeds_takes_the_wider_of_both_middles(flagged, limit):
    row = limit(flagged([0, 1, 1, 1, 1], [0, 0, 0, 1, 1]))
    assert (row["lower_lr"], row["upper_lr"]) == (1e-3, 3e-2)


@pytest.mark.parametrize(
    ("seeds", "censored", "lower", "upper"),
    [
        ([[0, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 1, 1, 1]], ">=", 1e-1, None),
        ([[0, 0, 0, 0, 0], [0, 0, 1, 1, 1]], ">=", 3e-3, None),
        ([[1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [0, 0, 1, 1, 1]], "<", None, 1e-3),
        ([[1, 1, 1, 1, 1], [0, 0, 0, 0, 0]], "?", None, None),
        ([[0, 0, 0, 0, 0], [0, 0, 1, 1, 1], [0, 0, 1, 1, 1]], "", 3e-3, 1e-2),
    ],
)
def test_half_of_the_seeds_beyond_an_end_leave_it_open(
    flagged, limit, seeds, censored, lower, upper
):
    row = limit(flagged(*seeds))
    assert (row["censored"], row["lower_lr"], row["upper_lr"]) == (censored, lower, upper)


def test_case_a02_all_stable_and_all_unstable_are_bounds_and_no_numbers(flagged, limit):
    """A02 (Lightning-AI/pytorch-lightning#10557): no candidate was left, and None became an LR.

    The estimate keeps the bound that the grid gives. A point between the top of the grid and the
    end of a prior would be a number that nothing measured.
    """
    for n_seed in (3, 12):
        fine = limit(flagged(*[[0] * 5] * n_seed))
        assert interval_text(fine) == ">= 0.1 (highest tested)"
        assert estimate_text(fine) == ">= 0.1"
        assert (fine["estimate_censored"], fine["estimate_upper"]) == (">=", None)
        assert (fine["estimate_lr"], fine["ed10_lr"], fine["spearman_karber_lr"]) == (None,) * 3
        dead = limit(flagged(*[[1] * 5] * n_seed))
        assert interval_text(dead) == "none: below 0.001 (lowest tested)"
        assert estimate_text(dead) == "<= 0.001"
        assert (dead["estimate_censored"], dead["estimate_lower"]) == ("<", None)
        assert (dead["estimate_lr"], dead["ed10_lr"], dead["spearman_karber_lr"]) == (None,) * 3


def test_words_for_an_interval_inside_the_grid_and_for_none(flagged, limit):
    assert interval_text(limit(flagged([0, 0, 1, 1, 1]))) == "between 0.003 and 0.01"
    assert interval_text(limit(flagged([0] * 5, [1] * 5))).startswith("unknown")
    # Half of the seeds hold to the top, and the other half not even to 0.01.
    assert interval_text(limit(flagged([0] * 5, [0, 0, 1, 1, 1]))) == ">= 0.003"


TIERS = {
    # Own best of off 2.0 at 0.001; on reaches 1.6, so usable of off ends at 1.9.
    "diverged": (3e-2, 1e-1),
    "unstable": (1e-2, 3e-2),
    "degraded_0.1": (3e-3, 1e-2),
    "usable": (1e-3, 3e-3),
}


@pytest.mark.parametrize("tier", TIERS)
def test_every_tier_by_hand(judged, limit, arms, tier):
    seeds = (-0.01, 0.0, 0.01)
    off = {1e-3: 2.0, 3e-3: 2.05, 1e-2: 2.2, 3e-2: 2.4, 1e-1: 4.5}
    losses = arms(
        off={lr: [loss + s for s in seeds] for lr, loss in off.items()},
        on={lr: [1.6 + s for s in seeds] for lr in off},
    )
    row = limit(judged(losses), tier)
    assert (row["lower_lr"], row["upper_lr"]) == TIERS[tier]
    assert limit(judged(losses), tier, "on")["censored"] == ">="


def test_a_quality_gap_limits_the_usable_lr_alone(judged, limit, arms):
    """Above its best LR the plain arm is 0.4 nat above the other one, and as steady as can be."""
    seeds = (-0.01, 0.0, 0.01)
    losses = arms(
        off={lr: [2.0 + 0.01 * (lr > 1e-3) + s for s in seeds] for lr in RATES},
        on={lr: [1.6 + s for s in seeds] for lr in RATES},
    )
    table = judged(losses)
    assert limit(table, "usable")["upper_lr"] == 3e-3
    assert limit(table, "unstable")["censored"] == ">="


def test_one_seed_has_an_interval_in_every_tier(judged, limit):
    """Its noise is unknown, which is no reason to call a worse loss stable or to hide a rate."""
    losses = {
        ("off", lr): [loss] for lr, loss in zip(RATES, (2.0, 2.2, 2.4, 4.5, None), strict=True)
    }
    table = judged(losses)
    assert (limit(table)["lower_lr"], limit(table)["upper_lr"]) == (3e-3, 1e-2)
    degraded = limit(table, "degraded_0.1")
    assert (degraded["lower_lr"], degraded["upper_lr"]) == (1e-3, 3e-3)
    assert (degraded["tested_from"], degraded["tested_to"]) == (1e-3, 1e-1)


def test_one_seed_has_no_estimate(judged, limit):
    row = limit(
        judged({("off", lr): [loss] for lr, loss in zip(RATES, (2.0, 2.0, 2.4), strict=False)})
    )
    names = ("estimate_lr", "estimate_lower", "estimate_upper", "ed10_lr")
    assert [row[name] for name in names] == [None] * 4
    assert estimate_text(row) == ""


NOISY = {1e-3: [2.0, 2.2, 1.8], 1e-2: [2.5, 2.6, 2.4]}  # sd 0.2: 0.3 and 0.1 lie below 3 sd


@pytest.mark.parametrize("tier", ["unstable", "degraded_0.1"])
def test_a_loss_below_noise_decides_nothing_and_so_not_that_a_rate_is_stable(judged, limit, tier):
    """Every seed at 0.01 ends 0.4 to 0.6 nat above the best; noise leaves open what that means.

    Such an outcome widens the interval as a missing one does. 0.01 has been tested all the same.
    """
    row = limit(judged({("off", lr): of_seed for lr, of_seed in NOISY.items()}), tier)
    assert (row["lower_lr"], row["upper_lr"], row["censored"]) == (1e-3, None, ">=")
    assert row["tested_to"] == 1e-2
    assert interval_text(row) == ">= 0.001"


def test_a_diverged_trial_is_unstable_however_much_the_seeds_scatter(judged, limit):
    losses = NOISY | {1e-1: [None, None, 4.9]}
    row = limit(judged({("off", lr): of_seed for lr, of_seed in losses.items()}))
    assert row["upper_lr"] == 1e-1


LOW_D0 = {1e-3: [None, None, 2.3], 3e-3: [2.0, 2.01, 2.02], 1e-2: [None, None, None]}


def test_a_d0_below_the_best_lr_moves_no_limit_and_is_no_misfit(judged, analysis, limit):
    """The split is made of the outcomes above LR_opt; what happened below it is another story.

    Two seeds died at 0.001, and all hold at 0.003, the best LR of the arm: stable up to there.
    """
    table = judged({("off", lr): of_seed for lr, of_seed in LOW_D0.items()})
    assert set(table["optimum_lr"]) == {3e-3}
    assert table.filter(peak_lr=1e-3)["unstable"].sum() == 2
    assert of_seeds(table, analysis) == dict.fromkeys(range(3), (3e-3, 1e-2, 0))
    assert interval_text(limit(table)) == "between 0.003 and 0.01"
    assert limit(table)["spearman_karber_lr"] == pytest.approx((3e-3 * 1e-2) ** 0.5)


def test_grids_that_differ_by_arm_are_their_own_for_thresholds(judged, limit, arms):
    fine = [2.0, 2.01, 2.02]
    table = judged(arms(off={1e-3: fine, 1e-2: [None] * 3}, on={1e-3: fine, 1e-2: fine, 0.1: fine}))
    assert limit(table)["tested_to"] == 1e-2
    assert interval_text(limit(table, arm="on")) == ">= 0.1 (highest tested)"


def test_spearman_and_karber_by_hand(flagged, limit):
    # Shares 0, 1/3, 1 at 1e-3, 1e-2, 1e-1: a third of the mass at -2.5 and two thirds at -1.5.
    rates = (1e-3, 1e-2, 1e-1)
    row = limit(flagged([0, 0, 1], [0, 1, 1], [0, 0, 1], rates=rates))
    assert log10(row["spearman_karber_lr"]) == pytest.approx(-2.5 / 3 - 1.5 * 2 / 3)
    # A share that falls is pooled: 1/3 and 0 become 1/6 each.
    row = limit(flagged([0, 1, 0, 1], [0, 0, 0, 1], [0, 0, 0, 1], rates=(1e-4, *rates)))
    assert log10(row["spearman_karber_lr"]) == pytest.approx((-3.5 - 1.5 * 5) / 6)


def by_quadrature(ends, low, high, scale):
    """The posterior of mu as section 7 defines it, summed on a fine grid of mu and sigma."""
    mu = np.linspace(low, high, 601)
    sigma = np.geomspace(1e-3, 30, 400)
    prior = stats.t.pdf(sigma / scale, 3) * np.gradient(sigma)
    likelihood = np.ones((len(sigma), len(mu)))
    for lower, upper in ends:
        z_low, z_high = ((end - mu) / sigma[:, None] for end in (lower, upper))
        likelihood *= stats.norm.cdf(z_high) - stats.norm.cdf(z_low)
    cumulative = np.cumsum((prior[:, None] * likelihood).sum(axis=0))
    return [float(np.interp(q, cumulative / cumulative[-1], mu)) for q in (0.025, 0.5, 0.975)]


@pytest.mark.parametrize("scale", [0.075, 0.15, 0.3])
@pytest.mark.parametrize(
    "seeds",
    [
        [[0, 0, 1, 1, 1], [0, 0, 0, 1, 1], [0, 0, 1, 1, 1]],
        [[0, 0, 1, 1, 1], [0, 0, 0, 1, 1], [0, 1, 1, 1, 1], [0, 0, 0, 0, 1], [0, 0, 1, 1, 1]],
        [[0, 0, 0, 1, 1], [0, 0, 0, 0, 1], [0, 0, 0, 0, 0], [0, 0, 0, 0, 1], [0, 0, 0, 1, 1]],
    ],
)
def test_an_estimate_is_the_posterior_by_quadrature(flagged, limit, seeds, scale):
    rates = tuple(10.0**k for k in (-3.0, -2.5, -2.0, -1.5, -1.0))
    row = limit(flagged(*seeds, rates=rates), scale=scale)
    ends = [tuple(map(log_of, split(rates, of_seed)[:2])) for of_seed in seeds]
    lower, middle, upper = by_quadrature(ends, -3.5, -0.5, scale)
    assert log10(row["estimate_lower"]) == pytest.approx(lower, abs=0.03)
    assert log10(row["estimate_upper"]) == pytest.approx(upper, abs=0.03)
    # Where the interval leaves the grid, the median is no statement.
    if abs(upper + 1) > 0.03:
        assert row["estimate_censored"] == (">=" if upper > -1 else "")
    if not row["estimate_censored"]:
        assert log10(row["estimate_lr"]) == pytest.approx(middle, abs=0.03)


def log_of(rate):
    return rate if abs(rate) == inf else log10(rate)


def test_seeds_of_one_grid_interval_say_no_more_than_that_interval(flagged, limit):
    row = limit(flagged(*[[0, 0, 1, 1, 1]] * 9))
    assert row["estimate_lower"] <= 3e-3 * (1 + 1e-12)
    assert row["estimate_upper"] >= 1e-2 * (1 - 1e-12)


def test_ed10_comes_with_ten_seeds_and_lies_below_the_mean(flagged, limit):
    of_seed = [[0, 0, 1, 1, 1], [0, 0, 0, 1, 1]]
    assert limit(flagged(*of_seed * 4, of_seed[0]))["ed10_lr"] is None
    row = limit(flagged(*of_seed * 5))
    assert row["ed10_lr"] < row["estimate_lr"]


def test_an_estimate_in_words(flagged, limit):
    row = limit(flagged([0, 0, 1, 1, 1], [0, 0, 0, 1, 1], [0, 0, 1, 1, 1]))
    low, middle, high = (row[f"estimate_{name}"] for name in ("lower", "lr", "upper"))
    assert estimate_text(row) == f"{middle:.2g} ({low:.2g} to {high:.2g})"


def test_thresholds_of_nothing_are_an_empty_table(judged, analysis):
    found = thresholds(judged({("off", 0.01): [2.0]}).clear(), tiers(analysis))
    assert found.is_empty()
    assert "estimate_lr" in found.columns


def test_deltas_are_arguments_and_name_the_tiers(judged):
    three = Analysis(delta=(0.02, 0.1, 0.3), failed_margin=0.3, m_nec=0.1, m_eq=0.05)
    table = judged({("off", 1e-3): [2.0, 2.001], ("off", 1e-2): [2.05, 2.051]}, analysis=three)
    found = thresholds(table, tiers(three))
    upper = dict(found.select("tier", "upper_lr").rows())
    assert upper == {
        "unstable": None,
        "diverged": None,
        "degraded_0.02": 1e-2,
        "degraded_0.1": None,
        "usable": None,
    }


@pytest.mark.parametrize(("n_seed", "sd"), [(3, 0.05), (3, 0.15), (6, 0.15), (10, 0.15)])
def test_a_planted_mean_threshold_lies_in_its_interval(flagged, analysis, n_seed, sd):
    """200 arms whose seeds break at a normal log10 LR; an open end states its one limit alone."""
    rng = np.random.default_rng(n_seed)
    rates = tuple(10.0**k for k in np.arange(-3.5, -0.4, 0.5))
    truth = rng.uniform(-3, -1, 200)
    breaks = pl.DataFrame(
        {
            "n_layer": np.repeat(np.arange(1, 201), n_seed),
            "seed": np.tile(np.arange(n_seed), 200),
            "at": rng.normal(truth[:, None], sd, (200, n_seed)).ravel(),
        }
    )
    table = flagged(*[[0] * len(rates)] * n_seed, rates=rates).drop("n_layer")
    is_unstable = pl.col("peak_lr").log10() > pl.col("at")
    table = breaks.join(table, on="seed").with_columns(unstable=is_unstable, diverged=is_unstable)
    found = thresholds(table, tiers(analysis)).filter(tier="unstable").sort("n_layer")
    mean = pl.Series(10**truth)
    above = found["estimate_lower"].fill_null(0) <= mean
    below = mean <= found["estimate_upper"].fill_null(1e9)
    open_ = found["estimate_censored"]
    is_true = (above | (open_ == "<")) & (below | (open_ == ">="))
    assert is_true.mean() >= 0.94
    inside = found.filter(estimate_censored="")
    assert inside.height > 100
    width = (inside["estimate_upper"] / inside["estimate_lower"]).log10()
    assert width.median() < 1.2
