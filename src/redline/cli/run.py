"""`redline run` and `redline retry`: train, show it live, end with the table."""

from pathlib import Path
from typing import Annotated

import psutil
from cyclopts import Parameter

from redline.cli import show
from redline.cli.progress import follow
from redline.execute.plan import Plan
from redline.files import UserError
from redline.session import Session, open_session

Store = Annotated[Path | None, Parameter(help="Store directory [redline-runs/<title>].")]
Workers = Annotated[int | None, Parameter(help="Worker processes, one thread each [cores].")]
FailFast = Annotated[int | None, Parameter(help="Start no further trial after N failures.")]
Timeout = Annotated[float | None, Parameter(help="Seconds after which a trial is stopped.")]


def run(
    study: str,
    *,
    store: Store = None,
    workers: Workers = None,
    only: Annotated[str | None, Parameter(help="Train this trial id alone.")] = None,
    fail_fast: FailFast = None,
    timeout: Timeout = None,
) -> int:
    """Train what is missing of a study; the same command resumes.

    STUDY is a shipped name (pilot, core, depth, controls), a TOML file or a store directory.
    """
    session = open_session(study, store)
    plan = session.begin()
    ids = plan.to_run()
    if only is not None:
        if only not in plan.statuses:
            raise UserError(
                f"--only {only}: the study has no such trial; `redline plan` lists them"
            )
        ids = [trial_id for trial_id in ids if trial_id == only]
    return train(session, plan, ids, workers, fail_fast, timeout)


def train(
    session: Session,
    plan: Plan,
    ids: list[str],
    workers: int | None,
    fail_fast: int | None,
    timeout: float | None,
) -> int:
    """Train `ids` under a live picture and print the table; the exit code of the command."""
    for name, value in {
        "--workers": workers,
        "--fail-fast": fail_fast,
        "--timeout": timeout,
    }.items():
        if value is not None and value <= 0:
            raise UserError(f"{name} {value}: a positive number is needed")
    console = show.console()
    n_worker = workers or cores()
    console.print(
        f"{session.study.title}: {len(plan.statuses) - len(plan.missing)} of "
        f"{show.plural(len(plan.statuses), 'trial')} done, {len(ids)} to train with "
        f"{show.plural(n_worker, 'worker')} of one thread; store {session.store.root}"
    )
    if ids:
        with follow(session, plan, ids, n_worker, console) as on_event:
            session.run(
                ids,
                n_worker=n_worker,
                on_event=on_event,
                fail_fast=fail_fast,
                timeout_s=timeout,
            )
    return finish(session, console)


def finish(session: Session, console: show.Console) -> int:
    """Print what the store now holds of the study: the cells, the verdict, what is left."""
    plan = session.begin()
    if len(plan.missing) < len(plan.statuses):
        summary = session.summary()
        console.print(show.cell_table(summary.cells, session.study.analysis))
        console.print(summary.verdict)
    left = {status.value: n for status, n in plan.counts.items() if n and status != "finished"}
    if left:
        counts = ", ".join(f"{n} {name}" for name, n in left.items())
        console.print(f"Not finished: {counts}. `redline status {session.store.root}` says more.")
    return 1 if plan.to_retry() or left.get("damaged") else 0


def cores() -> int:
    """Physical cores that this process may use: a second thread on a core gains nothing here."""
    usable = psutil.Process().cpu_affinity() if hasattr(psutil.Process, "cpu_affinity") else None
    physical = psutil.cpu_count(logical=False) or 1
    return min(physical, len(usable)) if usable else physical
