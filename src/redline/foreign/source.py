"""The file of another tool: its header and its rows as text, each with its line number.

Only this module knows the format. Python's reader is used because it knows lines: a person who is
told "line 7" must find the row there, also below a quoted cell with a line break.
"""

import csv
import hashlib
import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from redline.config.words import listed, shown
from redline.files import UserError

SEPARATORS = (",", ";", "\t")
OTHER_FORMATS = (".parquet", ".json", ".jsonl", ".xlsx", ".gz", ".zip")
N_NAMED = 8


@dataclass(frozen=True)
class Source:
    """A table as text. `rows` are (line in the file, cells); every row has a cell a column."""

    name: str
    sha256: str
    header: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]


def read(path: Path) -> Source:
    """The table in a CSV or TSV file; of `,`, `;` and tab, what the header has most separates.

    Raises:
        UserError: there is no such file, or it is no such table.
    """
    content = _content(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path}: this is not UTF-8 text") from None
    lines = list(_lines(path, text))
    if not lines:
        raise UserError(f"{path}: this file is empty")
    header = tuple(name.strip() for name in lines[0][1])
    if twice := [name for name, n in Counter(header).items() if n > 1]:
        raise UserError(f"{path}: two columns have the name {listed(map(shown, twice), N_NAMED)}")
    if len(lines) == 1:
        raise UserError(f"{path}: there is a header and no row below it")
    if ragged := [line for line, cells in lines if len(cells) != len(header)]:
        raise UserError(
            f"{path}: the header has {len(header)} columns, which is not so in line "
            f"{listed(ragged, N_NAMED)}"
        )
    digest = hashlib.sha256(content).hexdigest()
    # A name that is no text, legal on some systems, would be no text in our files either.
    name = path.name.encode("utf-8", "replace").decode()
    return Source(name, digest, header, tuple(lines[1:]))


def _content(path: Path) -> bytes:
    if path.is_dir():
        raise UserError(f"{path}: this is a directory, and a file is needed")
    if path.suffix.lower() in OTHER_FORMATS:
        raise UserError(f"{path}: only CSV and TSV tables are read, so convert it first")
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None


def _lines(path: Path, text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    # newline="" leaves line ends to the reader: a quoted cell may hold them.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(text), strict=True)
    first = 1
    try:
        for cells in reader:
            if cells:  # a blank line is no row
                yield first, tuple(cells)
            first = reader.line_num + 1
    except csv.Error as error:
        raise UserError(f"{path}: the row at line {first} is damaged ({error})") from None


def _separator(text: str) -> str:
    header = re.search(r"[^\r\n]+", text)
    return max(SEPARATORS, key=header[0].count) if header else ","
