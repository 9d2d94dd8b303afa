"""The campaign of planted studies, reduced: its full table is in docs/measurements.md."""

import numpy as np
import polars as pl
import pytest

planted = pytest.importorskip("planted", reason="tools/ is not in this distribution")
simulate = pytest.importorskip("simulate", reason="tools/ is not in this distribution")

N_STUDY = 60


@pytest.fixture(scope="module")
def campaign():
    return simulate.simulate(N_STUDY, (3, 6), 1, 7)


def test_intervals_hold_the_truth_where_their_model_does(campaign):
    """The bound leaves room for a reduced campaign: a study's intervals err together."""
    intervals, _ = campaign
    held = intervals.filter(
        pl.col("group") == simulate.REQUIRED, ~pl.col("quantity").str.contains("bootstrap")
    )
    assert held.height > 500
    by_quantity = held.group_by("quantity").agg(pl.len(), pl.col("covered").mean())
    for quantity, n, covered in by_quantity.filter(pl.col("len") >= 50).iter_rows():
        assert covered > 0.88, f"{quantity}: {covered:.3f} of {n}"
    assert held["covered"].mean() > 0.93


def test_a_percentile_bootstrap_of_few_seeds_does_not(campaign):
    """Why none is drawn below ten seeds."""
    intervals, _ = campaign
    held = intervals.filter(pl.col("quantity").str.contains("bootstrap"))
    assert held["covered"].mean() < 0.75


def test_a_false_hypothesis_is_seldom_supported_and_a_true_one_often(campaign):
    _, verdicts = campaign
    for name, n_seed, n_false, wrongly, n_true, rightly in simulate.verdict_table(
        verdicts
    ).iter_rows():
        assert n_false > 10
        assert wrongly <= 10, f"{name} with {n_seed} seeds"
        assert n_true > 5
        assert rightly > 10, f"{name} with {n_seed} seeds"


def test_two_seeds_support_nothing():
    _, verdicts = simulate.simulate(10, (2,), 1, 3)
    assert (verdicts["verdict"] == "undecided").all()


def test_the_same_arguments_give_the_same_numbers_on_any_number_of_workers():
    one, two = (simulate.simulate(60, (3,), workers, 5) for workers in (1, 2))
    assert one[0].equals(two[0])
    assert one[1].equals(two[1])


def test_the_truth_of_a_world_is_what_many_of_its_seeds_show():
    random = np.random.default_rng(0)
    world = next(
        world
        for world in (planted.draw_world(random, 3) for _ in range(200))
        if (world.scenario, world.shape, world.extra) == ("effect", "sharp", "")
    )
    losses = planted.capped(planted.draw_losses(world, random, 20_000))
    known = planted.truth(world, random)
    assert known.mean == pytest.approx(losses.mean(axis=3), abs=0.15)
    # Above the best LR a seed fails from its threshold on, which the mean failing rate straddles.
    failed = losses > losses.min(axis=2, keepdims=True) + planted.DEGRADED
    failed &= (world.rates > world.best)[:, None]
    step = world.rates[1] - world.rates[0]
    middle = world.rates[failed.argmax(axis=2)].mean(axis=2) - step / 2
    inside = failed.any(axis=2).all(axis=2)
    assert inside.any()
    assert middle[inside] == pytest.approx(world.theta[inside], abs=0.05)
