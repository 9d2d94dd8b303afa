"""The proof that a trial is finished: one file, written last, that vouches for all the others."""

from pathlib import Path
from typing import Any

from redline.config.identity import SCHEMA, digest
from redline.files import UserError, read_json, sha256_file, write_json
from redline.store.layout import Store


def write_finished(store: Store, trial_id: str, study: str, result: dict[str, Any]) -> None:
    """Declare a trial finished. From here on no file of it changes."""
    path = store.finished(trial_id)
    assert not path.exists(), f"{path}: a finished trial is never overwritten"
    content = {
        "schema": SCHEMA,
        "trial_id": trial_id,
        "study": study,
        "result": result,
        "files": {file.name: _fingerprint(file) for file in _siblings(store, trial_id)},
    }
    write_json(path, content | {"digest": digest(content)})


def read_finished(store: Store, trial_id: str) -> dict[str, Any]:
    """The content of `finished.json`; non-finite results are the strings of `files.to_json`.

    Raises:
        UserError: the file is damaged or belongs to another trial.
    """
    path = store.finished(trial_id)
    content: dict[str, Any] = read_json(path)
    try:
        seal = content.pop("digest")
        whole = seal == digest(content) and content["trial_id"] == trial_id
    except (AttributeError, KeyError, TypeError):
        whole = False
    if not whole:
        raise UserError(f"{path}: this is not the result of trial {trial_id} as it was written")
    return content


def looks_damaged(store: Store, trial_id: str) -> bool:
    """Whether `finished.json` or the size of a file beside it is wrong: cheap, for many trials."""
    try:
        files = read_finished(store, trial_id)["files"]
    except UserError:
        return True
    return any(
        not path.exists() or path.stat().st_size != files[path.name]["size"]
        for path in _siblings(store, trial_id)
    )


def damaged_files(store: Store, trial_id: str) -> tuple[str, ...]:
    """Names of the files of a finished trial that are not byte for byte those that were written."""
    try:
        files = read_finished(store, trial_id)["files"]
    except UserError:
        return (store.finished(trial_id).name,)
    return tuple(
        path.name
        for path in _siblings(store, trial_id)
        if not path.exists() or _fingerprint(path) != files[path.name]
    )


def _siblings(store: Store, trial_id: str) -> tuple[Path, ...]:
    return store.trial(trial_id), store.series(trial_id), store.probes(trial_id)


def _fingerprint(path: Path) -> dict[str, Any]:
    return {"size": path.stat().st_size, "sha256": sha256_file(path)}
