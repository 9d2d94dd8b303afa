"""`redline advise`: is QK-norm needed at a depth, width, budget and peak LR?"""

import re
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from redline.advising import Advised, ToRun, advise_all
from redline.analysis.advise import Advice
from redline.analysis.comparable import PLAIN
from redline.analysis.next_runs import NextRuns
from redline.analysis.place import Distance, Place, amount
from redline.analysis.reading import BETWEEN, BEYOND, NEEDED, NOT_NEEDED, TESTED, UNKNOWN
from redline.cli import show
from redline.cli.run import Store
from redline.files import UserError, to_json

UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9}
SAID = {NEEDED: "Needed.", NOT_NEEDED: "Not needed.", UNKNOWN: "Unknown."}
HOW = {BETWEEN: "between tested values", BEYOND: "beyond the tested values"}


def advise(
    study: str,
    *,
    peak_lr: Annotated[float, Parameter(help="Peak learning rate.")],
    n_layer: Annotated[float, Parameter(help="Depth.")],
    n_embd: Annotated[float | None, Parameter(help="Width, where it matters.")] = None,
    tokens: Annotated[
        str | None, Parameter(help="Training tokens, such as 400k or 120M, where they matter.")
    ] = None,
    n_step: Annotated[float | None, Parameter(help="Training steps, in place of tokens.")] = None,
    store: Store = None,
    as_json: Annotated[bool, Parameter("--json", help="Print JSON alone.")] = False,
) -> int:
    """Is QK-norm needed at a depth, width, budget and peak LR: needed, not needed or unknown.

    STUDY is a shipped name, a TOML file or a store directory, also one of imported tables. The
    answer comes with its evidence, how far it was carried, and what to run where it is unknown.
    """
    place = Place(
        n_layer=_whole("--n-layer", n_layer),
        peak_lr=peak_lr,
        n_embd=None if n_embd is None else _whole("--n-embd", n_embd),
        n_step=None if n_step is None else _whole("--n-step", n_step),
        tokens=None if tokens is None else _tokens(tokens),
    )
    found = advise_all(study, store, place)
    if as_json:
        sweeps = [_plain(one, place, study) for one in found]
        print(to_json({"place": vars(place), "sweeps": sweeps}, indent=1))
        return 0
    console = show.console()
    for one in found:
        _print(one, place, study, console)
    return 0


def _whole(option: str, value: float) -> int:
    # Read as a number and checked here: as an int, the command line would cut 2.5 down to 2.
    if not value.is_integer():
        raise UserError(f"{option} {value:g}: a whole number above 0 is needed")
    return int(value)


def _tokens(text: str) -> float:
    found = re.fullmatch(r"(\d[\d_,]*\.?\d*(?:e\d{1,3})?) ?([kmb]?)", text.strip().lower())
    if found is None:
        raise UserError(f"--tokens {text}: a number such as 400k, 1.5M or 409600 is needed")
    return float(re.sub("[_,]", "", found[1])) * UNITS[found[2]]


def _plain(one: Advised, place: Place, study: str) -> dict[str, Any]:
    """The advice of one sweep as JSON holds it."""
    return {
        "title": one.title,
        "store": str(one.store),
        "advice": [
            asdict(advice)
            | {"to_run": None if todo is None else _plain_runs(todo, one, place, study)}
            for advice, todo in zip(one.advice, one.to_run, strict=True)
        ],
    }


def _plain_runs(todo: ToRun, one: Advised, place: Place, study: str) -> dict[str, Any]:
    return {
        "n_trial": len(todo.trials),
        "flops": todo.flops,
        "worker_s": todo.worker_s,
        "study": todo.study,
        "commands": _commands(todo, one, place, study),
        "problem": todo.problem,
    }


def _print(one: Advised, place: Place, study: str, console: Console) -> None:
    """The first advice in full, the others by their answers: one screen."""
    if not one.advice:
        console.print(f"{one.title}: no arm has results to compare with {PLAIN}")
        return
    first = one.advice[0]
    where = ", ".join(amount(axis, value) for axis, value in place.axes.items())
    console.print(f"{one.title}: {_who(first)} at {where}, peak LR {place.peak_lr:g}")
    console.print(f"{SAID[first.answer]} {first.sentence}")
    console.print(_evidence_table(first))
    console.print(_band(first))
    console.print(_distances(first))
    _print_next(one, place, study, console)
    for other in one.advice[1:]:
        console.print(f"{_who(other)}: {other.answer} (--json says why)")


def _who(advice: Advice) -> str:
    setting = f"{advice.setting}, " if advice.setting else ""
    return f"{setting}{PLAIN} against {advice.arm}"


def _band(advice: Advice) -> str:
    drop = "at no peak LR" if advice.droppable_to is None else f"up to {advice.droppable_to:g}"
    lower = "no lower limit" if advice.band_lower is None else f"above {advice.band_lower:g}"
    upper = "no upper limit" if advice.needed_from is None else f"at most {advice.needed_from:g}"
    return (
        f"This evidence shows that QK-norm can be dropped {drop}; the LR from which it is needed: "
        f"{lower}, {upper}."
    )


def _evidence_table(advice: Advice) -> Table:
    table = Table(title=f"Loss of {PLAIN} minus loss of {advice.arm} in nats, paired by seed")
    for name in ("n_layer", "n_embd", "n_step", "peak_lr", "pairs", "mean", "95 % interval"):
        table.add_column(name, justify="right", overflow="fold")
    table.add_column("by itself", overflow="fold")
    for cell in advice.evidence:
        known = cell.lower is not None and cell.upper is not None
        table.add_row(
            *("-" if n is None else f"{n:g}" for n in (cell.n_layer, cell.n_embd, cell.n_step)),
            f"{cell.peak_lr:g}",
            str(cell.n_pair),
            "-" if cell.mean_delta is None else f"{cell.mean_delta:+.3f}",
            f"{cell.lower:+.3f} to {cell.upper:+.3f}" if known else "-",
            cell.state,
        )
    return table


def _distances(advice: Advice) -> str:
    return f"Distance: {'; '.join(map(_distance, advice.distances))}."


def _distance(distance: Distance) -> str:
    asked, near = (amount(distance.axis, x) for x in (distance.asked, distance.nearest))
    if distance.how == TESTED:
        return f"{asked} tested" if asked == near else f"{asked} tested as {near}"
    return f"{asked} {HOW[distance.how]}, {distance.factor:.3g}x from {near}"


def _print_next(one: Advised, place: Place, study: str, console: Console) -> None:
    """What to run next, its price, and the study and commands that do it."""
    runs, todo = one.advice[0].next_runs, one.to_run[0]
    lead = "Next" if one.advice[0].answer == UNKNOWN else "To test it"
    if not runs.points:
        if runs.why:
            console.print(f"Next: {runs.why}")
        return
    if todo is None:
        console.print(f"{lead}, where the table came from: {_listed(runs)}. {runs.why}.")
        return
    if todo.problem:
        console.print(f"{lead}: {runs.why}, but there can be no such trial: {todo.problem}.")
        return
    time = "" if todo.worker_s is None else f", about {show.duration(todo.worker_s)} of one worker"
    price = f"{show.plural(len(todo.trials), 'trial')}, {todo.flops:.3g} FLOPs{time}"
    console.print(f"{lead}: {price}. {runs.why}.")
    if todo.study:
        console.print(f"Write this to {_next_study()}:\n")
        console.print(todo.study, soft_wrap=True)
    for command in _commands(todo, one, place, study):
        console.print(f"  {command}", soft_wrap=True)


def _listed(runs: NextRuns) -> str:
    """Points in a sentence: arms, and each field with its values."""
    arms = " and ".join(dict.fromkeys(point.arm for point in runs.points))
    values: dict[str, dict[Any, None]] = {}
    for point in runs.points:
        for path, value in point.changes.items():
            values.setdefault(path.rpartition(".")[2], {})[value] = None
    fields = "; ".join(f"{name} {_ranges(list(found))}" for name, found in values.items())
    return f"{show.plural(len(runs.points), 'run')}, {arms} at {fields}"


def _ranges(values: list[Any]) -> str:
    """Values in a sentence; whole numbers that follow each other as a range."""
    runs: list[list[Any]] = []
    for value in values:
        if runs and isinstance(value, int) and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ", ".join(
        f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(f"{v:.15g}" for v in run)
        for run in runs
    )


def _next_study() -> str:
    """A file name that is free here: a study that extends itself would be a circle."""
    names = ("next.toml", *(f"next-{n}.toml" for n in range(2, 1000)))
    return next(name for name in names if not Path(name).exists())


def _commands(todo: ToRun, one: Advised, place: Place, study: str) -> list[str]:
    """What to type: train, then ask again."""
    if todo.problem:
        return []
    reference = _next_study() if todo.study else study
    words = [reference] if reference == str(one.store) else [reference, "--store", str(one.store)]
    where = shlex.join(words)
    options = [f"--peak-lr {place.peak_lr!r}", *(_option(*axis) for axis in place.axes.items())]
    return [
        f"redline run {where}",
        f"redline advise {where} {' '.join(options)}",
    ]


def _option(axis: str, value: float) -> str:
    return f"--{axis.replace('_', '-')} {value:.15g}"
