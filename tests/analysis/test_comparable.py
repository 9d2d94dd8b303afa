import polars as pl
import pytest

from redline.analysis.comparable import N_COPY, comparable, short_names
from redline.files import UserError


def test_one_setting_has_an_empty_name(sweep):
    assert comparable(sweep({("off", 0.01): [2.0, 2.1]}))["control"].to_list() == ["", ""]


def test_settings_are_named_by_the_fields_that_differ(row, frame):
    trials = frame([row(), row(model__tied_head=False), row(train__z_loss=1e-4)])
    assert comparable(trials)["control"].to_list() == [
        "tied_head=true, z_loss=0.0",
        "tied_head=false, z_loss=0.0",
        "tied_head=true, z_loss=0.0001",
    ]


def test_case_d08_two_corpora_are_two_settings(row, frame, judge):
    """D08 (karpathy/nanoGPT#10): the hosted corpus changed and results of both stood in one chart.

    Rows with different token hashes are split, and each keeps its own reference.
    """
    new = {"token_sha256": "c" * 64, "trial_id": "new"}
    out = judge(frame([row(2.0), row(3.0) | new]))
    assert out["new"]["control"] == "token_sha256=cccccccccccc"
    assert out["off-2-0.01-0"]["control"] == "token_sha256=aaaaaaaaaaaa"
    assert out["new"]["best_loss"] == 3.0


def test_case_g06_numerics_are_never_pooled(row, frame, judge):
    """G06 (pytorch/pytorch#171861): a compiler's NaN on one device would be charted as physics.

    The same trial on another device kind has its own reference and its own name.
    """
    mps = row(None, device="mps") | {"trial_id": "mps"}
    out = judge(frame([row(2.0), mps]))
    assert out["mps"]["control"] == "device=mps"
    assert out["mps"]["reference_loss"] == 5.5
    assert out["off-2-0.01-0"]["reference_loss"] == 2.0


def test_case_a05_a_row_without_its_depth_is_refused_by_name(row, frame):
    """A05 (PEtab-dev/PEtab#298): group-by dropped rows with a missing key without a word."""
    with pytest.raises(
        UserError, match=r"n_layer is missing in 1 of the trials: off, n_layer None"
    ):
        comparable(frame([row(), row(seed=1) | {"n_layer": None}]))


def test_a_missing_setting_is_a_setting_and_no_lost_row(row, frame, judge):
    out = judge(frame([row(2.0), row(2.5) | {"z_loss": None, "trial_id": "older"}]))
    assert out["older"]["control"] == "z_loss=unknown"
    assert out["older"]["reference_loss"] == 2.5


def test_a_missing_column_is_named(sweep):
    trials = sweep({("off", 0.01): [2.0]}).drop("bigram_loss")
    with pytest.raises(UserError, match="lacks the column bigram_loss"):
        comparable(trials)


@pytest.mark.parametrize(
    ("value", "says"), [(None, "init_loss is missing"), (float("nan"), "init_loss is not finite")]
)
def test_without_an_initial_loss_nothing_can_be_capped(row, frame, value, says):
    trials = frame([row() | {"init_loss": value}, row(seed=1)])
    with pytest.raises(UserError, match=rf"{says} in 1 of the trials: off, n_layer 2"):
        comparable(trials)


def test_exact_copies_collapse_and_are_counted(row, frame):
    dead = row(None, seed=1)
    out = comparable(frame([row(), row() | {"trial_id": "copy"}, dead, dead, dead]))
    assert out[N_COPY].to_list() == [2, 3]


def test_copies_that_disagree_are_refused_with_both_rows(row, frame):
    with pytest.raises(UserError, match=r"different results in 2 .*\(off-2-0.01-0\).*\(other\)"):
        comparable(frame([row(2.0), row(2.1) | {"trial_id": "other"}]))


def test_many_bad_rows_are_counted_and_five_are_named(row, frame):
    trials = frame([row(seed=seed) | {"arm": None} for seed in range(7)])
    with pytest.raises(UserError, match=r"in 7 of the trials: .* and 2 more$"):
        comparable(trials)


def test_an_empty_table_stays_empty(sweep):
    assert comparable(sweep({("off", 0.01): [2.0]}).clear()).select(pl.len()).item() == 0


UNKNOWN = ("init_loss", "bigram_loss", "token_sha256", "tokenizer_sha256", "device", "precision")


@pytest.fixture
def blank(row, frame):
    """Changes of rows -> rows of another tool: keys, a final loss and an origin, little else."""
    unknown = (*UNKNOWN, "steps_done", "n_step", "warmup_fraction")
    return lambda *rows: frame(
        [row() | dict.fromkeys(unknown) | {"origin": "sweep.csv"} | changes for changes in rows]
    )


def test_short_names_leave_out_what_most_settings_share_and_stay_distinct():
    names = ["pos=learned, tied=true", "pos=rope, tied=true", "pos=learned, tied=false"]
    short = short_names(names)
    assert [short[name] for name in names] == ["base", "pos=rope", "tied=false"]
    assert short_names([""]) == {"": ""}
    assert len(set(short_names(["a=1", "a=2"]).values())) == 2


def test_rows_of_another_tool_need_their_keys_and_a_final_loss_alone(blank):
    out = comparable(blank({}, {"seed": 1, "final_loss": 2.1}))
    assert out["control"].to_list() == ["", ""]
    assert out["init_loss"].to_list() == [None, None]


@pytest.mark.parametrize("key", ["trial_id", "arm", "n_layer", "peak_lr", "seed"])
def test_rows_of_another_tool_without_a_key_are_refused(blank, key):
    with pytest.raises(UserError, match=f"{key} is missing in 1 of the trials"):
        comparable(blank({}, {"seed": 1} | {key: None}))


@pytest.mark.parametrize("name", ["token_sha256", "init_loss", "bigram_loss", "steps_done"])
def test_rows_of_our_own_need_what_those_of_another_tool_may_lack(blank, row, frame, name):
    comparable(blank({name: None}))
    with pytest.raises(UserError, match=f"{name} is missing in 1 of the trials"):
        comparable(frame([row() | {name: None}]))


def test_a_foreign_row_that_diverged_needs_a_loss_to_count_at(blank):
    died = {"final_loss": None, "non_finite": "loss"}
    with pytest.raises(UserError, match=r"non-finite and without init_loss.* in 1 of the trials"):
        comparable(blank({"init_loss": None} | died))
    assert comparable(blank({"init_loss": 10.8} | died)).height == 1


def test_groups_of_another_tool_are_settings_by_their_own_name(blank):
    rows = blank({}, {"trial_id": "wide"}).with_columns(pl.Series("group.width", ["64", "128"]))
    assert comparable(rows)["control"].to_list() == ["width=64", "width=128"]


def test_a_group_that_a_row_does_not_state_is_a_group(blank):
    rows = blank({}, {"trial_id": "other"}).with_columns(pl.Series("group.width", ["64", None]))
    assert comparable(rows)["control"].to_list() == ["width=64", "width=unknown"]


def test_a_group_that_all_rows_share_is_no_setting(blank):
    rows = blank({}, {"seed": 1}).with_columns(pl.lit("64").alias("group.width"))
    assert comparable(rows)["control"].to_list() == ["", ""]
