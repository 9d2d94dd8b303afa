"""Parquet, by polars: columns of structs have dotted names, lists are cells in brackets."""

import io
from pathlib import Path

import polars as pl

from redline.files import UserError
from redline.foreign.table import MAX_CELLS, Table, text

MAGIC = b"PAR1"


def read(path: Path, content: bytes) -> Table:
    """A Parquet table; a missing value is an empty cell, and nan is `NaN`.

    Raises:
        UserError: the file is damaged, or it would not fit into memory.
    """
    try:
        # The sizes first, which cost nothing: a small file can hold a billion equal rows.
        lazy = pl.scan_parquet(io.BytesIO(content))
        n_column = len(lazy.collect_schema())
        n_row = int(lazy.select(pl.len()).collect().item())
        if n_row * n_column > MAX_CELLS:
            raise UserError(
                f"{path}: {n_row:,} rows of {n_column:,} columns are too many; leave out the "
                "columns that nothing is mapped from"
            )
        frame = pl.read_parquet(io.BytesIO(content))
        columns = [column for name in frame.columns for column in _flat(frame[name])]
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        first = str(error).partition("\n")[0]
        raise UserError(f"{path}: this Parquet file is damaged ({first})") from None
    header = tuple(column.name.strip() for column in columns)
    texts = [_texts(column) for column in columns]
    return Table(header, tuple(enumerate(zip(*texts, strict=True), start=1)), "row")


def _flat(column: pl.Series) -> list[pl.Series]:
    if not isinstance(column.dtype, pl.Struct):
        return [column]
    parts = column.struct.unnest()
    return [leaf for part in parts for leaf in _flat(part.rename(f"{column.name}.{part.name}"))]


def _texts(column: pl.Series) -> list[str]:
    match column.dtype:
        case pl.List() | pl.Array() | pl.Object():
            return [text(value) for value in column.to_list()]
        case pl.Binary():
            return column.bin.encode("hex").fill_null("").to_list()
        case _:
            # Polars writes a 32-bit 0.001 as 0.001, where Python would write 0.0010000000474974513.
            return column.cast(pl.String).fill_null("").to_list()
