import itertools

import pytest

from redline.config.edit import value_at
from redline.config.identity import Tokens, trial_id
from redline.config.trial import QKNorm
from redline.files import UserError
from redline.study.expand import expand
from redline.study.spec import load

TOKENS = Tokens(token_sha256="a" * 64, tokenizer_sha256="b" * 64)
GRID = """
[axes]
qk_norm = ["off", "on"]
peak_lr = [1e-3, 1e-2]
n_layer = [2, 4]
"""


def rows(trials, *paths):
    return [tuple(value_at(trial, path) for path in paths) for trial in trials]


def ids(trials):
    return {trial_id(trial, TOKENS) for trial in trials}


def test_case_c07_a_grid_has_one_identity_a_cell(study):
    """C07: all members of a sweep wrote into the one directory of the base and the last survived.

    A 2 x 2 x 2 grid has 8 identities, and the directory of a trial is its identity.
    """
    trials = expand(study(GRID), "cpu")
    assert len(trials) == len(ids(trials)) == 8


def test_case_c02_spellings_of_the_arms_give_equal_ids(study):
    """C02: a word for the arm was a boolean to one reader and text to another.

    The trials of every spelling have the same two ids.
    """
    spellings = ['["on", "off"]', "[true, false]", "[1, 0]", '["True", "no"]']
    found = [ids(expand(study(f"[axes]\nqk_norm = {words}\n"), "cpu")) for words in spellings]
    assert all(each == found[0] and len(each) == 2 for each in found)


def test_axes_are_a_full_product_whatever_their_order(study):
    axes = GRID.strip().splitlines()[1:]
    found = [
        ids(expand(study("[axes]\n" + "\n".join(order)), "cpu"))
        for order in itertools.permutations(axes)
    ]
    assert all(each == found[0] for each in found)


def test_seeds_are_outermost_and_arms_innermost(study):
    trials = expand(study(GRID + "seed = [3, 1]\nz_loss = [0.0, 1e-4]\n"), "cpu")
    order = ("seed", "model.n_layer", "train.z_loss", "train.peak_lr", "model.qk_norm")
    arms = (None, QKNorm())
    expected = itertools.product((3, 1), (2, 4), (0.0, 1e-4), (1e-3, 1e-2), arms)
    assert rows(trials, *order) == list(expected)


def test_the_base_and_each_variation_are_crossed_with_the_axes(study):
    text = """
    [axes]
    seed = [0, 1]
    qk_norm = ["off", "on"]
    [around_base]
    pos = ["rope"]
    untied = { tied_head = false, z_loss = 1e-4 }
    """
    trials = expand(study(text), "cpu")
    found = rows(trials, "seed", "model.pos", "model.tied_head", "train.z_loss", "model.arm")
    changes = [("learned", True, 0.0), ("rope", True, 0.0), ("learned", False, 1e-4)]
    assert found == [
        (seed, *change, arm) for seed in (0, 1) for change in changes for arm in ("off", "on")
    ]


def test_a_variation_of_an_axis_replaces_the_axis_and_runs_once(study):
    text = """
    [axes]
    qk_norm = ["off", "on"]
    [around_base]
    qk_norm = [{ gain = "frozen" }]
    """
    arms = [trial.model.arm for trial in expand(study(text), "cpu")]
    assert arms == ["off", "on", "on gain=frozen"]


def test_extra_axes_override_some_axes_and_keep_the_others(study):
    text = """
    [axes]
    seed = [0, 1]
    n_layer = [6]
    peak_lr = [1e-3, 1e-2, 1e-1]
    [[extra_axes]]
    n_layer = [3, 12]
    peak_lr = [1e-2]
    """
    found = rows(expand(study(text), "cpu"), "seed", "model.n_layer", "train.peak_lr")
    cells = [(6, 1e-3), (6, 1e-2), (6, 1e-1), (3, 1e-2), (12, 1e-2)]
    assert found == [(seed, *cell) for seed in (0, 1) for cell in cells]


def test_a_study_without_axes_is_one_trial(study):
    assert len(expand(study(""), "cpu")) == 1


def test_points_come_last_take_the_rest_from_the_base_and_never_repeat(study):
    points = [{"peak_lr": "2e-3", "model": {"n_layer": 3}}, {"train.peak_lr": 1e-2}, {}]
    grid = expand(study("[axes]\npeak_lr = [1e-2]\n"), "cpu")
    trials = expand(study("[axes]\npeak_lr = [1e-2]\n"), "cpu", points)
    assert trials[:1] == grid
    found = rows(trials[1:], "train.peak_lr", "model.n_layer", "seed")
    assert found == [(2e-3, 3, 0), (1e-3, 2, 0)], "the second point is a trial of the grid"


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ({"peek_lr": 1e-3}, r"points\.0\.peek_lr: no such key .* did you mean \"peak_lr\""),
        ({"peak_lr": "x"}, r"points\.0\.peak_lr: \"x\" must be a valid number"),
        ({"peak_lr": 1e-3, "train.peak_lr": 1e-2}, "given twice"),
        ({"data.corpus": "other"}, "a study has one value of this"),
    ],
)
def test_a_point_with_a_mistake_is_refused_by_name(study, point, message):
    with pytest.raises(UserError, match=message):
        expand(study(""), "cpu", [point])


def test_a_point_that_leaves_a_required_field_open_is_refused(write):
    text = 'seed = 0\n[model]\nqk_norm = "off"\n[axes]\npeak_lr = [1e-3]\n'
    with pytest.raises(UserError, match=r"train\.peak_lr is missing"):
        expand(load(write(text)), "cpu", [{"n_layer": 3}])


def test_auto_becomes_the_device_and_a_pinned_device_stays(study, write):
    assert expand(study(""), "mps")[0].device == "mps"
    pinned = write('device = "cpu"\nseed = 0\n[model]\nqk_norm = 1\n[train]\npeak_lr = 1e-3\n')
    assert expand(load(pinned), "cuda")[0].device == "cpu"


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ("n_embd = [64, 65]", "model.n_embd = 65 is not divisible by n_head = 2"),
        ("warmup_fraction = [0.1, 1.0]", "the warm-up takes 400 of 400 steps"),
    ],
)
def test_case_i04_an_invalid_combination_is_named_by_its_full_key(study, axis, message):
    """I04: the name of a failing member was printed in part, so nobody could tell which it was.

    The sentence holds the file, depth, LR, arm and seed, and what the axes changed.
    """
    with pytest.raises(UserError) as caught:
        expand(study(f"[axes]\n{axis}\n"), "cpu")
    said = str(caught.value)
    assert "tiny.toml: the trial with model.n_layer = 2, train.peak_lr = 0.001" in said
    assert "model.qk_norm = off, seed = 0, " in said
    assert said.endswith(message)
