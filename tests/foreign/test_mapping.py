import pytest
from pydantic import ValidationError

from redline.analysis.comparable import SETTING
from redline.files import UserError
from redline.foreign.mapping import (
    DTYPES,
    LOSSES,
    NEEDED,
    RESULTS,
    Mapping,
    extended,
    fitted,
    parse,
)
from redline.store.tables import SCHEMAS


def test_what_can_be_mapped_is_a_key_a_result_or_what_makes_a_setting():
    """One list of names: a field that the analysis separates can be given by a foreign table."""
    assert set(DTYPES) == {*NEEDED, *RESULTS, *SETTING}
    assert DTYPES.items() <= SCHEMAS["trials"].items()
    assert LOSSES not in DTYPES


def test_options_become_a_mapping(maps):
    wheres = ["width=384", "note=a=b"]
    found = parse(maps[:-1], ["n_embd=64"], wheres, ["pos", "pos"], ["host"])
    assert found.map["peak_lr"] == "lr" and found.set == {"n_embd": "64"}
    assert found.where == {"width": "384", "note": "a=b"}
    assert (found.group, found.ignore) == (("pos",), ("host",))
    assert list(found.row_schema)[-3:] == ["origin", "row", "group.pos"]


@pytest.mark.parametrize(
    ("maps", "sets", "why"),
    [
        (["peak_lr"], [], "--map peak_lr: two names with = between"),
        (["=lr"], [], "two names"),
        (["peaklr=lr"], [], 'did you mean "peak_lr"?'),
        (["loses=l"], [], 'did you mean "losses"?'),
        (["lr=peak_lr"], [], "did you mean --map peak_lr=lr?"),
        (["trial_id=name"], [], "no column of ours"),
        (["arm=arm"], [], "no column of ours"),
        (["seed=a", "seed=b"], [], "seed is given twice"),
        (["seed=a"], ["seed=0"], "seed is both mapped and set"),
        ([], ["final_loss=3"], "what each run measured"),
        ([], ["losses=3"], '"losses" is no column of ours'),
        (["final_loss=a", "losses=b"], [], "map one of them"),
        (["final_loss=a"], ["init_loss=first"], "only a list has a first loss"),
    ],
)
def test_an_option_that_says_nothing_is_refused(maps, sets, why):
    with pytest.raises(UserError) as error:
        parse(maps, sets, (), (), ())
    assert why in str(error.value)


def test_a_filter_has_one_value_for_a_column():
    with pytest.raises(UserError, match="--where a=2: a is given twice"):
        parse((), (), ["a=1", "a=2"], (), ())


def test_a_column_is_grouped_by_or_ignored():
    with pytest.raises(UserError, match="pos is both grouped by and ignored"):
        parse((), (), (), ["pos"], ["pos"])


def test_everything_that_does_not_fit_the_header_is_said_at_once():
    mapping = parse(["peak_lr=LR", "n_layer=dept"], ["seed=0"], ["widht=1"], ["pos"], ["host"])
    with pytest.raises(UserError) as error:
        fitted(mapping, "sweep.csv", ("lr", "depth", "width"))
    message = str(error.value)
    for part in (
        "--map qk_norm=COLUMN is needed, or --set qk_norm=VALUE",
        "--map final_loss=COLUMN is needed, or --map losses=COLUMN with all losses of a run\n",
        'sweep.csv has no column "LR"',
        '"dept"; did you mean "depth"?',
        '"widht"; did you mean "width"?',
        '--group pos: sweep.csv has no column "pos"',
        '--ignore host: sweep.csv has no column "host"',
        "the columns of sweep.csv are lr, depth, width",
    ):
        assert part in message, part


def test_a_mapped_column_is_no_group(maps):
    with pytest.raises(UserError, match="--group depth: this column is n_layer already"):
        parse(maps, (), (), ["depth"], ())


EXPORT = ("params.lr", "params.depth", "config.arm", "seed", "metrics.val", "tags.host", "params.w")


def test_the_prefix_of_an_export_need_not_be_written(maps):
    mapping = fitted(parse(maps, (), ["w=1"], ["host"], ()), "f", EXPORT)
    assert list(mapping.map.values()) == list(EXPORT[:5])
    assert (mapping.where, mapping.group) == ({"params.w": "1"}, ("tags.host",))


def test_a_name_that_two_columns_have_is_refused_and_a_whole_one_is_not(maps):
    header = (*EXPORT, "params.val")
    with pytest.raises(UserError) as error:
        fitted(parse(maps, (), (), (), ()), "f", header)
    assert "f has params.val and metrics.val; write the whole name" in str(error.value)
    whole = parse((*maps[:-1], "final_loss=metrics.val"), (), (), (), ())
    assert fitted(whole, "f", header).map["final_loss"] == "metrics.val"
    assert fitted(parse(maps, (), (), (), ()), "f", (*header, "val")).map["final_loss"] == "val"


def test_a_close_name_is_proposed_without_its_prefix_too(maps):
    with pytest.raises(UserError, match='no column "hots"; did you mean "host"'):
        fitted(parse(maps, (), (), ["hots"], ()), "f", EXPORT)


def test_options_win_over_the_mapping_that_they_extend():
    base = parse(["seed=s", "n_layer=d", "losses=l"], ["peak_lr=1"], ["a=1"], ["g", "h"], ["i"])
    options = parse(["peak_lr=lr", "final_loss=f"], ["seed=0"], ["a=2", "b=1"], ["i", "k"], ["g"])
    assert extended(base, options).model_dump() == {
        "map": {"n_layer": "d", "peak_lr": "lr", "final_loss": "f"},
        "set": {"seed": "0"},
        "where": {"a": "2", "b": "1"},
        "group": ("h", "i", "k"),
        "ignore": ("g",),
    }
    with pytest.raises(UserError, match="--group d: this column is n_layer already"):
        extended(base, parse((), (), (), ["d"], ()))


@pytest.mark.parametrize(
    "change",
    [{"map": {"hash": "x"}}, {"set": {"seed": "0"}}, {"group": ["s"]}, {"set": {"losses": "1"}}],
)
def test_a_mapping_from_a_file_is_held_to_the_same_rules(change):
    fields = {"map": {"seed": "s"}, "set": {}, "where": {}, "group": (), "ignore": ()}
    Mapping.model_validate(fields)
    with pytest.raises(ValidationError):
        Mapping.model_validate(fields | change)
