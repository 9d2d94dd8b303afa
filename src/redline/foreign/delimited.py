"""CSV and TSV: Python's reader is used because it knows lines.

A person who is told "line 7" must find the row there, also below a quoted cell with a line break.
"""

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

from redline.config.words import listed
from redline.files import UserError
from redline.foreign.table import N_NAMED, Table

SEPARATORS = (",", ";", "\t")
MAX_CELL = 2**26
"""Characters of a cell. Python's own limit of 2**17 is less than a list of all losses of a run."""


def read(path: Path, content: bytes) -> Table:
    """A CSV or TSV table; of `,`, `;` and tab, what the header has most separates.

    Raises:
        UserError: it is no such table.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path}: this is not UTF-8 text; save it as UTF-8") from None
    lines = list(_lines(path, text))
    if not lines:
        raise UserError(f"{path}: this file is empty")
    header = tuple(name.strip() for name in lines[0][1])
    if ragged := [line for line, cells in lines if len(cells) != len(header)]:
        raise UserError(
            f"{path}: the header has {len(header)} columns, which is not so in line "
            f"{listed(ragged, N_NAMED)}; quote a cell that holds the separator"
        )
    return Table(header, tuple(lines[1:]), "line")


def _lines(path: Path, text: str) -> Iterator[tuple[int, tuple[str, ...]]]:
    # newline="" leaves line ends to the reader: a quoted cell may hold them.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(text), strict=True)
    first = 1
    limit = csv.field_size_limit(MAX_CELL)  # one for the whole process
    try:
        for cells in reader:
            if cells:  # a blank line is no row
                yield first, tuple(cells)
            first = reader.line_num + 1
    except csv.Error as error:
        raise UserError(f"{path}: the row at line {first} is damaged ({error})") from None
    finally:
        csv.field_size_limit(limit)


def _separator(text: str) -> str:
    header = re.search(r"[^\r\n]+", text)
    return max(SEPARATORS, key=header[0].count) if header else ","
