import pytest

from redline.files import UserError
from redline.foreign import rows
from redline.foreign.intake import take_in
from redline.foreign.mapfile import read
from redline.foreign.mapping import parse
from redline.foreign.source import read as read_table
from redline.store.layout import Store

FULL = """
group = ["width"]
ignore = ["host"]
[map]
n_layer = "depth"
losses = "val_losses"
[set]
peak_lr = 1e-3
init_loss = "first"
bias = true
seed = 3
[where]
linear = false
width = 384
"""


@pytest.fixture
def mapfile(tmp_path):
    def written(text):
        path = tmp_path / "map.toml"
        path.write_text(text, "utf-8")
        return path

    return written


def test_a_file_says_what_the_options_say(mapfile):
    maps = ["n_layer=depth", "losses=val_losses"]
    sets = ["peak_lr=0.001", "init_loss=first", "bias=true", "seed=3"]
    wheres = ["linear=false", "width=384"]
    assert read(mapfile(FULL.replace('["width"]', '["pos"]'))) == parse(
        maps, sets, wheres, ["pos"], ["host"]
    )


def test_a_part_may_be_missing(mapfile):
    assert read(mapfile("")) == parse((), (), (), (), ())


def test_the_map_that_a_store_keeps_can_be_given_again(write, take, maps, tmp_path):
    """The groups that the rule found are in it, and a column that was ignored stays ignored."""
    lines = [
        f"1e-3,2,{arm},{seed},3.{seed}{arm == 'on':d},{note}"
        for arm in ("on", "off")
        for seed in (0, 1)
        for note in ("a", "b")
    ]
    source = read_table(write(*lines))
    first = take_in(source, parse(maps, (), (), (), ()))
    assert first.found_groups == ("note",)
    store = Store(tmp_path / "store")
    rows.put(store, source, first)
    path = store.import_dir(source.sha256) / rows.MAP
    again = take_in(source, read(path))
    assert again.frame.equals(first.frame) and again.mapping == first.mapping
    assert again.found_groups == ()

    rows.put(store, source, take(*lines, ignore=["note"]))
    assert take_in(source, read(path)).mapping.ignore == ("note",)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[maps]\nseed = 'a'", 'maps" is no word of a mapping, which has map, set, where, group'),
        ("[maps]\nseed = 'a'", 'did you mean "map"?'),
        ("[map]\nsead = 'a'", '[map] sead: "sead" is no column of ours'),
        ("[map]\nsead = 'a'", 'did you mean "seed"?'),
        ("[set]\nsead = 1", 'did you mean "seed"?'),
        ("[map]\nseed = 1", "[map] seed: the name of a column is needed"),
        ("[map]\nseed = ['a']", "[map] seed: the name of a column is needed"),
        ("[set]\nseed = [1]", "[set] seed: one value is needed"),
        ("[set]\nseed = 2020-01-01", "[set] seed: one value is needed"),
        ("map = 1", "map must be a table, written as [map]"),
        ("group = 'width'", 'group must be a list of columns, as group = ["width"]'),
        ("ignore = [1]", "ignore must be a list of columns"),
        ("[map]\nseed = 'a'\n[set]\nseed = 1", "seed is both mapped and set"),
        ("[set]\nfinal_loss = 1", "what each run measured"),
        ("group = ['a']\nignore = ['a']", "both grouped by and ignored"),
        ("[map", "this is no TOML"),
        ("[map]\nseed = 'a'\nseed = 'b'", "this is no TOML"),
        ("a = " + "[" * 5000, "this is no TOML"),
        ("a = " + "9" * 5000, "this is no TOML"),
    ],
)
def test_what_is_no_mapping_is_one_sentence_with_the_file(mapfile, text, why):
    path = mapfile(text)
    with pytest.raises(UserError) as error:
        read(path)
    assert why in str(error.value)
    assert str(error.value).startswith(f"--mapping {path}: ")
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(UserError, match="No such file"):
        read(tmp_path / "none.toml")
