import math

import pytest

from redline.config.trial import QKNorm
from redline.files import UserError
from redline.foreign.cells import same, value


@pytest.mark.parametrize("text", ["1e-3", "0.001", " 1E-3 ", "+.001", "1.0e-03", "0.0010"])
def test_spellings_of_a_number_are_one_number(text):
    assert value("peak_lr", text) == 1e-3


@pytest.mark.parametrize(
    ("words", "arm"),
    [
        (("on", "ON", "true", "True", "yes", "1", " rmsnorm "), "on"),
        (("off", "Off", "FALSE", "no", "0"), "off"),
        (("l2", "L2"), "l2"),
        (("layernorm",), "layernorm"),
        (("rmsnorm_full",), QKNorm(kind="rmsnorm_full").label),
    ],
)
def test_an_arm_is_written_as_a_study_writes_it(words, arm):
    assert {value("qk_norm", word) for word in words} == {arm}


@pytest.mark.parametrize("text", ["nan", "NaN", " NAN", "-nan", "inf", "-inf", "Infinity", "1e999"])
def test_a_final_loss_may_leave_the_numbers(text):
    assert not math.isfinite(value("final_loss", text))


@pytest.mark.parametrize("text", ["", "  ", "null", "None", "NA", "-"])
@pytest.mark.parametrize("ours", ["final_loss", "init_loss", "n_embd", "bias"])
def test_an_empty_cell_is_no_value(ours, text):
    assert value(ours, text) is None


def test_a_text_that_looks_empty_is_a_name():
    assert value("pos", "none") == "none"
    assert value("pos", " ") is None


@pytest.mark.parametrize("ours", ["peak_lr", "n_layer", "seed", "qk_norm"])
def test_an_empty_key_is_refused(ours):
    with pytest.raises(UserError, match="is empty"):
        value(ours, " ")


@pytest.mark.parametrize(
    ("ours", "text", "why"),
    [
        ("peak_lr", "0", "above 0"),
        ("peak_lr", "-1e-3", "above 0"),
        ("peak_lr", "nan", "no number"),
        ("peak_lr", "inf", "no number"),
        ("peak_lr", "1e999", "too large"),
        ("peak_lr", "0,001", "no number"),
        ("peak_lr", "1_000", "no number"),
        ("peak_lr", "fast", "no number"),
        ("n_layer", "0", "whole number of at least 1"),
        ("n_layer", "2.5", "whole number"),
        ("n_layer", "1e30", "whole number"),
        ("n_layer", "1e99999999999999999999", "whole number"),
        ("seed", "-1", "whole number of at least 0"),
        ("seed", str(2**63), "whole number"),
        ("final_loss", "diverged", "no number"),
        ("init_loss", "nan", "no number"),
        ("bias", "maybe", "true or false"),
        ("qk_norm", "none", "must be on, off"),
        ("qk_norm", "layer_norm", 'did you mean "layernorm"'),
    ],
)
def test_what_a_column_cannot_hold_is_refused_with_the_reason(ours, text, why):
    with pytest.raises(UserError, match=why):
        value(ours, text)


def test_a_whole_number_keeps_every_digit():
    """A table with gaps writes 4 as 4.0; a seed of 19 digits does not pass through a float."""
    assert value("n_layer", "4.0") == 4
    assert value("seed", str(2**63 - 1)) == 2**63 - 1


def test_a_filter_compares_numbers_as_numbers_and_text_as_text():
    assert same("384.0", "384") and same(" 1e-3", "0.001") and same("rotary ", "rotary")
    assert not same("384.5", "384") and not same("Rotary", "rotary") and not same("", "0")
