"""Rows of another tool, kept under STORE/imports/<sha256 of their file>/.

They have no trial identity: nobody knows all that their results depend on, so they are read by the
analysis and never trained. The names in the directory are ours alone; what the files say is other
people's data and is checked when it is read.
"""

import hashlib
import io
import re
import tomllib
from pathlib import Path

import polars as pl
import tomli_w
from pydantic import Field, ValidationError

from redline import __version__
from redline.config.trial import Frozen
from redline.files import UserError, write_atomic
from redline.foreign.intake import Counts, Intake
from redline.foreign.mapping import Mapping
from redline.foreign.source import Source
from redline.store.layout import Store

ROWS, MAP = "rows.parquet", "map.toml"
_SHA256 = "^[0-9a-f]{64}$"


class Import(Frozen):
    """Where imported rows come from: `name` and `sha256` of the file, and how it was read."""

    name: str = Field(min_length=1, pattern=r"^[^/\\\x00]+$")
    sha256: str = Field(pattern=_SHA256)
    rows_sha256: str = Field(pattern=_SHA256)
    redline: str
    counts: Counts
    mapping: Mapping


def put(store: Store, source: Source, intake: Intake) -> Import:
    """Keep the rows of a file; those that another mapping of the same file gave are replaced.

    Raises:
        UserError: the store is a file.
    """
    if store.root.exists() and not store.root.is_dir():
        raise UserError(f"--store {store.root}: this is a file, not a directory")
    content = io.BytesIO()
    intake.frame.write_parquet(content)
    found = Import(
        name=source.name,
        sha256=source.sha256,
        rows_sha256=hashlib.sha256(content.getvalue()).hexdigest(),
        redline=__version__,
        counts=intake.counts,
        mapping=intake.mapping,
    )
    folder = store.import_dir(source.sha256)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / ROWS, content.getvalue())
    # Last, with the hash of the rows: after a kill between the two, the pair does not pass as one.
    write_atomic(folder / MAP, tomli_w.dumps(found.model_dump(mode="json")).encode())
    return found


def imports(store: Store) -> list[str]:
    """The SHA-256 of every file whose rows the store keeps, sorted."""
    found = (path.parent.name for path in store.imports.glob(f"*/{MAP}"))
    return sorted(name for name in found if re.fullmatch(_SHA256, name))


def describe(store: Store, sha256: str) -> Import:
    """Where the rows of one file come from.

    Raises:
        UserError: the store holds no such import, or what it says of it is damaged.
    """
    path = _folder(store, sha256) / MAP
    try:
        found = Import.model_validate(tomllib.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        raise UserError(f"{path}: the store holds no rows of a file with this hash") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, ValidationError, RecursionError):
        raise _damaged(path) from None
    if found.sha256 != sha256:
        raise _damaged(path)
    return found


def load(store: Store, sha256: str) -> pl.DataFrame:
    """The rows of one file in its order: the columns of our own trials, `origin`, `row`, `group.*`.

    A `final_loss` is nan or inf where the run diverged, and null where there is no result.

    Raises:
        UserError: the store holds no such import, or its files are not those that were written.
    """
    found = describe(store, sha256)
    path = _folder(store, sha256) / ROWS
    try:
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != found.rows_sha256:
            raise _damaged(path)
        frame = pl.read_parquet(io.BytesIO(content))
    except (OSError, pl.exceptions.PolarsError):
        raise _damaged(path) from None
    if frame.schema != pl.Schema(found.mapping.row_schema) or frame.height != found.counts.kept:
        raise _damaged(path)
    return frame


def provenance(source: Import) -> list[tuple[str, str]]:
    """Where the rows come from, as (name, value) pairs for a page."""
    counts = source.counts
    return [
        ("File", source.name),
        ("SHA-256", source.sha256),
        ("Rows", f"{counts.read:,} read, {counts.filtered:,} left out, {counts.kept:,} kept"),
        ("Exact copies", f"{counts.duplicates:,}, which count once"),
        ("Runs tried again", f"{counts.superseded:,}, in place of which the finished one counts"),
        ("Read by", f"redline {source.redline}"),
    ]


def _folder(store: Store, sha256: str) -> Path:
    # A hash that is a path would lead out of the store.
    if not re.fullmatch(_SHA256, sha256):
        raise UserError(f"{sha256!r} is no SHA-256 of a file")
    return store.import_dir(sha256)


def _damaged(path: Path) -> UserError:
    return UserError(f"{path}: damaged or written by another version; import the file again")
