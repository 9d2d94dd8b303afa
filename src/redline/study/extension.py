"""A study file that adds trials to a study: a short text that extends it by one block of axes.

Everything that the study has stays in it, so that finished trials are found again by their names
and the answers use them all.
"""

import json
from collections.abc import Sequence
from typing import Any

from redline.config.edit import value_at
from redline.config.trial import QKNorm, Trial
from redline.config.words import ARMS
from redline.study.fields import PATHS, as_table, plain
from redline.study.spec import Study

MAX_TITLE = 80


def extension(study: Study, reference: str, trials: Sequence[Trial]) -> str:
    """The TOML text of a study that holds those of `study` and every combination of `trials`.

    `reference` is what `extends` shall name: a shipped study or a path. The block names each axis
    of the study and each field in which a trial leaves the base.
    """
    lines = [f"title = {_toml(_title(study.title))}", f"extends = {_toml(reference)}"]
    lines += ["", "[[extra_axes]]"]
    for path in PATHS:
        values = list(dict.fromkeys(value_at(trial, path) for trial in trials))
        if path in study.axes or any(value != study.fields.get(path) for value in values):
            lines.append(f"{path} = [{', '.join(map(_value, values))}]")
    return "\n".join(lines) + "\n"


def _title(title: str) -> str:
    end = ", next"
    return title if title.endswith(end) else f"{title[: MAX_TITLE - len(end)].rstrip()}{end}"


def _value(value: Any) -> str:
    """A value of an axis; an arm by its word where it has one."""
    if value is None or isinstance(value, QKNorm):
        words = [word for word in ("off", "on", *ARMS) if ARMS[word] == value]
        return _toml(words[0] if words else plain(value))
    return _toml(value)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"{key} = {_toml(item)}" for key, item in as_table(value).items())
        return f"{{ {', '.join(pairs)} }}"
    # JSON's spelling of text, numbers and truth values is TOML's too, but for this one character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
