import pytest

from redline.analysis.audit import ITEMS, Verdict, audit


@pytest.fixture
def grid(trial):
    def build(*changes, arms=("off", "on"), seeds=(0, 1)):
        return [
            trial(arm, seed=seed, **change)
            for arm in arms
            for seed in seeds
            for change in (changes or ({},))
        ]

    return build


def by_item(trials):
    return {row.item: row for row in audit(trials)}


def test_a_plain_pair_of_arms_controls_all_but_what_the_intervention_moves(grid):
    rows = by_item(grid())
    moved = {item for item, row in rows.items() if row.verdict is Verdict.MOVED}
    assert moved == {
        "initial attention temperature",
        "scale invariance of W_q and W_k",
        "extra gains",
    }
    assert not [row for row in rows.values() if row.verdict is Verdict.UNCONTROLLED]
    assert len(rows) == len(ITEMS)


def test_the_temperature_is_given_in_numbers(grid):
    detail = by_item(grid())["initial attention temperature"].detail
    # 0.02^2 * 64.
    assert "0.0256 without QK-norm" in detail
    assert ", 1 with it" in detail


@pytest.mark.parametrize(
    ("item", "control"),
    [
        ("initial attention temperature", {"model__qk_init": "inverse_sqrt"}),
        ("scale invariance of W_q and W_k", {"train__weight_decay": 0.0}),
    ],
)
def test_a_control_arm_is_seen(grid, item, control):
    assert by_item(grid())[item].detail.endswith("not in this study")
    assert by_item(grid({}, control))[item].detail.endswith(": in this study")


def test_a_frozen_gain_is_the_control_of_the_extra_gains(grid):
    row = by_item(grid(arms=("off", "on", "frozen")))["extra gains"]
    # Two gain vectors of head_dim 32 in each of two layers.
    assert "adds 128 learned parameters" in row.detail
    assert row.detail.endswith("gain = frozen: in this study")


def test_a_control_arm_at_the_base_setting_only_confounds_nothing(grid):
    trials = grid({}, {"train__weight_decay": 0.0}) + grid(arms=("frozen",))
    rows = by_item(trials)
    assert rows["weight decay"].verdict is Verdict.ARM
    assert rows["pairing"].verdict is Verdict.FIXED


def test_a_value_that_one_side_lacks_is_uncontrolled_and_shown(grid):
    trials = grid({"train__peak_lr": 0.1}, arms=("on",)) + grid()
    row = by_item(trials)["LR grid per arm"]
    assert row.verdict is Verdict.UNCONTROLLED
    assert row.detail == "off: peak_lr = 0.01; QK-norm: peak_lr = 0.01 | 0.1"


def test_equal_values_in_unequal_pairs_fail_the_pairing(trial):
    trials = [
        trial("off", train__z_loss=0.0, seed=0),
        trial("off", train__z_loss=1e-4, seed=1),
        trial("on", train__z_loss=1e-4, seed=0),
        trial("on", train__z_loss=0.0, seed=1),
    ]
    rows = by_item(trials)
    assert rows["z-loss"].verdict is Verdict.ARM
    assert rows["pairing"].verdict is Verdict.UNCONTROLLED
    assert rows["pairing"].detail.startswith("0 of 4 trials")


def test_depth_moves_size_and_compute(grid):
    rows = by_item(grid({}, {"model__n_layer": 4}))
    depth, compute = (
        rows["depth at fixed width or fixed size"],
        rows["equal steps or equal FLOPs over depth"],
    )
    assert depth.verdict is compute.verdict is Verdict.UNCONTROLLED
    assert "119,104 to 217,920 parameters" in depth.detail
    assert "deeper trials take more FLOPs" in compute.detail
    assert rows["heads and head_dim along depth"].detail.endswith("head_dim = 32")


def test_epochs_and_absolute_steps_are_counted(grid):
    rows = by_item(grid())
    # 400 steps of 16 x 64 tokens out of 1,000,000.
    assert rows["batch, context, tokens, epochs"].detail.endswith(
        "409,600 tokens seen, 0.4096 epochs"
    )
    assert rows["warm-up"].detail.endswith("40 absolute steps")
    assert rows["LR floor"].detail.endswith("the last update has LR 0.001")


def test_a_learned_scale_moves_the_softmax(grid):
    assert by_item(grid())["softmax scale"].verdict is Verdict.FIXED
    row = by_item(grid(arms=("off", "l2")))["softmax scale"]
    assert row.verdict is Verdict.MOVED
    assert row.detail.endswith("not in this study")


def test_forms_of_the_norm_are_listed(grid):
    assert by_item(grid(arms=("off", "on", "l2")))["norm kind, eps, gain, position"].verdict is (
        Verdict.ARM
    )
    assert by_item(grid(arms=("off",)))["norm kind, eps, gain, position"].detail.startswith("no")


def test_one_seed_leaves_the_noise_uncontrolled(grid):
    assert by_item(grid(seeds=(0,)))["evaluation noise"].verdict is Verdict.UNCONTROLLED


def test_one_side_alone_has_nothing_moved(grid):
    rows = by_item(grid(arms=("on",)))
    assert rows["extra gains"].verdict is Verdict.FIXED
    assert rows["pairing"].verdict is Verdict.UNCONTROLLED
