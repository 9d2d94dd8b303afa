"""Where everything lies in a store: a directory of plain files that `cat` can read."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from redline.config.edit import flatten, unflatten
from redline.config.identity import LEGACY, SCHEMA, Tokens, trial_id
from redline.config.trial import Trial
from redline.files import UserError, read_json, write_atomic, write_json


@dataclass(frozen=True)
class Store:
    """A handle on one store directory. It keeps no state: the files are the only record."""

    root: Path

    @property
    def exists(self) -> bool:
        return (self.root / "trials").is_dir()

    @property
    def tables(self) -> Path:
        return self.root / "tables"

    @property
    def imports(self) -> Path:
        return self.root / "imports"

    def import_dir(self, sha256: str) -> Path:
        return self.imports / sha256

    @property
    def reports(self) -> Path:
        return self.root / "report"

    def trial_dir(self, trial_id: str) -> Path:
        return self.root / "trials" / trial_id

    def trial(self, trial_id: str) -> Path:
        return self.trial_dir(trial_id) / "trial.json"

    def provenance(self, trial_id: str) -> Path:
        return self.trial_dir(trial_id) / "provenance.json"

    def series(self, trial_id: str) -> Path:
        return self.trial_dir(trial_id) / "series.jsonl"

    def probes(self, trial_id: str) -> Path:
        return self.trial_dir(trial_id) / "probes.jsonl"

    def finished(self, trial_id: str) -> Path:
        return self.trial_dir(trial_id) / "finished.json"

    def attempts(self, trial_id: str) -> Path:
        return self.trial_dir(trial_id) / "attempts"

    def checkpoints(self, trial_id: str) -> Path:
        return self.trial_dir(trial_id) / "checkpoint"

    def lock(self, trial_id: str) -> Path:
        return self.root / "claims" / f"{trial_id}.lock"

    def holder(self, trial_id: str) -> Path:
        return self.root / "claims" / f"{trial_id}.json"

    def create(self) -> Self:
        """Make the directories of an empty store; an existing store stays as it is."""
        for name in ("trials", "claims", "corpora", "studies", "tables"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        return self

    def ids(self) -> list[str]:
        """The trials that the store knows, finished or not, sorted."""
        return sorted(path.parent.name for path in self.root.glob("trials/*/trial.json"))

    def put_study(self, digest: str, toml: str) -> None:
        """Keep the explicit text of a study and mark it as the last one that ran."""
        write_atomic(self.root / "studies" / f"{digest}.toml", toml.encode())
        write_atomic(self.root / "study.toml", toml.encode())

    def put_corpus(self, manifest: dict[str, Any]) -> None:
        """Keep the manifest of a prepared corpus under its `token_sha256`."""
        path = self._corpus(manifest["token_sha256"])
        if not path.exists():
            write_json(path, manifest)

    def corpus(self, token_sha256: str) -> dict[str, Any]:
        """The manifest of the corpus with this token hash.

        Raises:
            UserError: the store holds no such manifest, or it is damaged.
        """
        path = self._corpus(token_sha256)
        if not path.exists():
            raise UserError(f"{path}: the store holds no manifest of this corpus")
        return read_json(path)

    def put_trial(self, trial: Trial, tokens: Tokens) -> str:
        """Make a trial known to the store and return its id; a known one is not touched."""
        name = trial_id(trial, tokens)
        path = self.trial(name)
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            content = {
                "schema": SCHEMA,
                "tokens": tokens.model_dump(),
                "trial": trial.model_dump(),
            }
            write_json(path, content)
        return name

    def read_trial(self, trial_id: str) -> tuple[Trial, Tokens]:
        """What a trial is, checked against its name.

        Raises:
            UserError: `trial.json` is missing, damaged, or was edited after the trial was named.
        """
        path = self.trial(trial_id)
        if not path.exists():
            raise UserError(f"{path}: the store holds no trial {trial_id}")
        trial, tokens = _parse_trial(path, read_json(path))
        _refuse_another_name(path, trial_id, trial, tokens)
        return trial, tokens

    def _corpus(self, token_sha256: str) -> Path:
        return self.root / "corpora" / f"{token_sha256}.json"


def _parse_trial(path: Path, content: Any) -> tuple[Trial, Tokens]:
    try:
        fields = flatten(content["trial"])
        # A field added later has the value that older trials had, unless the file says otherwise:
        # by the field itself, by the options of a component, or by a component that is absent.
        fields |= {
            path: value
            for path, value in LEGACY.items()
            if not any(_is_within(known, path) or _is_within(path, known) for known in fields)
        }
        # An option that is missing gets its default: the name tells whether it had that value.
        return Trial.model_validate(unflatten(fields)), Tokens.model_validate(content["tokens"])
    except (KeyError, TypeError, AttributeError):
        raise UserError(f"{path}: this is not the file of a trial") from None
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise UserError(f"{path}: {field or 'the trial'}: {first['msg']}") from None


def _is_within(path: str, section: str) -> bool:
    return f"{path}.".startswith(f"{section}.")


def _refuse_another_name(path: Path, name: str, trial: Trial, tokens: Tokens) -> None:
    actual = trial_id(trial, tokens)
    if actual != name:
        raise UserError(
            f"{path}: trial {name} was edited: its fields are those of trial {actual}; "
            "restore the file, or remove the directory to train it again"
        )
