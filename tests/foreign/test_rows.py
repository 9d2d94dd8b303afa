import tomllib

import pytest
from polars.testing import assert_frame_equal

from redline import __version__
from redline.files import UserError
from redline.foreign import rows
from redline.foreign.intake import take_in
from redline.foreign.mapping import parse
from redline.foreign.source import read
from redline.store.layout import Store

LINES = ("1e-3,2,on,0,3.5,a", "1e-3,2,off,0,nan,a", "1e-3,2,off,1,,b", "1e-3,2,off,1,,b")


@pytest.fixture
def put(write, tmp_path, maps):
    """Import a file into STORE; the store and the SHA-256 of the file."""

    def imported(*lines, group=()):
        source = read(write(*lines))
        mapping = parse(maps, ["n_embd=64"], (), group, ())
        store = Store(tmp_path / "store")
        rows.put(store, source, take_in(source, mapping))
        return store, source.sha256

    return imported


def test_rows_come_back_as_they_were_taken_in(put, take):
    store, sha256 = put(*LINES)
    assert_frame_equal(rows.load(store, sha256), take(*LINES, sets=["n_embd=64"]).frame)
    assert rows.imports(store) == [sha256]


def test_a_store_of_imports_alone_holds_nothing_else(put):
    store, sha256 = put(*LINES)
    assert [path.name for path in store.root.iterdir()] == ["imports"]
    names = sorted(path.name for path in store.import_dir(sha256).iterdir())
    assert names == ["map.toml", "rows.parquet"]
    assert not store.exists


def test_the_map_says_where_the_rows_come_from(put):
    store, sha256 = put(*LINES, group=["note"])
    found = rows.describe(store, sha256)
    assert (found.name, found.sha256, found.redline) == ("sweep.csv", sha256, __version__)
    assert found.counts.model_dump() == {
        "read": 4,
        "filtered": 0,
        "duplicates": 1,
        "superseded": 0,
        "kept": 3,
        "without_result": 1,
        "non_finite": 1,
    }
    assert found.mapping.map["peak_lr"] == "lr"
    assert found.mapping.group == ("note",)
    text = (store.import_dir(sha256) / "map.toml").read_text()
    assert tomllib.loads(text)["mapping"]["set"] == {"n_embd": "64"}


def test_another_mapping_of_the_same_file_replaces_both_files(put):
    store, sha256 = put(*LINES)
    assert put(*LINES, group=["note"]) == (store, sha256)
    assert rows.imports(store) == [sha256]
    assert "group.note" in rows.load(store, sha256).columns


def test_a_kill_between_the_two_files_is_found(put, monkeypatch):
    """New rows under the old map would pass for something that nobody asked for."""
    store, sha256 = put(*LINES)
    real = rows.write_atomic

    def killed(path, content):
        if path.name == rows.MAP:
            raise KeyboardInterrupt
        real(path, content)

    monkeypatch.setattr(rows, "write_atomic", killed)
    with pytest.raises(KeyboardInterrupt):
        put(*LINES, group=["note"])
    with pytest.raises(UserError, match="import the file again"):
        rows.load(store, sha256)
    with pytest.raises(KeyboardInterrupt):
        put("1e-3,2,on,0,3.5,a")
    assert rows.imports(store) == [sha256]


@pytest.mark.parametrize("name", ["rows.parquet", "map.toml"])
@pytest.mark.parametrize("content", [b"", b"\xff\x00", b"PAR1 and then nothing", b"name = 'x'"])
def test_a_damaged_file_is_one_clear_sentence(put, name, content):
    store, sha256 = put(*LINES)
    path = store.import_dir(sha256) / name
    path.write_bytes(content)
    with pytest.raises(UserError, match="damaged") as error:
        rows.load(store, sha256)
    assert str(path) in str(error.value)


def test_any_flipped_byte_of_the_rows_is_found(put):
    store, sha256 = put(*LINES)
    path = store.import_dir(sha256) / "rows.parquet"
    content = path.read_bytes()
    for place in range(0, len(content), 97):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(UserError, match="damaged"):
            rows.load(store, sha256)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sweep.csv", "../../sweep.csv"),
        ('peak_lr = "lr"', 'password = "lr"'),
        ("kept = 3", "kept = 4"),
        ("group = []", 'group = ["note"]'),
        ("[counts]", 'more = "x"\n[counts]'),
    ],
)
def test_a_map_of_other_people_is_checked(put, old, new):
    store, sha256 = put(*LINES)
    path = store.import_dir(sha256) / "map.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(UserError, match="damaged"):
        rows.load(store, sha256)


def test_a_map_of_another_file_is_refused(put):
    store, sha256 = put(*LINES)
    other = "0" * 64
    store.import_dir(sha256).rename(store.import_dir(other))
    with pytest.raises(UserError, match="damaged"):
        rows.load(store, other)


@pytest.mark.parametrize("name", ["..", "../trials", "0" * 63, "A" * 64, "0" * 64 + "\n"])
def test_a_hash_that_is_a_path_leads_nowhere(put, name):
    store, _ = put(*LINES)
    with pytest.raises(UserError, match="no SHA-256"):
        rows.load(store, name)


def test_what_is_no_import_is_in_no_list(put, tmp_path):
    store, sha256 = put(*LINES)
    for name in ("notes", "1" * 64):
        (store.imports / name).mkdir()
    (store.imports / "notes" / "map.toml").touch()
    assert rows.imports(store) == [sha256]
    assert rows.imports(Store(tmp_path / "none")) == []
    with pytest.raises(UserError, match="no rows of a file with this hash"):
        rows.load(store, "1" * 64)


def test_a_store_that_is_a_file_is_refused(write, maps):
    path = write(*LINES)
    taken = take_in(read(path), parse(maps, (), (), (), ()))
    with pytest.raises(UserError, match="this is a file"):
        rows.put(Store(path), read(path), taken)
