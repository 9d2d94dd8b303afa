"""What describes an experiment separates rows, and what a run measured does not."""

from itertools import product

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.files import UserError
from redline.foreign.grouping import Reason, one_spelling, separating
from redline.foreign.intake import take_in
from redline.foreign.mapping import parse
from redline.foreign.source import Source, read

PUBLIC = "data/public_results/snimu_qknorm_29_65M.csv"
RUNS = list(product((2, 4), ("off", "on"), (1e-3, 1e-2), (0, 1)))
"""(depth, arm, peak LR, seed) of a small full sweep."""


def judged(runs, **columns):
    rows = pl.DataFrame(runs, schema=["n_layer", "arm", "peak_lr", "seed"], orient="row")
    return separating(rows, ["n_layer"], columns, {})


def column(of):
    return [str(of(*run)) for run in RUNS]


@pytest.mark.parametrize(
    ("of", "reason"),
    [
        (lambda d, a, r, s: (d, a, r, s), Reason.RUN),
        (lambda d, a, r, s: s + 100, Reason.SEED),
        (lambda d, a, r, s: (d, s), Reason.SEED),
        (lambda d, a, r, s: r / 10, Reason.PEAK_LR),
        (lambda d, a, r, s: d * 64, Reason.SAME),
        (lambda d, a, r, s: 1000 + (a == "on"), Reason.ARM),
        (lambda d, a, r, s: (a == "on") != (s == 1), Reason.ARM),
    ],
)
def test_what_follows_from_a_run_its_seed_its_rate_its_depth_or_its_arm_separates_nothing(
    of, reason
):
    assert judged(RUNS, a=column(of)) == ((), {"a": reason})


def test_a_setting_that_is_crossed_with_the_sweep_separates():
    runs = [run for run in RUNS for _ in "ab"]
    assert judged(runs, pos=["a", "b"] * len(RUNS)) == (("pos",), {})


def test_a_setting_that_only_some_seeds_have_separates_too():
    """Its rows contradict nobody, so nothing else would say that two experiments are pooled."""
    runs = list(product((2,), ("off", "on"), (1e-3,), range(6)))
    widths = ["64" if seed < 3 else "128" for *_, seed in runs]
    assert judged(runs, width=widths) == (("width",), {})


def test_a_setting_that_one_arm_alone_has_in_part_separates():
    """A third arm that is written as another column: its rows are no part of "off"."""
    runs = [(2, arm, 1e-3, seed) for arm in ("off", "off", "on") for seed in (0, 1)]
    assert judged(runs, all_norm=["no", "no", "yes", "yes", "no", "no"]) == (("all_norm",), {})


def test_a_hole_hides_no_setting():
    runs = [run for run in RUNS for _ in "ab"]
    cells = ["a", "b"] * len(RUNS)
    for hole in range(len(runs)):
        left = [run for at, run in enumerate(runs) if at != hole]
        assert judged(left, pos=[c for at, c in enumerate(cells) if at != hole])[0] == ("pos",)


def test_a_column_that_says_the_same_as_a_group_is_no_second_group():
    runs = [run for run in RUNS for _ in "ab"]
    twice = {"pos": ["a", "b"] * len(RUNS), "rotary": ["no", "yes"] * len(RUNS)}
    assert judged(runs, **twice) == (("pos",), {"rotary": Reason.SAME})


def test_a_column_with_one_value_is_nothing_to_speak_of():
    assert judged(RUNS, a=["x"] * len(RUNS), b=["1", "1.0"] * (len(RUNS) // 2)) == (
        (),
        {"b": Reason.SAME},
    )


def test_three_arms_share_a_setting_as_two_do():
    runs = [(2, arm, 1e-3, seed) for arm in ("off", "on", "l2") for seed in (0, 1) for _ in "ab"]
    assert judged(runs, pos=["a", "b"] * 6)[0] == ("pos",)
    assert judged(runs, n=[f"{arm}{at % 2}" for at, (_, arm, _, _) in enumerate(runs)]) == (
        (),
        {"n": Reason.ARM},
    )


def test_equal_numbers_are_one_value_as_the_first_is_written():
    assert one_spelling(["384", " 384.0", "3.84e2", "x ", "x", ""]) == [
        *("384", "384", "384", "x", "x", "")
    ]


def test_the_settings_of_a_public_sweep_separate_and_its_results_do_not(shared):
    """480 rows of snimu/attention-experiments are 20 settings of 15 or 30 runs.

    `use_all_norm` is a third arm: its rows have QK-norm off and other norms on. There
    `use_x_norm` is off, and nowhere else, so that one of the two columns says it.
    """
    source = read(shared / PUBLIC)
    maps = ["n_layer=depth", "qk_norm=use_qk_norm", "seed=seed", "final_loss=final_val_loss"]
    rest = tuple(row for row in source.rows if row[0] not in (367, 368))
    clean = Source(source.name, source.sha256, source.header, rest)
    taken = take_in(clean, parse(maps, ["peak_lr=1e-3"], (), (), ()))
    assert taken.found_groups == ("linear", "use_x_norm", "embedding_type", "width")
    assert taken.unused == {
        "use_all_norm": Reason.SAME,
        "num_params": Reason.SAME,
        "run_num": Reason.SEED,
        "final_train_loss": Reason.ARM,
    }
    assert (taken.counts.kept, taken.counts.duplicates) == (300, 178)

    other = take_in(clean, parse(maps, ["peak_lr=1e-3"], (), (), ["use_x_norm"]))
    assert other.found_groups == ("linear", "use_all_norm", "embedding_type", "width")
    assert other.unused["use_x_norm"] == Reason.ASKED
    assert other.counts == taken.counts


def test_ignored_settings_are_pooled_or_contradict_each_other(take):
    rows = [
        f"1e-3,2,{arm},{seed},{loss},{'a' if seed < 2 else 'b'}"
        for loss, (arm, seed) in enumerate(product(("on", "off"), range(4)))
    ]
    assert take(*rows).found_groups == ("note",)
    assert take(*rows, ignore=["note"]).found_groups == ()
    rows += [row.replace(",a", ",c").replace("1e-3,2,on,0,0", "1e-3,2,on,0,7") for row in rows[:1]]
    with pytest.raises(UserError, match="one trial has different results"):
        take(*rows, ignore=["note"])


@given(st.lists(st.sampled_from("abc"), min_size=len(RUNS), max_size=len(RUNS)))
def test_rows_are_pooled_in_silence_under_no_labels(labels):
    """A label either separates, or is one value, or is named with a reason."""
    groups, unused = judged(RUNS, label=labels)
    assert (len(groups) + len(unused) == 1) == (len(set(labels)) > 1)
    if groups:
        pairs = {}
        for (depth, arm, rate, seed), label in zip(RUNS, labels, strict=True):
            pairs.setdefault((depth, rate, seed), {})[arm] = label
        assert all(pair["on"] == pair["off"] for pair in pairs.values())
