"""`redline run` and `redline retry`: train, show it live, end with the table."""

import os
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import psutil
from cyclopts import Parameter, validators
from rich.console import Console

from redline.cli import show
from redline.cli.budget import in_words, within
from redline.cli.progress import follow
from redline.data.tokens import cache_root
from redline.execute import local, readiness
from redline.execute.order import balanced
from redline.execute.plan import Plan, describe
from redline.execute.plan import plan as read_plan
from redline.execute.provenance import FAILED_CHECKS
from redline.files import UserError
from redline.session import Session, open_session
from redline.store.schema import Status

Store = Annotated[Path | None, Parameter(help="Store directory; by default redline-runs/TITLE.")]
POSITIVE = validators.Number(gt=0)
Positive = Annotated[float, Parameter(validator=POSITIVE)]


@Parameter(name="*")
@dataclass(frozen=True)
class Options:
    """How to train, which changes no result."""

    workers: Annotated[
        int | None,
        Parameter(
            validator=POSITIVE, help="Worker processes of one thread; by default one a core."
        ),
    ] = None
    fail_fast: Annotated[
        int | None, Parameter(validator=POSITIVE, help="Start no further trial after N failures.")
    ] = None
    timeout: Annotated[
        float | None, Parameter(validator=POSITIVE, help="Seconds after which a trial is stopped.")
    ] = None
    checkpoint_every: Annotated[
        float, Parameter(validator=POSITIVE, help="Seconds between checkpoints.")
    ] = 30.0
    despite_failed_checks: Annotated[
        bool,
        Parameter(
            help="Train on a device that fails `redline doctor`; its trials record it.",
            negative="",
        ),
    ] = False


DEFAULT = Options()


def run(
    study: str,
    *,
    store: Store = None,
    only: Annotated[str | None, Parameter(help="Train this trial id alone.")] = None,
    budget: Annotated[
        timedelta | None,
        Parameter(
            help="Train what fits into a time such as 8h, 90m or 1h30m, and say what is left."
        ),
    ] = None,
    options: Options = DEFAULT,
) -> int:
    """Train what is missing of a study; the same command resumes.

    Trials run in an order in which any prefix is a study of its own: seed after seed, the grid of
    learning rates from coarse to fine, both arms of a pair together.

    STUDY is a shipped name (pilot, core, depth, controls), a TOML file or a store directory.
    """
    session = open_session(study, store)
    plan = session.begin()
    ids = plan.to_run()
    if only is not None:
        if only not in plan.statuses:
            raise UserError(f"--only {only}: no such trial; `redline plan --trials` lists them")
        ids = [trial_id for trial_id in ids if trial_id == only]
    ids = balanced({trial_id: session.by_id[trial_id] for trial_id in ids})
    if budget is None:
        return train(session, plan, ids, options)
    prefix = within(session, plan, ids, budget, options.workers or cores())
    show.console().print(in_words(session, prefix, budget))
    if not prefix.ids and prefix.left_out:
        return 1
    return train(session, plan, list(prefix.ids), options, budget.total_seconds())


def train(
    session: Session,
    plan: Plan,
    ids: list[str],
    options: Options,
    stop_after_s: float | None = None,
) -> int:
    """Train `ids` under a live picture and print the table; the exit code of the command."""
    console = show.console()
    n_worker = options.workers or cores()
    console.print(
        f"{session.study.title}: {len(plan.statuses) - len(plan.missing)} of "
        f"{show.plural(len(plan.statuses), 'trial')} done, {len(ids)} to train with "
        f"{show.plural(n_worker, 'worker')} of one thread; store {session.store.root}"
    )
    n_failed = 0
    if ids:
        _refuse_unfit(session, options)
        with follow(session, plan, ids, console) as on_event:
            tally = local.run(
                session.store,
                ids,
                study=session.study.digest,
                n_worker=n_worker,
                on_event=on_event,
                fail_fast=options.fail_fast,
                timeout_s=options.timeout,
                stop_after_s=stop_after_s,
                checkpoint_every_s=options.checkpoint_every,
            )
        n_failed = tally.crashed + tally.timed_out
    return max(finish(session, ids, console), 1 if n_failed else 0)


def _refuse_unfit(session: Session, options: Options) -> None:
    """Train on no device that computes something else, unless told to; then the trials say so."""
    kinds = {trial.device for trial in session.trials}
    failed = [
        why
        for kind in sorted(kinds)
        for why in readiness.failed_checks(kind, cache_root() / "devices")
    ]
    if failed and not options.despite_failed_checks:
        raise UserError(
            f"the device fails its self-test: {'; '.join(failed)}. `redline doctor` says more; "
            "--despite-failed-checks trains all the same and records it with every trial"
        )
    os.environ.pop(FAILED_CHECKS, None)
    if failed:
        os.environ[FAILED_CHECKS] = "; ".join(failed)


def finish(session: Session, ids: list[str], console: Console) -> int:
    """Print what the store holds of the study; 1 if a trial failed or one of `ids` is missing."""
    plan = read_plan(session.store, list(session.by_id))
    n_damaged = plan.counts[Status.DAMAGED]
    if len(plan.missing) < len(plan.statuses):
        found = session.findings()
        console.print(show.cell_table(found.cells, session.study.analysis))
        for verdict in found.verdicts:
            console.print(str(verdict))
        for trial_id, files in session.tables.damaged.items():
            where = session.store.trial_dir(trial_id)
            about = f"{describe(session.by_id[trial_id])}: {', '.join(files)} in {where}"
            console.print(f"damaged, and in no number above: {about}; remove it to train again")
        n_damaged += len(session.tables.damaged)
    left = {status.value: n for status, n in plan.counts.items() if n and status != "finished"}
    if left:
        counts = ", ".join(f"{n} {name}" for name, n in left.items())
        verb = "retry" if plan.to_retry() else "run"
        where = session.store.root
        console.print(
            f"Not finished: {counts}. `redline status {where}` says more, "
            f"`redline {verb} {where}` goes on."
        )
    return 1 if plan.to_retry() or n_damaged or set(ids) & set(plan.missing) else 0


def cores() -> int:
    """Physical cores that this process may use: a second thread on a core gains nothing here."""
    usable = psutil.Process().cpu_affinity() if hasattr(psutil.Process, "cpu_affinity") else None
    physical = psutil.cpu_count(logical=False) or 1
    return min(physical, len(usable)) if usable else physical
