"""Files that survive a kill: atomic writes, JSON without NaN, hashes and locks.

Every byte that Redline keeps goes through here, so that durability is decided in one place.
"""

import contextlib
import errno
import hashlib
import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

TRANSIENT = {errno.EIO, errno.EAGAIN, errno.EINTR, errno.EBUSY, errno.ESTALE, errno.ETIMEDOUT}
RETRY_AFTER_S = (0.05, 0.2, 1.0)


class UserError(Exception):
    """Bad input: one clear sentence for the person who typed it; the program exits with code 2."""


def write_atomic(path: Path, content: bytes) -> None:
    """Replace `path` with `content` so that a reader or a kill sees the old file or the new one.

    A transient error of a network disk is tried again a few times; a full disk is raised at once.
    """
    for wait_s in (*RETRY_AFTER_S, None):
        try:
            _replace(path, content)
            return
        except OSError as error:
            if error.errno not in TRANSIENT or wait_s is None:
                raise
            time.sleep(wait_s)


def _replace(path: Path, content: bytes) -> None:
    # The pid keeps two writers of one file apart; what a kill leaves behind is never read.
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make a rename in `path` durable: without this the name can be lost while the data is safe."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def to_json(value: Any, *, indent: int | None = None, sort_keys: bool = False) -> str:
    """JSON text in which non-finite numbers are the strings "nan", "inf" and "-inf".

    JSON has no such numbers, and writers that turn them into null hide what Redline measures.
    """
    separators = None if indent else (",", ":")
    return json.dumps(
        _named(value),
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
        allow_nan=False,
    )


def _named(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
        case dict():
            return {key: _named(item) for key, item in cast("dict[str, Any]", value).items()}
        case list() | tuple():
            return [_named(item) for item in cast("Sequence[Any]", value)]
        case _:
            return value


def write_json(path: Path, value: Any) -> None:
    """Write `value` atomically as indented JSON that `cat` and `diff` can read."""
    write_atomic(path, (to_json(value, indent=1) + "\n").encode())


def read_json(path: Path) -> Any:
    """The value in a JSON file.

    Raises:
        UserError: the file is not JSON, named with its line.
    """
    try:
        return json.loads(path.read_text("utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: damaged JSON ({error})") from None


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON Lines file, without a last line that a kill cut short.

    Raises:
        UserError: a line in the middle is damaged.
    """
    if not path.exists():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                yield json.loads(line)
            except ValueError:
                raise UserError(f"{path}: line {number} is damaged") from None


def sha256_file(path: Path) -> str:
    """The hex SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
