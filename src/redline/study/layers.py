"""What one study file says, and how the files that it builds on lie under it."""

import tomllib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from redline.config.analysis import Analysis
from redline.config.trial import TEXT_SUFFIXES, Trial
from redline.config.words import nearest, shown
from redline.files import UserError
from redline.study.axes import Axes, axis_values
from redline.study.fields import (
    as_table,
    checked,
    field_path,
    field_value,
    is_field,
    opened,
    read_fields,
)
from redline.study.problems import Problems, known, sentence

Variations = dict[str, tuple[dict[str, Any], ...]]
"""A field's path or a group's name -> the changes of the base that it stands for."""

_PACKAGE = Path(str(resources.files("redline.study")))


def _printable(title: str) -> str:
    if not title.isprintable() or title != title.strip():
        raise ValueError("a title has printable characters and no space at its ends")
    return title


class File(BaseModel):
    """The shape of a study file. Every key that is not named here belongs to a trial."""

    model_config = ConfigDict(extra="allow", frozen=True)

    title: Annotated[str, Field(min_length=1, max_length=80), AfterValidator(_printable)] = ""
    extends: str = ""
    axes: dict[str, Any] = {}
    around_base: dict[str, Any] = {}
    extra_axes: list[dict[str, Any]] = []
    analysis: dict[str, Any] = {}


@dataclass(frozen=True)
class Layer:
    """One file, validated key by key. What spans several keys is checked on the whole study."""

    title: str
    fields: dict[str, Any]
    axes: Axes
    around_base: Variations
    extra_axes: tuple[Axes, ...]
    analysis: dict[str, Any]

    def over(self, lower: "Layer") -> "Layer":
        """This layer on top of another.

        The nearer file wins: a field that it sets ends an axis that it inherits. Blocks of extra
        axes add up.
        """
        inherited = {path: axis for path, axis in lower.axes.items() if path not in self.fields}
        return Layer(
            title=self.title,
            fields=lower.fields | self.fields,
            axes=inherited | self.axes,
            around_base=lower.around_base | self.around_base,
            extra_axes=lower.extra_axes + self.extra_axes,
            analysis=lower.analysis | self.analysis,
        )


def shipped() -> tuple[str, ...]:
    """The names of the studies that come with the package."""
    return tuple(sorted(path.stem for path in (_PACKAGE / "studies").glob("*.toml")))


def locate(reference: str | Path, folder: Path) -> Path:
    """The file that a shipped name, a path seen from `folder`, or a store directory stands for.

    A shipped name wins over a file of that name; `./name` or a `Path` is always a path.

    Raises:
        UserError: there is no such file.
    """
    if isinstance(reference, str) and reference in shipped():
        return _PACKAGE / "studies" / f"{reference}.toml"
    path = folder / Path(reference).expanduser()
    if path.is_dir():
        path /= "study.toml"
    if not path.is_file():
        raise UserError(
            f"{shown(str(reference))} is no study: there is no file {path}, and the shipped "
            f"studies are {', '.join(shipped())}{nearest(Path(reference).stem, shipped())}"
        )
    return path


def read_chain(path: Path, above: tuple[Path, ...] = ()) -> Layer:
    """A file on top of everything that it extends.

    Raises:
        UserError: a file is missing or invalid, or the chain is a circle.
    """
    chain = (*above, path.resolve())
    if path.resolve() in above:
        raise UserError(f"extends leads in a circle: {' -> '.join(map(str, chain))}")
    file = _read(path)
    layer = _layer(file, path)
    if not file.extends:
        return layer
    try:
        parent = locate(file.extends, path.parent)
    except UserError as error:
        raise UserError(f"{path}: extends: {error}") from None
    return layer.over(read_chain(parent, chain))


def read_protocol(name: str) -> Layer:
    """The layer under all others: what a protocol fixes."""
    return read_chain(_PACKAGE / "protocols" / f"{name}.toml")


def _read(path: Path) -> File:
    try:
        return File.model_validate(tomllib.loads(path.read_text("utf-8-sig")))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UserError(f"{path}: this is not TOML: {error}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: this is not UTF-8 text") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except ValidationError as error:
        raise UserError(f"{path}: {sentence(error, depth=0)}") from None


def _layer(file: File, path: Path) -> Layer:
    problems = Problems(str(path))
    layer = Layer(
        title=file.title,
        fields=_settings(file, path.parent, problems),
        axes=read_fields(file.axes, "axes", problems, axis_values),
        around_base=_variations(file.around_base, problems),
        extra_axes=tuple(
            read_fields(block, f"extra_axes.{index}", problems, axis_values)
            for index, block in enumerate(file.extra_axes)
        ),
        analysis=_analysis(file.analysis, problems),
    )
    problems.raise_if_any()
    return layer


def _settings(file: File, folder: Path, problems: Problems) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, raw in opened(file.model_extra or {}):
        with problems.at(name):
            if "." not in name and not is_field(name):
                known(name, (*File.model_fields, *Trial.model_fields))
            path = field_path(name)
            if path != name:
                raise UserError(f"no such key; did you mean {shown(path)}?")
            fields[path] = _setting(path, raw, folder)
    return fields


def _setting(path: str, raw: Any, folder: Path) -> Any:
    if path == "device" and raw == "auto":
        return raw
    if isinstance(raw, list):
        raise UserError(f"{shown(raw)} must be one value; several belong in [axes]")
    value = field_value(path, raw)
    if path == "data.corpus" and (set(value) & {"/", "\\"} or value.endswith(TEXT_SUFFIXES)):
        return str((folder / Path(value).expanduser()).resolve())
    return value


def _variations(table: dict[str, Any], problems: Problems) -> Variations:
    """A field with its values is one variation a value; a group of fields is one variation."""
    entries = dict(opened(table))
    groups = {
        name: as_table(raw)
        for name, raw in entries.items()
        if isinstance(raw, dict) and not is_field(name)
    }
    fields = {name: raw for name, raw in entries.items() if name not in groups}
    variations: Variations = {
        path: tuple({path: value} for value in values)
        for path, values in read_fields(fields, "around_base", problems, axis_values).items()
    }
    for name, group in groups.items():
        if not group:
            problems.note(f"around_base.{name}", "a group needs at least one field")
        variations[name] = (read_fields(group, f"around_base.{name}", problems, field_value),)
    return variations


def _analysis(table: dict[str, Any], problems: Problems) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for key, raw in table.items():
        with problems.at(f"analysis.{key}"):
            known(key, Analysis.model_fields)
            settings[key] = checked(Analysis, key, raw)
    return settings
