import pytest

from redline.analysis.comparable import planned
from redline.analysis.grid import (
    expected_trials,
    full_product,
    is_log_uniform,
    matching,
    missing_trials,
)
from redline.analysis.sensitivity import WORTSMAN


def key(frame):
    return frame.select("arm", "peak_lr", "seed").rows()


@pytest.fixture
def grid(trial):
    """Name -> trial for both arms at two peak LRs and two seeds."""
    return [
        (f"{arm}-2-{lr:g}-{seed}", trial(arm, train__peak_lr=lr, seed=seed))
        for arm in ("off", "on")
        for lr in (0.001, 0.01)
        for seed in (0, 1)
    ]


def test_a_missing_trial_is_a_difference_of_sets_and_no_count(judged, grid):
    """An extra trial never makes up for one that is missing."""
    done = judged({("off", 0.001): [2.0, 2.0], ("off", 0.01): [2.0, 2.0], ("off", 0.1): [2.0, 2.0]})
    done = done.vstack(judged({("on", 0.001): [2.0, 2.0]}).select(done.columns))
    expected = expected_trials(planned(grid), done)
    assert expected.height == done.height == 8
    assert key(missing_trials(expected, done)) == [("on", 0.01, 0), ("on", 0.01, 1)]


def test_a_trial_that_has_not_finished_takes_the_setting_of_its_siblings(row, frame, judge, trial):
    """It has no token hash yet; without this it would be a setting of its own."""
    new = {"token_sha256": "c" * 64}
    rows = [row(2.0), row(2.0, train__z_loss=1e-4) | new | {"trial_id": "z"}]
    done = frame(list(judge(frame(rows)).values()))
    plan = [
        ("off-2-0.01-0", trial()),
        ("todo", trial(seed=1)),
        ("z", trial(train__z_loss=1e-4)),
        ("z todo", trial(seed=1, train__z_loss=1e-4)),
    ]
    expected = expected_trials(planned(plan), done)
    names = dict(expected.select("trial_id", "control").rows())
    assert names["todo"] == names["off-2-0.01-0"] != ""
    assert names["z todo"] == names["z"] == done.filter(trial_id="z")["control"].item()
    assert names["z"] != names["todo"]


def test_a_setting_of_which_nothing_has_finished_has_a_name(judged, trial):
    plan = [("off-2-0.01-0", trial()), ("another setting", trial(train__z_loss=1e-4))]
    expected = expected_trials(planned(plan), judged({("off", 0.01): [2.0]}))
    assert expected["control"].to_list() == ["", "z_loss=0.0001"]


def test_a_sweep_without_a_plan_expects_every_combination(judged, arms):
    done = judged(arms(off={0.001: [2.0, 2.0], 0.01: [2.0]}, on={0.001: [2.0]}))
    every = full_product(done.select("trial_id", "control", "n_layer", "arm", "peak_lr", "seed"))
    assert every.height == 2 * 2 * 2
    assert key(missing_trials(every, done)) == [
        ("off", 0.01, 1),
        ("on", 0.001, 1),
        ("on", 0.01, 0),
        ("on", 0.01, 1),
    ]


def test_the_combinations_of_one_depth_are_not_those_of_another(judged):
    shallow = judged({("off", 0.001): [2.0]})
    deep = judged({("off", 0.01): [2.0, 2.0]}, model__n_layer=4)
    columns = ["trial_id", "control", "n_layer", "arm", "peak_lr", "seed"]
    every = full_product(shallow.select(columns).vstack(deep.select(columns)))
    assert every.select("n_layer", "peak_lr", "seed").rows() == [
        (2, 0.001, 0),
        (4, 0.01, 0),
        (4, 0.01, 1),
    ]


def test_a_row_that_an_export_holds_twice_is_missing_once(row, frame, findings):
    rows = frame([row(2.0), row(2.0, arm="on"), row(2.0, seed=1), row(2.0, arm="on", seed=1)])
    done = rows.head(3)
    found = findings(done, design=rows.vstack(rows.tail(1)), is_whole=False)
    assert found.state == "3 of 4 trials have a result"
    assert found.missing.height == 1


@pytest.mark.parametrize(
    ("rates", "is_even"),
    [
        ([1e-3, 3e-3, 1e-2, 3e-2], True),  # log10 3 = 0.477, 1 - 0.477 = 0.523: 9.6 % apart
        (list(WORTSMAN), True),
        ([1.0, 10.0, 10**2.09], True),  # steps 1 and 1.09
        ([1.0, 10.0, 10**2.11], False),
        ([1.0, 10.0, 10**1.89], False),
        ([1e-3, 2e-3, 1e-2], False),
        ([1e-3, 1e-2, 1e-1, 2e-1], False),
        ([1e-3], True),
        ([], True),
    ],
)
def test_a_grid_is_log_uniform_when_its_steps_agree_within_a_tenth(rates, is_even):
    assert is_log_uniform(rates) == is_even


def test_rates_match_within_three_hundredths_of_a_decade():
    # 10 ** 0.03 = 1.0715
    assert matching([1.07e-3, 1e-2], (1e-3,)) == [1.07e-3]
    assert matching([0.934e-3, 1e-2], (1e-3,)) == [0.934e-3]
    assert matching([1.08e-3, 1e-2], (1e-3,)) is None
    assert matching([1e-3], (1e-3, 3e-3)) is None
