"""JSON Lines: one object a line, nested ones by dotted names such as `config.lr`."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from redline.config.words import shown
from redline.files import UserError
from redline.foreign.table import MAX_CELLS, Table, cells


def read(path: Path, content: bytes) -> Table:
    """A table whose columns are the names of all objects, in the order in which they first appear.

    A number keeps the digits that it is written with, and the bare NaN and Infinity of Python's
    writer are understood; null and an absent name are empty cells.

    Raises:
        UserError: a line holds no such object, or one name twice.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path}: this is not UTF-8 text; save it as UTF-8") from None
    header: dict[str, None] = {}
    found: list[tuple[int, dict[str, str]]] = []
    # Not splitlines: a JSON text may hold other line separators than this one.
    for line, written in enumerate(text.split("\n"), start=1):
        if not written.strip():
            continue
        row = _row(f"{path}, line {line}", written)
        header.update(dict.fromkeys(row))
        found.append((line, row))
        if len(header) * len(found) > MAX_CELLS:
            raise UserError(
                f"{path}: {len(header):,} columns by line {line} are too many; a table has the "
                "same names in every line"
            )
    if not header:
        raise UserError(f"{path}: these objects hold nothing; each needs the settings and the loss")
    rows = tuple((line, tuple(row.get(name, "") for name in header)) for line, row in found)
    return Table(tuple(header), rows, "line")


def _row(place: str, written: str) -> dict[str, str]:
    try:
        pairs = json.loads(
            written,
            # As text, a number keeps its digits and a missing one is not confused with NaN.
            parse_float=str,
            parse_int=str,
            parse_constant=str,
            object_pairs_hook=_once,
        )
        if not isinstance(pairs, dict):
            raise UserError(f"{place}: this is no JSON object; write one in braces a line")
        names = list(_cells(pairs))  # pyright: ignore[reportUnknownArgumentType]
    except json.JSONDecodeError as error:
        raise UserError(
            f"{place}, column {error.colno}: this is no JSON ({error.msg}); write one object a line"
        ) from None
    except RecursionError:
        raise UserError(f"{place}: this object is nested too deeply; flatten it") from None
    except _TwiceError as error:
        raise UserError(f"{place}: {shown(error.args[0])} stands there twice; drop one") from None
    if twice := [name for name, n in Counter(name for name, _ in names).items() if n > 1]:
        raise UserError(f"{place}: {shown(twice[0])} stands there twice; drop one")
    return dict(names)


class _TwiceError(Exception):
    pass


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _TwiceError(next(n for n, k in Counter(n for n, _ in pairs).items() if k > 1))
    return found


def _cells(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in row.items():
        yield from cells(name.strip(), value)
