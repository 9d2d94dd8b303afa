"""Advice of a study and of imported tables for one place, with the trials that would settle it.

The analysis proposes points; here they become trials, a price and a study file. Nothing is trained.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from redline.analysis.advise import Advice, advise
from redline.analysis.next_runs import NextRuns
from redline.analysis.place import Place
from redline.config.cost import cost
from redline.config.edit import with_fields
from redline.config.trial import Trial
from redline.execute.speed import seconds_per_flop
from redline.files import UserError
from redline.foreign import rows
from redline.session import Session, analyse_import, is_import_store, open_begun
from redline.store.layout import Store
from redline.study.extension import extension
from redline.study.layers import locate, shipped
from redline.study.problems import sentence


@dataclass(frozen=True)
class ToRun:
    """Trials that would settle a question, and the text of a study that adds them to this one.

    `worker_s` is the time of one worker, None where the store does not know it. The text is empty
    where the study has the trials already; a `problem` says why there can be no such trial.
    """

    trials: tuple[Trial, ...]
    worker_s: float | None
    study: str
    problem: str

    @property
    def flops(self) -> float:
        return sum(cost(trial).flops for trial in self.trials)


@dataclass(frozen=True)
class Advised:
    """The advice of one sweep, and beside each one its next trials where they can be trained."""

    title: str
    store: Path
    advice: tuple[Advice, ...]
    to_run: tuple[ToRun | None, ...]


def advise_all(reference: str, root: Path | None, place: Place) -> list[Advised]:
    """What a study says about a place, and what each table says that its store keeps.

    Raises:
        UserError: nothing has run, nothing is compared, or rows cannot be compared.
    """
    store = Store(root or Path(reference))
    found: list[Advised] = []
    if not is_import_store(store):
        session = open_begun(reference, root)
        store = session.store
        found.append(_of_study(session, place))
    for sha256 in rows.imports(store):
        _, findings = analyse_import(rows.load(store, sha256))
        advice = advise(findings, place)
        name = rows.describe(store, sha256).name
        found.append(Advised(name, store.root, advice, (None,) * len(advice)))
    if not any(one.advice for one in found):
        raise UserError(f"{reference}: there is no arm with results to compare with `off`")
    return found


def _of_study(session: Session, place: Place) -> Advised:
    advice = advise(session.findings(), place)
    known = dict(zip(session.ids, session.trials, strict=True))
    to_run = tuple(_to_run(session, known, one.next_runs) for one in advice)
    return Advised(session.study.title, session.store.root, advice, to_run)


def _to_run(session: Session, known: Mapping[str, Trial], runs: NextRuns) -> ToRun | None:
    if not runs.points:
        return None
    arms = {trial.model.arm: trial.model.qk_norm for trial in session.trials}
    like = known[runs.like]
    try:
        trials = tuple(
            with_fields(like, {**point.changes, "model.qk_norm": arms[point.arm]})
            for point in runs.points
        )
    except ValidationError as error:
        return ToRun((), None, "", sentence(error, depth=0))
    speed = seconds_per_flop(session.store, {i: known[i] for i in session.tables.ids})
    worker_s = None if speed is None else speed * sum(cost(trial).flops for trial in trials)
    text = "" if runs.is_planned else extension(session.study, _lasting_name(session), trials)
    return ToRun(trials, worker_s, text, "")


def _lasting_name(session: Session) -> str:
    """What another study can extend for good: a shipped name, or the copy that the store keeps.

    `STORE/study.toml` is written anew when the other study runs, and so may be the file itself.
    """
    source = Path(session.study.source)
    if source.stem in shipped() and source == locate(source.stem, Path()):
        return source.stem
    kept = session.store.root / "studies" / f"{session.study.digest}.toml"
    return str((kept if kept.exists() else source).resolve())
