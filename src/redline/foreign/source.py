"""The file of another tool: its header and its rows as text, each with its place in the file.

The name says the format and the content must agree, so that a misnamed file is a sentence and never
a table of garbage. Nothing in a file is ever run or evaluated.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from redline.config.words import listed, shown
from redline.files import UserError
from redline.foreign import delimited, jsonl, parquet
from redline.foreign.table import MAX_CELLS, N_NAMED, Table

DELIMITED, JSON_LINES, PARQUET = "CSV or TSV", "JSON Lines", "Parquet"
READERS: Mapping[str, Callable[[Path, bytes], Table]] = {
    DELIMITED: delimited.read,
    JSON_LINES: jsonl.read,
    PARQUET: parquet.read,
}
SUFFIXES = {
    ".csv": DELIMITED,
    ".tsv": DELIMITED,
    ".jsonl": JSON_LINES,
    ".ndjson": JSON_LINES,
    ".parquet": PARQUET,
    ".pq": PARQUET,
}
UNREAD = (
    (b"\x1f\x8b", "gzip; unpack it first"),
    (b"PK\x03\x04", "a zip archive or a workbook; unpack it, or save the sheet as CSV"),
    (b"\x28\xb5\x2f\xfd", "zstandard; unpack it first"),
    (b"SQLite format 3", "a database; export the table as CSV"),
    (b"\x80", "a pickle, which could run code; write CSV, JSON Lines or Parquet"),
)
"""First bytes of what is refused -> what it is and the mend."""


@dataclass(frozen=True)
class Source:
    """A table as text. `rows` are (place in the file, cells); every row has a cell a column.

    A place is a line, or a row of a Parquet file, as `unit` says.
    """

    name: str
    sha256: str
    header: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]
    unit: str = "line"


def read(path: Path) -> Source:
    """The table in a CSV, TSV, JSON Lines or Parquet file.

    Raises:
        UserError: there is no such file, or it is no such table.
    """
    content = _content(path)
    table = READERS[_kind(path, content)](path, content)
    if twice := [name for name, n in Counter(table.header).items() if n > 1]:
        raise UserError(
            f"{path}: two columns have the name {listed(map(shown, twice), N_NAMED)}; rename one"
        )
    if not table.rows:
        raise UserError(f"{path}: there is a header and no row below it")
    if len(table.rows) * len(table.header) > MAX_CELLS:
        raise UserError(
            f"{path}: {len(table.rows):,} rows of {len(table.header):,} columns are too many; "
            "leave out the columns that nothing is mapped from"
        )
    # A name that is no text, legal on some systems, would be no text in our files either.
    name = path.name.encode("utf-8", "replace").decode()
    digest = hashlib.sha256(content).hexdigest()
    return Source(name, digest, table.header, table.rows, table.unit)


def _content(path: Path) -> bytes:
    if path.is_dir():
        raise UserError(f"{path}: this is a directory, and a file is needed")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    if not content.strip():
        raise UserError(f"{path}: this file is empty")
    return content


def _kind(path: Path, content: bytes) -> str:
    seen = _seen(path, content)
    named = SUFFIXES.get(path.suffix.lower(), seen)
    if named != seen:
        suffix = next(name for name, kind in SUFFIXES.items() if kind == seen)
        raise UserError(
            f"{path}: the name says {named} and the content is {seen}; rename it to "
            f"{path.with_suffix(suffix).name}"
        )
    return named


def _seen(path: Path, content: bytes) -> str:
    for first, what in UNREAD:
        if content.startswith(first):
            raise UserError(f"{path}: this is {what}")
    if content.startswith(parquet.MAGIC):
        return PARQUET
    match content.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]:
        case b"{":
            return JSON_LINES
        case b"[":
            raise UserError(
                f"{path}: this is one JSON list; write one object a line instead, as "
                "`jq -c '.[]'` does"
            )
        case _:
            return DELIMITED
