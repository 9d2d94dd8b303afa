import gzip
import hashlib
import pickle
import zipfile

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.files import UserError
from redline.foreign import source as source_module
from redline.foreign.source import SUFFIXES, read

TEXT = {
    "CSV or TSV": "lr,depth\n1e-3,2\n",
    "JSON Lines": '{"lr": 1e-3, "depth": 2}\n',
}


def put(path, kind):
    if kind == "Parquet":
        pl.DataFrame({"lr": ["1e-3"], "depth": ["2"]}).write_parquet(path)
    else:
        path.write_text(TEXT[kind])
    return path


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".CSV"])
def test_one_table_is_the_same_in_every_format(tmp_path, suffix):
    path = put(tmp_path / f"a{suffix}", SUFFIXES[suffix.lower()])
    source = read(path)
    assert source.header == ("lr", "depth")
    assert [row for _, row in source.rows] == [("1e-3", "2")]
    assert source.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("kind", sorted(set(SUFFIXES.values())))
@pytest.mark.parametrize("name", ["a", "a.txt", "a.json", "runs.2024"])
def test_a_name_that_says_nothing_leaves_it_to_the_content(tmp_path, kind, name):
    assert read(put(tmp_path / name, kind)).header == ("lr", "depth")


@pytest.mark.parametrize("kind", sorted(set(SUFFIXES.values())))
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_name_that_says_something_else_is_one_sentence(tmp_path, kind, suffix):
    path = put(tmp_path / f"a{suffix}", kind)
    if SUFFIXES[suffix] == kind:
        read(path)
        return
    with pytest.raises(UserError) as error:
        read(path)
    right = next(name for name, found in SUFFIXES.items() if found == kind)
    assert str(error.value) == (
        f"{path}: the name says {SUFFIXES[suffix]} and the content is {kind}; rename it to a{right}"
    )


def test_only_the_name_of_a_path_is_kept(write):
    assert read(write("1e-3,2,on,0,3,")).name == "sweep.csv"


@pytest.mark.parametrize("text", ["", "\n\n", "  "])
def test_an_empty_file_is_said(write, text):
    with pytest.raises(UserError, match="this file is empty"):
        read(write(text=text))


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(UserError, match="this is a directory"):
        read(tmp_path)
    with pytest.raises(UserError, match="No such file"):
        read(tmp_path / "none.csv")


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("the pickle was opened",))


@pytest.mark.parametrize("name", ["a.csv", "a.pkl", "a.parquet", "a"])
def test_a_pickle_is_refused_and_never_opened(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(UserError, match="a pickle, which could run code"):
        read(path)


def test_what_has_to_be_unpacked_is_said(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n"))
    with pytest.raises(UserError, match="this is gzip; unpack it first"):
        read(path)
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w") as archive:
        archive.writestr("sheet", "1")
    with pytest.raises(UserError, match="save the sheet as CSV"):
        read(tmp_path / "a.xlsx")


def test_one_json_list_is_refused_with_the_command_that_opens_it(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(' [{"a": 1}]')
    with pytest.raises(UserError, match=r"one JSON list; write one object a line.*jq -c"):
        read(path)


def test_a_table_that_would_fill_the_memory_is_refused(write, monkeypatch):
    monkeypatch.setattr(source_module, "MAX_CELLS", 11)
    with pytest.raises(UserError, match="2 rows of 6 columns are too many"):
        read(write("1,2,3,4,5,6", "1,2,3,4,5,6"))


@given(st.binary(max_size=200), st.sampled_from([*SUFFIXES, "", ".dat"]))
def test_any_bytes_are_a_table_or_a_sentence(tmp_path_factory, content, suffix):
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    path.write_bytes(content)
    said = f"{path}: "
    try:
        assert read(path).rows
    except UserError as error:
        said = str(error)
    assert said.startswith(str(path)) and len(said.splitlines()) == 1
