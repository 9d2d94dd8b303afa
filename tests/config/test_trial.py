import math

import pytest
from pydantic import ValidationError

from redline.config.trial import QKNorm, Trial


@pytest.mark.parametrize(
    "path",
    ["model.n_layer", "train.peak_lr", "train.z_loss", "data.n_eval_token", "seed"],
)
def test_true_is_not_a_number(make, path):
    with pytest.raises(ValidationError, match="not true or false"):
        make({path: True})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "nan", "inf"])
def test_a_number_is_finite(make, value):
    with pytest.raises(ValidationError, match="finite"):
        make({"train.peak_lr": value})


def test_zero_has_one_spelling(make):
    assert math.copysign(1, make({"train.weight_decay": -0.0}).train.weight_decay) == 1


def test_no_field_of_a_trial_has_a_default(table):
    for section in (None, "model", "data", "train", "measure"):
        for name in list(table if section is None else table[section]):
            holder = table if section is None else table[section]
            value = holder.pop(name)
            with pytest.raises(ValidationError, match="Field required"):
                Trial.model_validate(table)
            holder[name] = value


def test_an_unknown_field_is_refused(make):
    with pytest.raises(ValidationError, match="Extra inputs"):
        make({"train.dropout": 0.1})


def test_a_trial_cannot_change(make):
    with pytest.raises(ValidationError, match="frozen"):
        make().train.peak_lr = 1.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train.peak_lr": 0}, "greater than 0"),
        ({"train.beta2": 1.0}, "less than 1"),
        ({"model.block_size": 1}, "greater than or equal to 2"),
        ({"model.n_embd": 65}, "not divisible by n_head"),
        ({"model.n_embd": 6, "model.pos": "rope"}, "even head_dim"),
        ({"data.n_train_token": 64}, "no window"),
        ({"data.n_eval_token": 8_193}, "not a multiple"),
        ({"measure.n_probe_row": 129}, "evaluation windows"),
        ({"train.warmup_fraction": 1.0}, "warm-up takes 400 of 400"),
        ({"train.lr_floor": 1e-2, "train.lr_floor_mode": "absolute"}, "above the peak"),
        ({"seed": -1}, "greater than or equal to 0"),
        ({"device": "auto"}, "Input should be"),
    ],
)
def test_what_cannot_be_trained_is_refused(make, changes, message):
    with pytest.raises(ValidationError, match=message):
        make(changes)


def test_an_l2_norm_keeps_its_scale():
    with pytest.raises(ValidationError, match="learned or frozen"):
        QKNorm(kind="l2", gain="none")
    assert QKNorm(kind="l2", gain="frozen").gain == "frozen"


@pytest.mark.parametrize(
    "options", [{"kind": "rms"}, {"gain": "fixed"}, {"eps": 0}, {"position": "after"}, {"x": 1}]
)
def test_a_qk_norm_with_an_invalid_option_is_refused(options):
    with pytest.raises(ValidationError):
        QKNorm(**options)


@pytest.mark.parametrize(
    ("qk_norm", "arm"),
    [
        (None, "off"),
        ({}, "on"),
        ({"gain": "frozen"}, "on gain=frozen"),
        ({"kind": "l2"}, "l2"),
        ({"kind": "layernorm", "eps": 1e-5}, "layernorm eps=1e-05"),
    ],
)
def test_an_arm_is_named_by_what_differs_from_the_default_component(make, qk_norm, arm):
    assert make({"model.qk_norm": qk_norm}).model.arm == arm


def test_warm_up_takes_at_least_one_step(make):
    assert make({"train.warmup_fraction": 0.0}).train.warmup_step == 1
    assert make().train.warmup_step == 40


def test_the_floor_is_a_fraction_of_the_peak_or_a_learning_rate(make):
    assert make({"train.lr_floor": 0.1}).train.min_lr == pytest.approx(1e-4)
    absolute = {"train.lr_floor": 1e-5, "train.lr_floor_mode": "absolute"}
    assert make(absolute).train.min_lr == 1e-5
