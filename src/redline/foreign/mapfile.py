"""A mapping in a TOML file: the words of the options, or the `map.toml` that a store keeps."""

import tomllib
from pathlib import Path
from typing import Any, cast

from redline.config.words import listed, nearest, shown
from redline.files import UserError
from redline.foreign.mapping import Mapping, built, refuse_stranger

TABLES, LISTS = ("map", "set", "where"), ("group", "ignore")
STORED = "mapping"
"""The table of a stored `map.toml` that holds the mapping."""


def read(path: Path) -> Mapping:
    """The mapping in a TOML file: tables `map`, `set` and `where`, lists `group` and `ignore`.

    A file that `redline import` has written into a store can be given again.

    Raises:
        UserError: there is no such file, it is no TOML, or it says what no mapping can.
    """
    place = f"--mapping {path}"
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UserError(f"{place}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{place}: this is no TOML ({error})") from None
    if isinstance(content.get(STORED), dict):
        content = content[STORED]
    if strangers := [key for key in content if key not in TABLES + LISTS]:
        raise UserError(
            f"{place}: {shown(strangers[0])} is no word of a mapping, which has "
            f"{listed((*TABLES, *LISTS), 5)}{nearest(strangers[0], TABLES + LISTS)}"
        )
    fields = {name: _table(place, name, content.get(name, {})) for name in TABLES}
    for name in ("map", "set"):
        for ours, value in fields[name].items():
            refuse_stranger(f"{place}: [{name}] {ours}", ours, value, f"--{name}")
    groups, ignores = (_list(place, name, content.get(name, [])) for name in LISTS)
    return built(fields, groups, ignores, f"{place}: ")


def _table(place: str, name: str, content: Any) -> dict[str, str]:
    if not isinstance(content, dict):
        raise UserError(f"{place}: {name} must be a table, written as [{name}]")
    return {
        key: _text(f"{place}: [{name}] {key}", value, name)
        for key, value in cast("dict[str, Any]", content).items()
    }


def _text(place: str, value: Any, name: str) -> str:
    match value:
        case str():
            return value.strip()
        case bool() if name != "map":
            return str(value).lower()
        case int() | float() if name != "map":
            return repr(value)
        case _:
            kind = "the name of a column" if name == "map" else "one value"
            raise UserError(f"{place}: {kind} is needed, in quotes; a table or list is none")


def _list(place: str, name: str, content: Any) -> list[str]:
    entries = cast("list[Any]", content) if isinstance(content, list) else [content]
    if not isinstance(content, list) or not all(isinstance(entry, str) for entry in entries):
        raise UserError(f'{place}: {name} must be a list of columns, as {name} = ["width"]')
    return entries
