import itertools
import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from redline.config.trial import QKNorm
from redline.files import UserError
from redline.study.axes import axis_values
from redline.study.fields import PATHS, field_path, plain

LR = "train.peak_lr"
ARM = "model.qk_norm"


def grid(start, stop, per_decade):
    return axis_values(LR, {"from": start, "to": stop, "per_decade": per_decade})


def test_two_per_decade_are_one_three_ten():
    assert grid(1e-3, 3e-1, 2) == (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
    assert grid(3e-4, 1e-1, 2) == (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1)


def test_other_densities_are_rounded_to_three_digits():
    assert grid(1e-3, 1e-1, 3) == (0.001, 0.00215, 0.00464, 0.01, 0.0215, 0.0464, 0.1)
    assert grid(1e-3, 1e-2, 4) == (0.001, 0.00178, 0.00316, 0.00562, 0.01)


def test_a_grid_that_misses_its_end_stops_below_it():
    assert grid(1e-3, 0.2, 2) == (0.001, 0.003, 0.01, 0.03, 0.1)
    assert grid(1e-3, 5e-3, 1) == (0.001,)


def test_a_grid_that_nearly_meets_its_end_takes_it():
    assert grid(1e-3, 0.0995, 3)[-1] == 0.0995
    assert grid(2e-3, 2.1e-3, 3) == (0.002,)


def test_a_one_three_ten_grid_starts_on_one_of_its_points():
    with pytest.raises(UserError, match=r"from = 0\.002 must be 1 or 3 times a power of ten"):
        grid(2e-3, 1e-1, 2)


EXPONENT = st.floats(-6, 0)


@given(EXPONENT, EXPONENT, st.integers(1, 24).filter(lambda n: n != 2))
@settings(max_examples=50, deadline=None)
def test_a_grid_starts_at_its_start_and_is_even_to_its_last_step(a, b, per_decade):
    start, stop = 10 ** min(a, b), 10 ** max(a, b)
    points = grid(start, stop, per_decade)
    assert points[0] == start
    assert points[-1] <= stop * 1.005, "rounding to 3 digits moves a point by half a percent"
    steps = [math.log10(high / low) * per_decade for low, high in itertools.pairwise(points)]
    # Half a percent at both ends of a step, and the last one may be 10 % longer or shorter.
    slack = 2 * math.log10(1.006) * per_decade
    assert all(abs(step - 1) <= slack for step in steps[:-1])
    assert all(abs(step - 1) <= slack + 0.1 for step in steps[-1:])
    assert math.log10(stop / points[-1]) * per_decade < 1 + slack


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"from": 1e-3, "to": 1e-1}, "per_decade is missing"),
        ({"from": 1e-3, "to": 1e-1, "per_decad": 2}, 'did you mean "per_decade"'),
        ({"from": 0, "to": 1e-1, "per_decade": 2}, "from = 0 must be greater than 0"),
        ({"from": 1e-1, "to": 1e-3, "per_decade": 3}, r"to = 0\.001 lies below from = 0\.1"),
        ({"from": 1e-3, "to": 1e-1, "per_decade": 0}, "greater than or equal to 1"),
        ({"from": 1e-3, "to": 1e-1, "per_decade": True}, "not true or false"),
    ],
)
def test_a_grid_with_a_mistake_is_refused(table, message):
    with pytest.raises(UserError, match=message):
        axis_values(LR, table)


def test_a_single_value_is_an_axis_of_one():
    assert axis_values("seed", 0) == (0,)
    assert axis_values(ARM, {"kind": "l2"}) == (QKNorm(kind="l2"),)


def test_case_c01_number_like_text_is_a_number_and_other_text_is_named():
    """C01: `1e-3` was read as text and reached the optimiser, since YAML wants a dot in a float.

    Text that reads as a number becomes one, in lists and for every number field; the rest is
    refused.
    """
    assert axis_values(LR, ["1e-3", 3e-4, "1.0e-2", 0.1]) == (0.001, 0.0003, 0.01, 0.1)
    assert axis_values("train.adam_eps", ["1e-8"]) == (1e-8,)
    assert axis_values("model.n_layer", ["4"]) == (4,)
    with pytest.raises(UserError, match='"abc" must be a valid number'):
        axis_values(LR, [1e-3, "abc"])


@pytest.mark.parametrize(
    "words",
    [
        ["off", "on"],
        [False, True],
        [0, 1],
        ["0", "1"],
        ["no", "yes"],
        ["False", "True"],
        [" OFF ", "On"],
        [None, QKNorm()],
        ["off", "rmsnorm"],
        ["off", {"kind": "rmsnorm"}],
    ],
)
def test_case_c02_every_word_for_the_arm_is_the_same_arm(words):
    """C02: `on` and `off` turned into booleans in one YAML reader and stayed words in another.

    All spellings are one value, so that they cannot become two arms.
    """
    assert axis_values(ARM, words) == (None, QKNorm())


@pytest.mark.parametrize("kind", ["rmsnorm", "layernorm", "rmsnorm_full", "l2"])
def test_an_arm_may_be_a_kind_or_a_table_of_options(kind):
    frozen = {"kind": kind, "gain": "frozen"}
    assert axis_values(ARM, [kind, frozen]) == (
        QKNorm(kind=kind),
        QKNorm(kind=kind, gain="frozen"),
    )


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("layernrom", 'did you mean "layernorm"'),
        ({"knd": "l2"}, 'did you mean "kind"'),
        ({"kind": "l3"}, 'kind = "l3" must be'),
        ({"kind": "l2", "gain": "none"}, "its gain is learned or frozen"),
        (2, "2 must be on, off"),
        (1.5, "1.5 must be"),
    ],
)
def test_what_is_no_arm_is_refused(raw, message):
    with pytest.raises(UserError, match=message):
        axis_values(ARM, [raw])


@pytest.mark.parametrize(
    ("path", "raw", "twice"),
    [
        (LR, [1e-3, "0.001"], "0.001"),
        (ARM, ["on", True, "off"], "on"),
        ("seed", [0, 1, "1"], "1"),
        ("train.z_loss", [0.0, -0.0], "0.0"),
    ],
)
def test_two_spellings_of_one_value_are_a_duplicate(path, raw, twice):
    with pytest.raises(UserError, match=f"holds {twice} more than once"):
        axis_values(path, raw)


@pytest.mark.parametrize(
    ("path", "raw"),
    [
        (LR, []),
        (LR, [0]),
        (LR, [-1e-3]),
        (LR, [math.nan]),
        (LR, ["inf"]),
        (LR, [True]),
        (LR, [[1e-3]]),
        ("model.n_layer", [2.5]),
        ("model.n_layer", {"from": 1, "to": 10, "per_decade": 3}),
        ("model.pos", ["alibi"]),
        ("model.tied_head", ["maybe"]),
    ],
)
def test_an_empty_axis_or_an_impossible_value_is_refused(path, raw):
    with pytest.raises(UserError):
        axis_values(path, raw)


@given(st.lists(st.floats(1e-9, 10), min_size=1, max_size=8, unique=True))
@settings(max_examples=50, deadline=None)
def test_learning_rates_keep_their_bits_and_their_order_in_any_spelling(rates):
    assume(all(high / low > 1.08 for low, high in itertools.pairwise(sorted(rates))))
    assert axis_values(LR, rates) == axis_values(LR, [repr(rate) for rate in rates]) == (*rates,)


def test_two_rates_that_the_analysis_takes_for_one_are_refused():
    with pytest.raises(UserError, match=r"0\.001 and 0\.00102 are within 0\.03"):
        axis_values(LR, [1e-2, 1.02e-3, 1e-3])


@pytest.mark.parametrize("path", PATHS)
def test_every_field_has_a_short_name(path):
    leaf = path.rpartition(".")[2]
    assert field_path(leaf) == field_path(path) == path


@pytest.mark.parametrize("value", [None, QKNorm(), QKNorm(kind="l2", gain="frozen")])
def test_a_component_is_read_back_from_its_plain_form(value):
    assert axis_values(ARM, [plain(value)]) == (value,)
