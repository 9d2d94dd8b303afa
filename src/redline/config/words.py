"""How people write the arms and how their values are shown back to them."""

import json
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, get_args

from redline.config.trial import QKNorm

ON_WORDS = ("on", "true", "yes", "1")
OFF_WORDS = ("off", "false", "no", "0")
KINDS: tuple[str, ...] = get_args(QKNorm.model_fields["kind"].annotation)

ARMS: Mapping[str, QKNorm | None] = MappingProxyType(
    {word: QKNorm() for word in ON_WORDS}
    | dict.fromkeys(OFF_WORDS)
    | {kind: QKNorm.model_validate({"kind": kind}) for kind in KINDS}
)
"""Lower-case word for the QK-norm of an arm -> its component, or None where it is off."""


def shown(value: Any) -> str:
    """A value as its author would write it."""
    return json.dumps(value, ensure_ascii=False, default=str)


def nearest(word: str, allowed: Iterable[str]) -> str:
    """The end of a sentence that proposes the closest allowed word; empty when none is close."""
    match = get_close_matches(word, list(allowed), n=1)
    return f"; did you mean {shown(match[0])}?" if match else ""


def listed(values: Iterable[Any], limit: int) -> str:
    """Values in a sentence, the first `limit` of them by name."""
    names = [str(value) or '""' for value in values]
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
