from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.config.trial import QKNorm
from redline.execute.order import balanced, coarse_to_fine, fitting, without_arm

ARMS = {"off": None, "on": QKNorm()}
GRID = [1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1]


@pytest.fixture
def study(make_trial):
    """Ids in another order than they are trained in: arms outermost, seeds innermost."""
    trials = {}
    for arm in ("off", "on"):
        for n_layer in (2, 4):
            for rate in GRID:
                for seed in (0, 1):
                    made = make_trial(
                        model__qk_norm=ARMS[arm],
                        seed=seed,
                        model__n_layer=n_layer,
                        train__peak_lr=rate,
                    )
                    trials[f"{arm}-{n_layer}-{rate:g}-{seed}"] = made
    return trials


def test_a_grid_runs_from_its_ends_to_what_lies_between():
    assert coarse_to_fine(GRID) == [1e-3, 3e-1, 1e-2, 3e-3, 3e-2, 1e-1]
    assert coarse_to_fine([1.0, 2.0]) == [1.0, 2.0]
    assert coarse_to_fine([]) == []


@given(st.lists(st.floats(1e-5, 1), unique=True, max_size=40))
def test_every_value_comes_once_and_no_prefix_leaves_a_wide_gap(values):
    grid = sorted(values)
    order = coarse_to_fine(grid)
    assert sorted(order) == grid
    for n in range(2, len(order) + 1):
        places = sorted(map(grid.index, order[:n]))
        gaps = [b - a for a, b in pairwise(places)]
        assert max(gaps) <= 2 * -(-len(grid) // (n - 1)) + 1


def test_seeds_come_one_after_another_and_pairs_stay_together(study):
    order = [study[trial_id] for trial_id in balanced(study)]
    assert [trial.seed for trial in order] == [0] * 24 + [1] * 24
    for first, second in zip(order[::2], order[1::2], strict=True):
        assert (first.model.arm, second.model.arm) == ("off", "on")
        assert without_arm(first) == without_arm(second)


def test_a_prefix_has_every_depth_at_the_coarse_rates_before_a_finer_one(study):
    order = [study[trial_id] for trial_id in balanced(study)]
    seen = [(t.train.peak_lr, t.model.n_layer) for t in order[:24:2]]
    assert seen[:4] == [(1e-3, 2), (1e-3, 4), (3e-1, 2), (3e-1, 4)]


@pytest.mark.parametrize("worker_s", [0.0, 5.9, 6.0, 47.0, 143.9, 144.0, 1e9])
def test_what_fits_is_whole_pairs_and_the_rest_is_left_out(study, worker_s):
    ids = balanced(study)
    found = fitting(ids, study, lambda trial: 3.0, worker_s)
    assert [*found.ids, *found.left_out] == ids
    assert len(found.ids) % 2 == 0
    assert found.seconds == 3.0 * len(found.ids) <= worker_s
    assert worker_s < found.seconds + 6.0 or not found.left_out


def test_no_trial_is_taken_after_the_first_that_does_not_fit(study):
    """A prefix is a prefix: a cheap trial behind a dear one would break the balance."""
    ids = balanced(study)
    dear = study[ids[2]]
    cost = lambda trial: 100.0 if without_arm(trial) == without_arm(dear) else 1.0  # noqa: E731
    assert fitting(ids, study, cost, 50.0).ids == tuple(ids[:2])
