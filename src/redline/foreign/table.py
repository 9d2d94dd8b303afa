"""What every reader of a format returns, and how it writes a nested value as cells."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

MAX_CELLS = 50_000_000
"""Rows times columns. A table of sparse objects could ask for more memory than there is."""
N_NAMED = 8


@dataclass(frozen=True)
class Table:
    """A table as text; `unit` names what the places of its rows count."""

    header: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]
    unit: str


def cells(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """(column, cell) for a value: a nested object has one for each leaf, by its dotted name."""
    if isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            yield from cells(f"{name}.{key}", inner)
    else:
        yield name, text(value)


def text(value: Any) -> str:
    """A value as a cell: nothing for null, numbers as they are written, a list in brackets."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case str():
            # JSON can hold half a character, which no file of ours could.
            return value if value.isascii() else value.encode("utf-8", "replace").decode()
        case list() | tuple():
            return f"[{', '.join(map(text, cast('list[Any]', value)))}]"
        case dict():
            pairs = cast("dict[str, Any]", value).items()
            return f"{{{', '.join(f'{key}: {text(inner)}' for key, inner in pairs)}}}"
        case _:
            return str(value)
