"""The name of a trial: a hash of everything that can change its result.

Paths, hosts, threads and executors are provenance and never enter. `data.corpus` says where tokens
lie; what they are enters as the hash of the prepared token file and of the tokenizer.
"""

import hashlib
from typing import Any

from pydantic import Field

from redline.config.edit import flatten, unflatten
from redline.config.trial import Frozen, Trial
from redline.files import to_json

SCHEMA = 1
LOCATORS = frozenset({"data.corpus"})
"""Fields that are provenance. Every other field of a trial is scientific."""

LEGACY: dict[str, Any] = {}
"""Fields added after schema 1 with the value that older trials had. A field at its legacy value is
left out of the encoding, so a new field changes no old id."""


class Tokens(Frozen):
    """The hashes that say which tokens a trial reads."""

    # A store from elsewhere is data: a hash that is a path would lead out of the cache.
    token_sha256: str = Field(pattern="^[0-9a-f]{64}$")
    tokenizer_sha256: str = Field(pattern="^[0-9a-f]{64}$")


def canonical(value: Any) -> str:
    """JSON with sorted keys, no spaces and floats by `repr`: equal values, equal text."""
    return to_json(value, sort_keys=True)


def scientific_fields(trial: Trial, legacy: dict[str, Any] = LEGACY) -> dict[str, Any]:
    """Dotted path -> value of every field that enters the identity."""
    fields = flatten(trial.model_dump())
    return {
        path: value
        for path, value in fields.items()
        if path not in LOCATORS and not (path in legacy and legacy[path] == value)
    }


def trial_id(trial: Trial, tokens: Tokens, legacy: dict[str, Any] = LEGACY) -> str:
    """16 hex digits: the first 64 bits of the SHA-256 of the canonical encoding."""
    encoding = {
        "schema": SCHEMA,
        "tokens": tokens.model_dump(),
        "trial": unflatten(scientific_fields(trial, legacy)),
    }
    return hashlib.sha256(canonical(encoding).encode()).hexdigest()[:16]


def digest(value: Any) -> str:
    """16 hex digits that name any JSON value, such as an explicit study."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:16]
