import math

import pytest

from redline.config.trial import QKNorm
from redline.files import UserError
from redline.foreign.cells import cut, losses, same, value


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


@pytest.mark.parametrize(
    "text",
    [
        *("nan", "NaN", " NAN", "-nan", "inf", "-inf", "Infinity", "1e999", "9" * 5000),
        *("NaN (diverged)", "nan(step 300)", "inf (overflow)", "diverged", "Diverged"),
    ],
)
def test_a_final_loss_may_leave_the_numbers(text):
    assert not math.isfinite(value("final_loss", text))


@pytest.mark.parametrize("text", ["", "  ", "null", "None", "NA", "n/a", "-"])
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
        ("peak_lr", "1_000", "no number"),
        ("peak_lr", "fast", "no number"),
        ("n_layer", "0", "whole number of at least 1"),
        ("n_layer", "2.5", "whole number"),
        ("n_layer", "1e30", "whole number"),
        ("n_layer", "1e99999999999999999999", "whole number"),
        ("seed", "-1", "whole number of at least 0"),
        ("seed", str(2**63), "whole number"),
        ("final_loss", "exploded", "a number, nan or inf for a diverged run, or nothing"),
        ("final_loss", "nan or so", "no number"),
        ("final_loss", "1,23", "write it with a decimal point, as 1.23"),
        ("peak_lr", "0,001", "as 0.001"),
        ("final_loss", "1,234.5", "no number"),
        ("final_loss", "[3.5, 3.1]", "use --map losses=COLUMN in place of final_loss"),
        ("seed", "9" * 5000, "whole number"),
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


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[3.5, 3.25, 3.0]", (3.5, 3.0)),
        ("[3]", (3.0, 3.0)),
        (" [ 3.5 ,3e0 ] ", (3.5, 3.0)),
        ("['3.5', \"3\"]", (3.5, 3.0)),
        ("[3.5, inf, 3.0]", (3.5, math.inf)),
        ("[-inf, NaN]", (-math.inf, -math.inf)),
        ("", None),
        ("[]", None),
        ("[ ]", None),
        ("null", None),
    ],
)
def test_losses_are_the_first_and_the_last_or_the_first_that_is_not_finite(text, found):
    assert losses(text) == found


def test_losses_that_leave_the_numbers_say_so():
    first, final = losses("[3.5, nan, 3.0]")
    assert first == 3.5 and math.isnan(final)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("3.5", r"is no list; losses are written as \[3.5, 3.1\]"),
        ("[3.5, ", "no list"),
        ("[3.5, fast]", 'holds "fast" at place 1, which is no number'),
        ("[3.5, null, 3]", "has no value at place 1"),
        ("[3.5,, 3]", "has no value at place 1"),
        ("[[3.5], [3]]", 'holds "\\[3.5\\]" at place 0'),
        ("[__import__('os').getpid()]", "no number"),
    ],
)
def test_a_list_of_anything_else_is_refused(text, why):
    with pytest.raises(UserError, match=why):
        losses(text)


def test_a_message_shows_the_beginning_of_a_long_cell():
    assert cut("9" * 5000) == f'"{"9" * 60}"... (5,000 characters)'
    assert cut("a\nb") == '"a\\nb"'
