"""A study: the base configuration, the axes around it, and how it will be judged."""

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import ValidationError

from redline.config.analysis import Analysis
from redline.config.edit import unflatten
from redline.config.identity import LOCATORS, digest
from redline.files import UserError
from redline.study.fields import PATHS, plain
from redline.study.layers import locate, read_chain, read_protocol
from redline.study.problems import Problems, sentence

DEFAULT_PROTOCOL = "nanogpt"
WINDOWS_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}
)


@dataclass(frozen=True)
class Study:
    """Everything that a study file and the files under it say, explicit and validated.

    `fields` maps every dotted path that has a value in the base; `axes` and `extra_axes` map paths
    to values; `around_base` maps a field or a group's name to the changes of its variations.
    """

    title: str
    source: str = field(compare=False)
    fields: Mapping[str, Any]
    axes: Mapping[str, tuple[Any, ...]]
    around_base: Mapping[str, tuple[Mapping[str, Any], ...]]
    extra_axes: tuple[Mapping[str, tuple[Any, ...]], ...]
    analysis: Analysis

    @property
    def explicit(self) -> dict[str, Any]:
        """The whole study as one nested table of TOML values; loading it gives it back."""
        table = {
            "title": self.title,
            **unflatten({path: plain(value) for path, value in self.fields.items()}),
            "analysis": self.analysis.model_dump(mode="json", exclude_none=True),
            "axes": _listed(self.axes),
            "around_base": {
                name: [plain(change[name]) for change in changes]
                if name in PATHS
                else {path: plain(value) for path, value in changes[0].items()}
                for name, changes in self.around_base.items()
            },
            "extra_axes": [_listed(block) for block in self.extra_axes],
        }
        return {key: value for key, value in table.items() if value not in ({}, [])}

    @property
    def digest(self) -> str:
        """16 hex digits that name the study, wherever its corpus lies."""
        fields = {path: value for path, value in self.fields.items() if path not in LOCATORS}
        return digest(replace(self, fields=fields).explicit)

    def to_toml(self) -> str:
        """The text of an explicit study file."""
        return tomli_w.dumps(self.explicit)

    def pinned(self, device: str) -> "Study":
        """The same study with `device = "auto"` decided; a device that it names itself stays."""
        if self.fields["device"] != "auto":
            return self
        return replace(self, fields={**self.fields, "device": device})


def default_analysis() -> Analysis:
    """The margins of the default protocol, for results that no study registered any for."""
    return Analysis.model_validate(read_protocol(DEFAULT_PROTOCOL).analysis)


def load(reference: str | Path) -> Study:
    """The study that a shipped name, a TOML file or a store directory holds.

    Protocol < extended files < the file itself. What only a combination of values can violate is
    checked when the study is expanded.

    Raises:
        UserError: everything that is wrong, one sentence a line.
    """
    path = locate(reference, Path())
    layer = read_chain(path)
    problems = Problems(str(path))
    if not layer.title:
        problems.note("title", "a study needs one, of 1 to 80 printable characters")
    if "protocol" in layer.fields:
        layer = layer.over(read_protocol(layer.fields["protocol"]))
        for missing in (name for name in PATHS if name not in layer.fields | layer.axes):
            problems.note(missing, "a value is needed, here or as an axis")
    else:
        problems.note("protocol", 'a study needs one, such as "nanogpt"')
    problems.raise_if_any()
    return Study(
        title=layer.title,
        source=str(path),
        fields={name: layer.fields[name] for name in PATHS if name in layer.fields},
        axes=layer.axes,
        around_base=layer.around_base,
        extra_axes=layer.extra_axes,
        analysis=_analysis(layer.analysis, path),
    )


def slug(title: str) -> str:
    """A directory name for a title: at most 60 of a-z, 0-9 and "-", safe on every system."""
    ascii_text = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    name = re.sub("[^a-z0-9]+", "-", ascii_text.lower()).strip("-")[:60].rstrip("-")
    if not name:
        # Nothing of a title in another script is left: its hash keeps two of them apart.
        return f"study-{hashlib.sha256(title.encode()).hexdigest()[:8]}"
    return f"study-{name}" if name in WINDOWS_DEVICES else name


def _analysis(settings: dict[str, Any], path: Path) -> Analysis:
    try:
        return Analysis.model_validate(settings)
    except ValidationError as error:
        raise UserError(f"{path}: {sentence(error, depth=0)}") from None


def _listed(axes: Mapping[str, tuple[Any, ...]]) -> dict[str, list[Any]]:
    return {path: [plain(value) for value in values] for path, values in axes.items()}
