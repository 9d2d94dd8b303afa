"""The one place that closes loops: a study, its store, and what happens between them."""

import contextlib
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import tomli_w

from redline.config.identity import Tokens, digest, scientific_fields, trial_id
from redline.config.trial import Data, Trial
from redline.execute.plan import Plan, plan
from redline.files import UserError
from redline.store.layout import Store
from redline.store.schema import Column
from redline.study.expand import expand
from redline.study.layers import shipped
from redline.study.spec import Study, default_analysis, load, slug
from redline.train.device import resolve

if TYPE_CHECKING:
    import polars as pl

    from redline.analysis.findings import Findings, Measured
    from redline.foreign.rows import Import
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

        return load_tables(self.store, self.ids)

    @property
    def ids(self) -> list[str]:
        """The ids of the trials in the study's order, without preparing where they are known."""
        return self.known_ids or list(self.by_id)

    def findings(self) -> "Findings":
        """What the trials that have finished so far say."""
        from redline.analysis.comparable import planned
        from redline.analysis.findings import Design, Measured, find

        tables = self.tables
        axis = self.study.axes.get("train.peak_lr")
        return find(
            Measured(tables.trials, tables.series, tables.probes),
            Design(planned(list(zip(self.ids, self.trials, strict=True))), axis),
            self.study.analysis,
        )

    def report(self, directory: Path) -> "Reported":
        """Write the page, figures and tables of what has finished so far."""
        from redline.analysis.audit import audit
        from redline.analysis.cautions import cautions
        from redline.report import sources
        from redline.report.page import Report, write

        found, tables, store = self.findings(), self.tables, self.store
        report = Report(
            title=self.study.title,
            findings=found,
            series=tables.series,
            probes=tables.probes,
            facts=sources.facts(found),
            warnings=[
                *sources.damaged(tables.damaged),
                *sources.changed_analysis(store, tables.ids, self.study.analysis),
                *cautions(found),
                *sources.not_of_study(store, self.ids),
            ],
            audit=audit(self.trials),
            provenance=[
                ("Study", f"{self.study.title} ({self.study.digest})"),
                *sources.provenance(store, tables.ids, found.trials[Column.TOKEN_SHA256]),
            ],
            text=self.study.to_toml(),
            command="redline run study.toml --store replica --only {}",
        )
        return Reported(self.study.title, found, write(report, directory, slug(self.study.title)))


@dataclass(frozen=True)
class Reported:
    """One sweep that has been analysed and drawn, and the place of its page."""

    title: str
    findings: "Findings"
    page: Path


def report(reference: str, root: Path | None = None) -> "list[Reported]":
    """Write a page for a study, and one for each table of another tool that its store keeps.

    Pages lie in `STORE/report`. A store that holds nothing but imported tables needs no study.

    Raises:
        UserError: there is nothing to report, or rows cannot be compared.
    """
    store = Store(root or Path(reference))
    if is_import_store(store):
        return report_imports(store)
    session = open_begun(reference, root)
    own = session.report(session.store.reports)
    return [own, *report_imports(session.store)]


def report_imports(store: Store) -> list[Reported]:
    """Write a page for each table of another tool that the store keeps."""
    from redline.foreign import rows

    return [_report_import(store, rows.describe(store, sha256)) for sha256 in rows.imports(store)]


def _report_import(store: Store, source: "Import") -> Reported:
    from redline.analysis.cautions import cautions
    from redline.foreign import rows
    from redline.report import sources
    from redline.report.page import Report, write

    frame = rows.load(store, source.sha256)
    measured, found = analyse_import(frame)
    report = Report(
        title=source.name,
        findings=found,
        series=measured.series,
        probes=measured.probes,
        facts=sources.facts(found),
        warnings=[*cautions(found), *sources.unknown(frame)],
        audit=[],
        provenance=rows.provenance(source),
        text=tomli_w.dumps(source.mapping.model_dump(mode="json")),
        command="",
    )
    name = f"{slug(Path(source.name).stem)}-{source.sha256[:8]}"
    return Reported(source.name, found, write(report, store.reports, name))


def analyse_import(frame: "pl.DataFrame") -> "tuple[Measured, Findings]":
    """The rows of another tool's table that have a result, and what they say."""
    import polars as pl

    from redline.analysis.findings import Design, Measured, find
    from redline.store.tables import SCHEMAS

    has_result = pl.col(Column.FINAL_LOSS).is_not_null()
    series, probes = (pl.DataFrame(schema=SCHEMAS[name]) for name in ("series", "probes"))
    measured = Measured(frame.filter(has_result), series, probes)
    design = Design(frame, registered_lr=None, is_whole=False)
    return measured, find(measured, design, default_analysis())


def is_import_store(store: Store) -> bool:
    """Whether a store holds tables of other tools and no study, so that nothing can be trained."""
    return store.imports.is_dir() and not (store.root / "study.toml").exists()


def open_session(reference: str, store: Path | None = None) -> Session:
    """Open a study (a shipped name, a TOML file or a store directory) on its store.

    The store defaults to the directory itself, or to `redline-runs/<title>`. A device that was
    decided when the store was created stays.

    Raises:
        UserError: anything wrong with the study, one sentence a line.
    """
    if reference not in shipped() and is_import_store(Store(Path(reference))):
        raise UserError(
            f"{reference}: this store holds only results of another tool, which cannot be trained; "
            f"`redline report {reference}` analyses them"
        )
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


def open_begun(reference: str, store: Path | None) -> Session:
    """Open a study of which something has run; see `open_session`.

    Raises:
        UserError: nothing of it has run yet.
    """
    session = open_session(reference, store)
    if not session.store.exists:
        raise UserError(
            f"{session.store.root}: nothing of {session.study.title} has run; "
            f"`redline run {reference}` begins"
        )
    return session


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
