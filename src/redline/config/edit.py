"""Read and change a nested configuration by dotted paths such as `train.peak_lr`."""

from collections.abc import Mapping
from typing import Any, cast

from pydantic import BaseModel

from redline.config.trial import Trial


def flatten(nested: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Dotted path -> value, tables opened, everything else kept."""
    flat: dict[str, Any] = {}
    for key, value in nested.items():
        path = f"{prefix}{key}"
        if isinstance(value, dict):
            flat |= flatten(cast("dict[str, Any]", value), f"{path}.")
        else:
            flat[path] = value
    return flat


def unflatten(flat: dict[str, Any]) -> dict[str, Any]:
    """The inverse of `flatten`."""
    nested: dict[str, Any] = {}
    for path, value in flat.items():
        put(nested, path, value)
    return nested


def put(nested: dict[str, Any], path: str, value: Any) -> None:
    """Set one dotted path in place, with the tables on the way."""
    *parents, leaf = path.split(".")
    for parent in parents:
        nested = nested.setdefault(parent, {})
    nested[leaf] = value


def field_paths(model: type[BaseModel] = Trial, prefix: str = "") -> tuple[str, ...]:
    """Every field that a study can set: sections opened, optional components kept whole."""
    paths: list[str] = []
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            paths += field_paths(kind, f"{prefix}{name}.")
        else:
            paths.append(f"{prefix}{name}")
    return tuple(paths)


def value_at(trial: Trial, path: str) -> Any:
    """The value of one dotted path; a component such as `model.qk_norm` comes back whole."""
    value: Any = trial
    for name in path.split("."):
        value = getattr(value, name)
    return value


def with_fields(trial: Trial, changes: Mapping[str, Any]) -> Trial:
    """A copy of a trial with some dotted paths changed, validated as a whole."""
    nested = trial.model_dump()
    for path, value in changes.items():
        put(nested, path, value)
    return Trial.model_validate(nested)
