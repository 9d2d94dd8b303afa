"""The fields that a study may set: their names and their single values."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import ValidationError, create_model

from redline.config.edit import field_paths
from redline.config.identity import LOCATORS
from redline.config.trial import Frozen, QKNorm, Trial
from redline.config.words import ARMS, KINDS, nearest, shown
from redline.files import UserError
from redline.study.problems import Problems, known, sentence, unknown

T = TypeVar("T")

PATHS = field_paths()
"""Every field by its dotted path, in the order of `Trial`."""

SECTIONS = tuple(dict.fromkeys(path.split(".")[0] for path in PATHS if "." in path))

QK_NORM = "model.qk_norm"

_LEAVES = [path.rpartition(".")[2] for path in PATHS]
_BY_LEAF = {
    leaf: path for leaf, path in zip(_LEAVES, PATHS, strict=True) if _LEAVES.count(leaf) == 1
}
_FIXED = {*LOCATORS, "protocol"}


def is_field(name: str) -> bool:
    """Whether a field has this dotted path or unique leaf name."""
    return name in PATHS or name in _BY_LEAF


def field_path(name: str) -> str:
    """The dotted path of a field named by its path or by its unique leaf name.

    Raises:
        UserError: no field has this name.
    """
    if name in PATHS:
        return name
    if name in _BY_LEAF:
        return _BY_LEAF[name]
    if name in SECTIONS:
        raise UserError("this is a section: it needs a table of fields")
    section, _, leaf = name.rpartition(".")
    if leaf in _BY_LEAF:
        raise UserError(f"no such key; did you mean {shown(_BY_LEAF[leaf])}?")
    here = [path.rpartition(".")[2] for path in PATHS if path.startswith(f"{section}.")]
    raise unknown(leaf, here or _BY_LEAF)


def axis_path(name: str) -> str:
    """The dotted path of a field that may differ between the trials of one study.

    Raises:
        UserError: no such field, or one that a study has once.
    """
    path = field_path(name)
    if path in _FIXED:
        raise UserError("a study has one value of this: set it outside of the axes")
    return path


def kind_of(path: str) -> Any:
    """The annotation of a field: `int`, `float`, `bool`, a Literal, ..."""
    owner, name = _owner(path)
    return owner.model_fields[name].annotation


def field_value(path: str, raw: Any) -> Any:
    """One value of a field, converted and validated; number-like text becomes a number.

    Raises:
        UserError: the value is of a wrong type or out of range.
    """
    owner, name = _owner(path)
    return checked(owner, name, _qk_norm(raw) if path == QK_NORM else raw)


def checked(owner: type[Frozen], name: str, raw: Any) -> Any:
    """One value of one field of a model, validated without its siblings.

    Raises:
        UserError: the value is of a wrong type or out of range.
    """
    try:
        return getattr(_alone(owner, name).model_validate({name: raw}), name)
    except ValidationError as error:
        raise UserError(sentence(error, depth=1)) from None


def plain(value: Any) -> Any:
    """A field's value as TOML and JSON hold it: a component as its table, none as "off"."""
    match value:
        case None:
            return "off"
        case Frozen():
            return value.model_dump()
        case _:
            return value


def label(value: Any) -> str:
    """A field's value in a sentence; a component by its short name."""
    match value:
        case None:
            return "off"
        case QKNorm():
            return value.label
        case _:
            return shown(value)


def read_fields(
    table: Mapping[str, Any], where: str, problems: Problems, read: Callable[[str, Any], T]
) -> dict[str, T]:
    """Dotted path -> `read(path, raw)` for each entry of a table whose keys name axes."""
    found: dict[str, T] = {}
    for name, raw in opened(table):
        with problems.at(f"{where}.{name}"):
            path = axis_path(name)
            if path in found:
                raise UserError(f"{path} is given twice, under two names")
            found[path] = read(path, raw)
    return found


def opened(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Name and value of each entry; `model.n_layer = ...` is a table in TOML and is opened."""
    for name, value in table.items():
        if name in SECTIONS and isinstance(value, Mapping):
            inner = cast("Mapping[str, Any]", value)
            yield from ((f"{name}.{leaf}", item) for leaf, item in inner.items())
        else:
            yield name, value


def as_table(value: Any) -> dict[str, Any]:
    """The value itself, if it is a table.

    Raises:
        UserError: it is something else.
    """
    if not isinstance(value, dict):
        raise UserError(f"{shown(value)} must be a table")
    return cast("dict[str, Any]", value)


def _owner(path: str) -> tuple[type[Frozen], str]:
    *sections, name = path.split(".")
    owner: type[Frozen] = Trial
    for section in sections:
        owner = cast("type[Frozen]", owner.model_fields[section].annotation)
    return owner, name


@cache
def _alone(owner: type[Frozen], name: str) -> type[Frozen]:
    # A model of this one field keeps the constraints and the rules that all of `Frozen` share.
    field = owner.model_fields[name]
    definition: dict[str, Any] = {name: (field.annotation, field)}
    return create_model(owner.__name__, __base__=Frozen, **definition)


def _qk_norm(raw: Any) -> Any:
    """Words and truth values of the arm as its component: none, the default or a named kind."""
    if isinstance(raw, dict):
        options = as_table(raw)
        for option in options:
            known(option, QKNorm.model_fields)
        return options
    if not isinstance(raw, bool | int | str):
        return raw
    word = str(raw).strip().lower()
    if word not in ARMS:
        raise UserError(
            f"{shown(raw)} must be on, off, {', '.join(KINDS)} or a table of options"
            f"{nearest(word, ARMS)}"
        )
    return ARMS[word]
