import pytest

from redline.analysis.comparable import SETTING
from redline.files import UserError
from redline.foreign.mapping import DTYPES, NEEDED, RESULTS, Mapping, check, parse, unused
from redline.store.tables import SCHEMAS


def test_what_can_be_mapped_is_a_key_a_result_or_what_makes_a_setting():
    """One list of names: a field that the analysis separates can be given by a foreign table."""
    assert set(DTYPES) == {*NEEDED, *RESULTS, *SETTING}
    assert DTYPES.items() <= SCHEMAS["trials"].items()


def test_options_become_a_mapping(maps):
    found = parse(maps[:-1], ["n_embd=64"], ["width=384", "note=a=b"], ["pos", "pos"])
    assert found.map["peak_lr"] == "lr" and found.set == {"n_embd": "64"}
    assert found.where == (("width", "384"), ("note", "a=b"))
    assert found.group == ("pos",)
    assert list(found.row_schema)[-3:] == ["origin", "row", "group.pos"]


@pytest.mark.parametrize(
    ("maps", "sets", "why"),
    [
        (["peak_lr"], [], "--map peak_lr: two names with = between"),
        (["=lr"], [], "two names"),
        (["peaklr=lr"], [], 'did you mean "peak_lr"?'),
        (["lr=peak_lr"], [], "did you mean --map peak_lr=lr?"),
        (["trial_id=name"], [], "no column of ours"),
        (["arm=arm"], [], "no column of ours"),
        (["seed=a", "seed=b"], [], "seed is given twice"),
        (["seed=a"], ["seed=0"], "seed is given twice"),
        ([], ["final_loss=3"], "what each run measured"),
    ],
)
def test_an_option_that_says_nothing_is_refused(maps, sets, why):
    with pytest.raises(UserError) as error:
        parse(maps, sets, (), ())
    assert why in str(error.value)


def test_everything_that_does_not_fit_the_header_is_said_at_once():
    mapping = parse(["peak_lr=LR", "n_layer=dept"], ["seed=0"], ["widht=1"], ["pos"])
    with pytest.raises(UserError) as error:
        check(mapping, "sweep.csv", ("lr", "depth", "width"))
    message = str(error.value)
    for part in (
        "--map qk_norm=COLUMN is needed, or --set qk_norm=VALUE",
        "--map final_loss=COLUMN is needed\n",
        'sweep.csv has no column "LR"',
        '"dept"; did you mean "depth"?',
        '"widht"; did you mean "width"?',
        '--group pos: sweep.csv has no column "pos"',
        "the columns of sweep.csv are lr, depth, width",
    ):
        assert part in message, part


def test_a_mapped_column_is_no_group(maps):
    with pytest.raises(UserError, match="--group depth: this column is n_layer already"):
        check(parse(maps, (), (), ["depth"]), "f", ("lr", "depth", "arm", "seed", "val"))


def test_unused_columns_decide_nothing(maps):
    mapping = parse(maps, (), ["width=1"], ["pos"])
    assert unused(mapping, ("lr", "width", "pos", "note", "val", "time")) == ("note", "time")


@pytest.mark.parametrize("change", [{"map": {"hash": "x"}}, {"set": {"seed": "0"}}])
def test_a_mapping_from_a_file_is_held_to_the_same_rules(change):
    fields = {"map": {"seed": "s"}, "set": {}, "where": (), "group": ()}
    with pytest.raises(ValueError, match=r"no column of ours|both mapped and set"):
        Mapping.model_validate(fields | change)
