"""`redline plan`: everything that can be said about a study before it runs."""

from collections import Counter
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from redline.analysis.audit import audit
from redline.analysis.completeness import reachable
from redline.cli import show
from redline.cli.budget import shape_of
from redline.cli.run import POSITIVE, Positive, Store, cores
from redline.config.cost import Cost, cost
from redline.config.trial import QKNorm, Trial
from redline.execute.plan import describe
from redline.execute.plan import plan as read_plan
from redline.files import UserError, to_json
from redline.session import Session, open_session


def plan(
    study: str,
    *,
    store: Store = None,
    workers: Annotated[
        int | None, Parameter(validator=POSITIVE, help="Worker processes; by default one a core.")
    ] = None,
    watts: Annotated[Positive | None, Parameter(help="Power of the machine under load.")] = None,
    price_per_kwh: Annotated[Positive | None, Parameter(help="Price of energy.")] = None,
    price_per_hour: Annotated[Positive | None, Parameter(help="Price of the machine.")] = None,
    explain: Annotated[bool, Parameter(help="Print every field of the study.")] = False,
    trials: Annotated[bool, Parameter(help="List every trial with its id and status.")] = False,
    as_json: Annotated[bool, Parameter("--json", help="Print JSON alone.")] = False,
) -> int:
    """What a study will train, what it costs, what is done, and what it can decide.

    The time is measured on this device with random tokens: no corpus is prepared.
    """
    if price_per_kwh and not watts:
        raise UserError("--price-per-kwh: --watts is needed too")
    session = open_session(study, store)
    console = show.console()
    if explain:
        print(session.study.to_toml())
        return 0
    n_worker = workers or cores()
    found = {
        "study": session.study.title,
        "digest": session.study.digest,
        "store": str(session.store.root),
        "n_trial": len(session.trials),
        "reference": study,
        **{key: session.study.explicit.get(key, {}) for key in ("axes", "around_base")},
        "extra_axes": session.study.explicit.get("extra_axes", []),
        "models": _models(session.trials),
        "estimate": _estimate(session.trials, n_worker, watts, price_per_kwh, price_per_hour),
        "status": _status(session),
        "can_decide": reachable(session.trials),
        "audit": [vars(row) for row in audit(session.trials)],
    }
    if as_json:
        print(to_json(found, indent=1))
        return 0
    _print(found, console)
    if trials:
        _print_trials(session, console)
    return 0


def _models(trials: tuple[Trial, ...]) -> list[dict[str, Any]]:
    """One row for each distinct cost: its shape, parameters, tokens and FLOPs of one trial."""
    counted: Counter[tuple[int, int, str, Cost]] = Counter(
        (t.model.n_layer, t.model.n_embd, t.model.arm, cost(t)) for t in trials
    )
    return [
        {
            "n_layer": n_layer,
            "n_embd": n_embd,
            "arm": arm,
            "n_trial": n,
            "n_param": price.n_param,
            "n_param_non_embedding": price.n_param - price.n_param_embedding,
            "tokens": price.tokens_seen,
            "flops": price.flops,
        }
        for (n_layer, n_embd, arm, price), n in counted.items()
    ]


def _estimate(
    trials: tuple[Trial, ...],
    n_worker: int,
    watts: float | None,
    price_per_kwh: float | None,
    price_per_hour: float | None,
) -> dict[str, float]:
    from redline.train.bench import trial_seconds

    shapes = Counter(map(shape_of, trials))
    try:
        seconds = sum(n * trial_seconds(shape) for shape, n in shapes.items())
    except (RuntimeError, MemoryError) as error:  # torch's own word for no memory is RuntimeError
        raise UserError(f"a trial of this size does not run here: {error}") from None
    hours = seconds / n_worker / 3600
    found = {
        "tokens": float(sum(cost(t).tokens_seen for t in trials)),
        "flops": sum(cost(t).flops for t in trials),
        "core_hours": seconds / 3600,
        "workers": float(n_worker),
        "hours": hours,
    }
    if watts:
        found["kwh"] = watts * hours / 1000
    if price_per_kwh and watts:
        found["energy_price"] = watts * hours / 1000 * price_per_kwh
    if price_per_hour:
        found["machine_price"] = hours * price_per_hour
    return found


def _status(session: Session) -> dict[str, int] | None:
    """Counts by status, or None where the corpus has never been prepared: ids hash its tokens."""
    ids = session.known_ids
    if ids is None:
        return None
    counts = read_plan(session.store, ids).counts
    return {status.value: n for status, n in counts.items() if n}


def _print(found: dict[str, Any], console: Console) -> None:
    console.print(
        f"{found['study']} ({found['digest']}), "
        f"{show.plural(found['n_trial'], 'trial')}, store {found['store']}"
    )
    _print_grid(found, console)
    models = Table(
        "n_layer",
        "n_embd",
        "arm",
        "trials",
        "parameters",
        "without embeddings",
        "tokens a trial",
        "FLOPs a trial",
    )
    for row in found["models"]:
        models.add_row(
            str(row["n_layer"]),
            str(row["n_embd"]),
            row["arm"],
            str(row["n_trial"]),
            f"{row['n_param']:,}",
            f"{row['n_param_non_embedding']:,}",
            show.large(row["tokens"]),
            f"{row['flops']:.3g}",
        )
    console.print(models)
    console.print(_estimate_sentence(found["estimate"]))
    console.print(_status_sentence(found))
    console.print("What it can decide:")
    for sentence in found["can_decide"]:
        console.print(f"  {sentence}")
    table = Table(
        "item", "verdict", "detail", title="Isolation audit: what differs between the arms"
    )
    for row in found["audit"]:
        table.add_row(row["item"], str(row["verdict"]), row["detail"])
    console.print(table)


def _print_grid(found: dict[str, Any], console: Console) -> None:
    """The axes, the variations around their base, and the further blocks of axes."""
    for name, values in found["axes"].items():
        console.print(f"  {name}: {', '.join(map(_value, values))}")
    for name, change in found["around_base"].items():
        pairs = change.items() if isinstance(change, dict) else [(name, v) for v in change]
        shown = ", ".join(f"{path} = {_value(value)}" for path, value in pairs)
        console.print(f"  around the base, {name}: {shown}")
    for block in found["extra_axes"]:
        shown = "; ".join(f"{name}: {', '.join(map(_value, v))}" for name, v in block.items())
        console.print(f"  and also {shown}")


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return QKNorm.model_validate(value).label
    return f"{value:g}" if isinstance(value, float) else str(value)


def _estimate_sentence(estimate: dict[str, float]) -> str:
    workers = show.plural(int(estimate["workers"]), "worker")
    sentence = (
        f"In all {show.large(estimate['tokens'])} tokens, {estimate['flops']:.3g} FLOPs; about "
        f"{show.duration(3600 * estimate['hours'])} with {workers} here, from a short measurement"
    )
    units = {"kwh": "kWh", "energy_price": "for energy", "machine_price": "for the machine"}
    extras = [f"{estimate[key]:.3g} {unit}" for key, unit in units.items() if key in estimate]
    return ", ".join([sentence, *extras])


def _status_sentence(found: dict[str, Any]) -> str:
    if found["status"] is None:
        command = f"`redline run {found['reference']}`"
        return f"Corpus not prepared yet: {command} prepares it and names the trials"
    return "Status: " + ", ".join(f"{n} {name}" for name, n in found["status"].items())


def _print_trials(session: Session, console: Console) -> None:
    """Every trial with its coordinates; its id too, once the corpus is prepared."""
    ids = session.known_ids
    statuses = read_plan(session.store, ids or []).statuses
    for trial_id, trial in zip(
        ids or ["-" * 16] * len(session.trials), session.trials, strict=True
    ):
        console.print(f"{trial_id}  {statuses.get(trial_id, 'unnamed'):9}  {describe(trial)}")
