"""The one place that closes loops: a study, its store, and what happens between them."""

import contextlib
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from redline.config.identity import Tokens, digest, scientific_fields, trial_id
from redline.config.trial import Data, Trial
from redline.execute.plan import Plan, plan
from redline.files import UserError
from redline.store.layout import Store
from redline.study.expand import expand
from redline.study.spec import Study, load, slug
from redline.train.device import resolve

if TYPE_CHECKING:
    from redline.analysis.findings import Findings
    from redline.store.tables import Tables

RUNS = Path("redline-runs")


@dataclass(frozen=True)
class Session:
    """A study that is open on a store. `trials` are all that the study asks for, in order."""

    study: Study
    store: Store
    trials: tuple[Trial, ...]

    @cached_property
    def tokens(self) -> dict[Data, Tokens]:
        """The token hashes of every corpus, prepared now where they are not in the cache."""
        from redline.data.tokens import prepare

        found: dict[Data, Tokens] = {}
        for data in dict.fromkeys(trial.data for trial in self.trials):
            corpus = prepare(data)
            self.store.create().put_corpus(corpus.manifest)
            found[data] = corpus.tokens
        return found

    @cached_property
    def by_id(self) -> dict[str, Trial]:
        """Trial id -> trial, in the study's order; prepares the corpora, since ids hash them."""
        return {trial_id(trial, self.tokens[trial.data]): trial for trial in self.trials}

    @cached_property
    def known_ids(self) -> list[str] | None:
        """Ids in the study's order without preparing anything, or None if they are not known.

        Where the cache or the text itself is gone, the store still knows its trials.
        """
        tokens = {data: _prepared(data) for data in dict.fromkeys(t.data for t in self.trials)}
        if all(tokens.values()):
            return [trial_id(t, found) for t in self.trials if (found := tokens[t.data])]
        stored = {digest(scientific_fields(trial)): name for name, trial in self._stored()}
        ids = [stored.get(digest(scientific_fields(trial))) for trial in self.trials]
        return [name for name in ids if name] if all(ids) else None

    def _stored(self) -> Iterator[tuple[str, Trial]]:
        for name in self.store.ids():
            with contextlib.suppress(UserError):  # an edited one has lost its name
                yield name, self.store.read_trial(name)[0]

    def begin(self) -> Plan:
        """Write the study and its trials into the store and say what is left to do."""
        for trial in self.trials:
            self.store.put_trial(trial, self.tokens[trial.data])
        # Last: a study whose corpus cannot be prepared must not take the store's name.
        self.store.put_study(self.study.digest, self.study.to_toml())
        return plan(self.store, list(self.by_id))

    @cached_property
    def tables(self) -> "Tables":
        """The tables of what has finished when they are first asked for."""
        from redline.store.tables import load as load_tables

        return load_tables(self.store, list(self.by_id))

    def findings(self) -> "Findings":
        """What the trials that have finished so far say."""
        from redline.analysis.comparable import planned
        from redline.analysis.findings import Design, Measured, find

        tables = self.tables
        axis = self.study.axes.get("train.peak_lr")
        return find(
            Measured(tables.trials, tables.series, tables.probes),
            Design(planned(list(self.by_id.items())), axis),
            self.study.analysis,
        )


def open_session(reference: str, store: Path | None = None) -> Session:
    """Open a study (a shipped name, a TOML file or a store directory) on its store.

    The store defaults to the directory itself, or to `redline-runs/<title>`. A device that was
    decided when the store was created stays.

    Raises:
        UserError: anything wrong with the study, one sentence a line.
    """
    study = load(reference)
    source = Path(study.source)
    in_store = source.name == "study.toml" and (source.parent / "trials").is_dir()
    root = store or (source.parent if in_store else RUNS / slug(study.title))
    if root.exists() and not root.is_dir():
        raise UserError(f"--store {root}: this is a file, not a directory")
    device = resolve(_decided_device(root) or study.fields["device"])
    study = study.pinned(device)
    trials = expand(study, device)
    for kind in {trial.device for trial in trials}:
        resolve(kind)
    return Session(study, Store(root), trials)


def _prepared(data: Data) -> Tokens | None:
    from redline.data.tokens import prepared

    try:
        return prepared(data)
    except UserError:
        return None  # the text is not where it was; `run` will say so, reading needs it not


def _decided_device(root: Path) -> str | None:
    path = root / "study.toml"
    if not path.exists():
        return None
    try:
        return tomllib.loads(path.read_text("utf-8"))["device"]
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError):
        raise UserError(f"{path}: damaged; copy the right one from {root / 'studies'}") from None
