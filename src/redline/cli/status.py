"""`redline status`: one screen about a store."""

from collections.abc import Iterable
from typing import Annotated, Any

from cyclopts import Parameter

from redline.analysis.completeness import Completeness, completeness
from redline.cli import show
from redline.cli.run import Store
from redline.config.cost import cost
from redline.execute.plan import RETRY, Plan, describe
from redline.execute.plan import plan as read_plan
from redline.files import to_json
from redline.session import Session, open_session
from redline.store import reader
from redline.store.schema import Status

MAX_NAMED = 12
FAILED = RETRY | {Status.DAMAGED}


def status(
    study: str,
    *,
    store: Store = None,
    verify: Annotated[bool, Parameter(help="Read every byte of what is finished.")] = False,
    as_json: Annotated[bool, Parameter("--json", help="Print JSON alone.")] = False,
) -> int:
    """One screen: done, running, failed with the reason, and the time left."""
    session = open_session(study, store)
    ids = session.known_ids
    trials = dict(zip(ids or (), session.trials, strict=False))
    plan = read_plan(session.store, list(trials))
    if verify:
        plan = _verified(session, plan)
    stored = [i for i in session.store.ids() if session.store.finished(i).exists()]
    held = (
        completeness(list(trials.items()), [i for i in stored if i not in plan.missing])
        if trials
        else Completeness(len(session.trials), (), ())
    )
    found: dict[str, Any] = {
        "study": session.study.title,
        "store": str(session.store.root),
        "n_trial": len(session.trials),
        "counts": {str(status): n for status, n in plan.counts.items()},
        "running": [_running(session, i, trials) for i in _with(plan, [Status.RUNNING])],
        "failed": [_failed(session, i, trials, plan) for i in _with(plan, FAILED)],
        "missing": held.missing,
        "extra": held.extra,
        "eta_s": _eta_s(session, plan, trials),
    }
    if as_json:
        print(to_json(found, indent=1))
        return 0
    console = show.console()
    if ids is None:
        console.print(f"{found['study']}: nothing of it has run; `redline run {study}` begins")
        console.print(f"{found['store']} holds {show.plural(len(stored), 'finished trial')}")
        return 0
    counts = ", ".join(f"{n} {name}" for name, n in found["counts"].items() if n)
    left = "" if found["eta_s"] is None else f"; about {show.duration(found['eta_s'])} left"
    console.print(f"{found['study']}: {counts} of {found['n_trial']}{left}; {found['store']}")
    for row in found["running"]:
        console.print(f"running: {row['trial']}, step {row['step']} of {row['n_step']}")
    if 0 < len(held.missing) <= MAX_NAMED:
        console.print(f"missing: {'; '.join(held.missing)}")
    if held.extra:
        console.print(f"not of this study, and in none of its numbers: {', '.join(held.extra)}")
    for row in found["failed"]:
        console.print(f"{row['status']}: {row['trial']}: {row['reason']}")
        console.print(f"{row['last_lines']}\nlog: {row['log']}")
    if plan.to_retry():
        console.print(f"`redline retry {study}` trains the failed ones again")
    return 0


def _verified(session: Session, plan: Plan) -> Plan:
    """The plan with finished trials whose bytes are not those that were written as damaged."""
    damaged = {
        trial_id: Status.DAMAGED
        for trial_id in _with(plan, [Status.FINISHED])
        if reader.verify(session.store, trial_id)
    }
    return Plan(plan.statuses | damaged)


def _with(plan: Plan, statuses: Iterable[Status]) -> list[str]:
    return [trial_id for trial_id, status in plan.statuses.items() if status in statuses]


def _running(session: Session, trial_id: str, trials: dict[str, Any]) -> dict[str, Any]:
    trial = trials[trial_id]
    return {
        "trial_id": trial_id,
        "trial": describe(trial),
        "step": reader.last_step(session.store, trial_id),
        "n_step": trial.train.n_step,
    }


def _failed(session: Session, trial_id: str, trials: dict[str, Any], plan: Plan) -> dict[str, Any]:
    damaged = reader.verify(session.store, trial_id)
    where = session.store.trial_dir(trial_id)
    log = reader.last_log(session.store, trial_id)
    return {
        "trial_id": trial_id,
        "trial": describe(trials[trial_id]),
        "status": plan.statuses[trial_id].value,
        "reason": f"{', '.join(damaged)}; remove {where} to train it again"
        if damaged
        else reader.attempts(session.store, trial_id)[-1].get("reason", ""),
        "last_lines": "" if damaged else reader.last_error(session.store, trial_id, n_line=6),
        "log": str(log or ""),
    }


def _eta_s(session: Session, plan: Plan, trials: dict[str, Any]) -> float | None:
    """Seconds until the study is done, at the speed of its finished trials; None if unknown."""
    spent_s = flops = 0.0
    for trial_id in _with(plan, [Status.FINISHED]):
        last = reader.attempts(session.store, trial_id)[-1:]
        if last and last[0].get("first_step") == 0:  # a resumed attempt did only part of the work
            spent_s += last[0].get("elapsed_s", 0.0)
            flops += cost(trials[trial_id]).flops
    running = len(_with(plan, [Status.RUNNING]))
    if not flops or not running:
        return None
    left = sum(cost(trials[i]).flops for i in plan.missing)
    return left * spent_s / flops / running
