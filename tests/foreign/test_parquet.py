import datetime
import io
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redline.files import UserError
from redline.foreign import parquet
from redline.foreign.source import read


def write(tmp_path, columns, **how):
    path = tmp_path / "a.parquet"
    pl.DataFrame(columns).write_parquet(path, **how)
    return path


def test_values_arrive_as_the_text_that_a_table_would_have(tmp_path):
    columns = {
        "lr": [1e-3, None, float("nan")],
        "depth": [2, 4, None],
        "arm": [True, False, None],
        "name": ["a", "", None],
        "val": [float("inf"), float("-inf"), 3.5],
        "losses": [[3.5, float("nan")], [], None],
        "config": [{"width": 64, "opt": {"b": 1}}, {"width": None, "opt": {"b": 2}}, None],
        "blob": [b"\xff", b"", None],
        "day": [datetime.date(2024, 5, 1), None, None],
    }
    source = read(write(tmp_path, columns))
    assert source.unit == "row"
    assert source.header == (
        *("lr", "depth", "arm", "name", "val", "losses"),
        *("config.width", "config.opt.b", "blob", "day"),
    )
    assert source.rows == (
        (1, ("0.001", "2", "true", "a", "inf", "[3.5, nan]", "64", "1", "ff", "2024-05-01")),
        (2, ("", "4", "false", "", "-inf", "[]", "", "2", "", "")),
        (3, ("NaN", "", "", "", "3.5", "", "", "", "", "")),
    )


def test_a_rate_of_32_bits_is_the_rate_that_was_meant(tmp_path):
    """Widened to 64 bits, 0.001 is 0.0010000000474974513 and no point of any grid."""
    column = pl.Series([1e-3, 3e-4], dtype=pl.Float32)
    rows = read(write(tmp_path, {"lr": column})).rows
    assert [float(row[0]) for _, row in rows] == [1e-3, 3e-4]


@given(st.floats(allow_nan=False), st.integers(-(2**63), 2**63 - 1))
def test_numbers_lose_no_digit(number, whole):
    content = io.BytesIO()
    pl.DataFrame({"a": [number], "b": [whole]}).write_parquet(content)
    ((_, (a, b)),) = parquet.read(Path("a.parquet"), content.getvalue()).rows
    assert float(a) == number and int(b) == whole


def test_names_that_collide_are_refused(tmp_path):
    path = write(tmp_path, {"a.b": [1], "a": [{"b": 2}]})
    with pytest.raises(UserError, match=r'two columns have the name "a.b"'):
        read(path)


def test_a_file_without_rows_is_said(tmp_path):
    with pytest.raises(UserError, match="a header and no row"):
        read(write(tmp_path, {"a": []}))


def test_a_small_file_with_a_billion_rows_is_not_opened(tmp_path, monkeypatch):
    path = write(tmp_path, {"a": [0] * 100_000}, compression="zstd")
    assert path.stat().st_size < 10_000
    monkeypatch.setattr(parquet, "MAX_CELLS", 99_999)
    monkeypatch.setattr(pl, "read_parquet", None)
    with pytest.raises(UserError, match="100,000 rows of 1 columns are too many"):
        read(path)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_damaged_file_is_a_sentence_or_a_table(tmp_path_factory, data):
    content = io.BytesIO()
    pl.DataFrame({"a": [1.5, 2.5], "b": ["x", "y"], "c": [[1.0], [2.0]]}).write_parquet(content)
    damaged = bytearray(content.getvalue())
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(4, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    damaged = damaged[: data.draw(st.integers(5, len(damaged)))]
    path = tmp_path_factory.mktemp("damaged") / "a.parquet"
    path.write_bytes(damaged)
    said = f"{path}: "
    try:
        read(path)
    except UserError as error:
        said = str(error)
    assert said.startswith(f"{path}: ") and "\n" not in said
