import pytest

from redline.analysis.completeness import completeness, reachable


@pytest.fixture
def study(trial):
    """Six trials: both arms at three peak LRs."""
    return [
        (f"{arm}-{lr:g}", trial(arm, train__peak_lr=lr, seed=1))
        for arm in ("off", "on")
        for lr in (0.001, 0.01, 0.1)
    ]


def test_a_missing_trial_is_named_by_its_key(study):
    done = [name for name, _ in study if name != "off-0.01"]
    state = completeness(study, done)
    assert str(state) == "5 of 6"
    assert state.missing == ("off, n_layer 2, peak_lr 0.01, seed 1",)
    assert state.extra == ()


def test_a_name_holds_the_setting_where_settings_differ(trial):
    pair = [("a", trial(model__tied_head=True)), ("b", trial(model__tied_head=False))]
    assert completeness(pair, ["a"]).missing == (
        "off, n_layer 2, peak_lr 0.01, seed 0, tied_head=false",
    )


def test_case_a10_a_trial_outside_the_study_is_listed(study):
    """A10 (marin-community/marin#2037): the folder held results of an older grid than the code's.

    What the study does not hold is listed as extra, and never makes up for what is missing.
    """
    state = completeness(study, [*[name for name, _ in study[1:]], "old grid"])
    assert state.extra == ("old grid",)
    assert str(state) == "5 of 6"


def test_nothing_finished(study):
    assert str(completeness(study, [])) == "0 of 6"


def grid(trial, n_seed, depths=(2,), arms=("off", "on")):
    return [
        trial(arm, model__n_layer=n_layer, seed=seed)
        for arm in arms
        for n_layer in depths
        for seed in range(n_seed)
    ]


@pytest.mark.parametrize(
    ("n_seed", "says"),
    [
        (1, "1 seed: grid intervals only, no spread, every statement is indicative"),
        (2, "2 seeds: intervals, but H1, H2 and H3 stay undecided"),
        (3, "prior-dependent"),
        (6, "6 seeds: H1 and H2 can be decided in full"),
    ],
)
def test_seeds_bound_the_verdicts(trial, n_seed, says):
    assert says in reachable(grid(trial, n_seed))[0]


@pytest.mark.parametrize(
    ("depths", "n_seed", "says"),
    [
        ((2,), 3, "one depth: H3 is not testable"),
        ((2, 4), 3, "2 depths: H3 can be decided, linearity not checked"),
        ((2, 4), 2, "2 depths: H3 undecided, linearity not checked"),
        ((2, 4, 8), 3, "3 depths: H3 can be decided"),
    ],
)
def test_depths_bound_h3(trial, depths, n_seed, says):
    assert reachable(grid(trial, n_seed, depths))[1] == says


def test_a_sign_flip_test_needs_six_pairs(trial):
    assert "5 pairs cannot reach 0.05: its smallest p is 0.0625" in reachable(grid(trial, 5))[2]
    assert "6 pairs can reach 0.05: its smallest p is 0.0312" in reachable(grid(trial, 6))[2]


def test_ten_seeds_bring_ed10(trial):
    assert "no ED10" in reachable(grid(trial, 9))[3]
    assert "ED10 and the seed bootstrap are drawn" in reachable(grid(trial, 10))[3]


def test_the_cell_with_the_fewest_seeds_counts(trial):
    assert reachable(grid(trial, 6)[:-5])[0].startswith("1 seed")


def test_one_arm_compares_nothing(trial):
    assert reachable(grid(trial, 3, arms=("on",))) == [
        "only the arm on: no verdict compares QK-norm on with off"
    ]
