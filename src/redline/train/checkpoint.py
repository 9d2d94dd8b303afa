"""A checkpoint is one safetensors file that knows its own hash.

Tensors are named `weight/...`, `exp_avg/...`, `exp_avg_sq/...`; the rest of the state is JSON in
the file's metadata. Loading is strict and runs no code.
"""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

FORMAT = "redline-checkpoint-1"


class DamagedError(Exception):
    """These bytes are no whole checkpoint of this version."""


def pack(tensors: dict[str, Tensor], state: dict[str, Any]) -> bytes:
    """The bytes of a checkpoint; `state` holds what is no tensor (step, initial loss, hashes)."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    about = json.dumps(state)
    digest = _digest(tensors, about)
    return save(tensors, {"format": FORMAT, "state": about, "sha256": digest})


def unpack(content: bytes) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and state of `pack`.

    Raises:
        DamagedError: cut short, altered, or of another format.
    """
    try:
        n_header = int.from_bytes(content[:8], "little")
        about = json.loads(content[8 : 8 + n_header])["__metadata__"]
        tensors = load(content)
        version, digest, state = about["format"], about["sha256"], about["state"]
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise DamagedError(f"not a checkpoint: {error}") from None
    if version != FORMAT:
        raise DamagedError(f"format {version!r}, this version reads {FORMAT!r}")
    if digest != _digest(tensors, state):
        raise DamagedError("its bytes do not match its hash")
    return tensors, json.loads(state)


def newest(
    checkpoints: Iterable[bytes], owner: str
) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The first whole checkpoint of `checkpoints` (newest first) whose state names `owner`.

    What is damaged or belongs to another run is passed over with a line that says so.
    """
    for content in checkpoints:
        try:
            tensors, state = unpack(content)
        except DamagedError as problem:
            print(f"passing over a damaged checkpoint: {problem}")
            continue
        if state.get("owner") == owner:
            return tensors, state
        print("passing over a checkpoint of another trial, text or initial weights")
    return None


def _digest(tensors: dict[str, Tensor], about: str) -> str:
    digest = hashlib.sha256(about.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name}:{tuple(tensor.shape)}:{tensor.dtype}".encode())
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()
