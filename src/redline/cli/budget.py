"""`redline run --budget`: what fits into a time, and what it leaves out."""

from datetime import timedelta

from redline.cli import show
from redline.config.cost import cost
from redline.config.edit import with_fields
from redline.config.trial import Trial
from redline.execute.order import Prefix, fitting
from redline.execute.plan import Plan
from redline.execute.speed import seconds_per_flop
from redline.files import UserError
from redline.session import Session
from redline.store.schema import Status


def within(
    session: Session, plan: Plan, ids: list[str], budget: timedelta, n_worker: int
) -> Prefix:
    """The prefix of `ids` that fits, by the speed of the trials that the store has finished.

    Where it has none, one step of each shape is timed here, as `redline plan` does.

    Raises:
        UserError: a budget that is not above 0.
    """
    if budget <= timedelta(0):
        raise UserError(f"--budget {budget}: a time above 0 is needed, such as 8h or 90m")
    done = {i: t for i, t in session.by_id.items() if plan.statuses[i] is Status.FINISHED}
    speed = seconds_per_flop(session.store, done)
    measured: dict[str, float] = {}

    def seconds(trial: Trial) -> float:
        from redline.train.bench import trial_seconds

        if speed is not None:
            return speed * cost(trial).flops
        shape = shape_of(trial)
        name = shape.model_dump_json()
        if name not in measured:
            measured[name] = trial_seconds(shape)
        return measured[name]

    return fitting(ids, session.by_id, seconds, budget.total_seconds() * n_worker)


def in_words(session: Session, prefix: Prefix, budget: timedelta) -> str:
    """How many trials fit, and the coordinates of those that do not."""
    n_fit, n_left = len(prefix.ids), len(prefix.left_out)
    time = show.duration(budget.total_seconds())
    said = f"Budget {time}: {n_fit} of {show.plural(n_fit + n_left, 'trial')} fit."
    if not n_left:
        return said
    left = [session.by_id[trial_id] for trial_id in prefix.left_out]
    axes = {
        "seed": sorted({trial.seed for trial in left}),
        "n_layer": sorted({trial.model.n_layer for trial in left}),
        "peak_lr": [f"{rate:g}" for rate in sorted({trial.train.peak_lr for trial in left})],
    }
    named = "; ".join(f"{name} {', '.join(map(str, v))}" for name, v in axes.items())
    return f"{said} Left out, and trained by a later run: {named}."


def shape_of(trial: Trial) -> Trial:
    """What decides how long a trial takes: trials that differ in no more take the same time."""
    alike = {"seed": 0, "train.peak_lr": 1e-3, "train.lr_floor": 0, "train.weight_decay": 0}
    return with_fields(trial, alike)
