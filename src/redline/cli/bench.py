"""`redline bench`: this machine in ratios of paired runs."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from redline.cli import show
from redline.config.cost import cost
from redline.config.edit import with_fields
from redline.config.trial import Trial
from redline.data.tokens import prepare
from redline.execute import local
from redline.files import to_json
from redline.session import open_session
from redline.store.layout import Store
from redline.store.reader import attempts
from redline.train.bench import measuring_share, stack_ratios

ROUNDS = 3
STACKS = (1, 2, 4, 8)


def bench(
    study: str = "pilot",
    *,
    as_json: Annotated[bool, Parameter("--json", help="Print JSON alone.")] = False,
) -> int:
    """How fast this machine trains the first trial of a study, as ratios of paired runs.

    One worker, with its probes, evaluations and records, against a plain nanoGPT-style loop
    without any in one warm process; two workers against one; both against the FLOP/s of large
    matrix products on as many cores; and stacks of trials, which are forced here, against the
    plain loop.
    """
    trial = open_session(study).trials[0]
    with tempfile.TemporaryDirectory() as folder:
        found = compare(trial, Path(folder))
    if as_json:
        print(to_json(found, indent=1))
    else:
        _print(found, show.console())
    return 0


def compare(trial: Trial, folder: Path) -> dict[str, float]:
    """The ratios, each the median over rounds in which both sides ran one after the other."""
    tokens = trial.train.n_step * trial.train.batch_size * trial.model.block_size
    flops = cost(trial).flops
    corpus = prepare(trial.data)
    store = Store(folder / "store").create()
    store.put_corpus(corpus.manifest)
    # Other seeds are other trials of the same cost: each is trained once.
    twins = (
        store.put_trial(with_fields(trial, {"seed": seed}), corpus.tokens)
        for seed in range(1000, 2000)
    )
    plain_s, one_s, two_s, peak_one, peak_two = [], [], [], [], []
    with _plain_loop(trial, folder) as plain_seconds:
        for _ in range(ROUNDS):
            plain_s.append(plain_seconds())
            peak_one.append(_matmul_flops(1))
            peak_two.append(_matmul_flops(2))
            one_s.append(max(_trained(store, twins, n_worker=1)))
            two_s.append(max(_trained(store, twins, n_worker=2)))
    return {
        "plain_tokens_per_s": tokens / median(plain_s),
        "worker_tokens_per_s": tokens / median(one_s),
        "worker_over_plain": median(a / b for a, b in zip(plain_s, one_s, strict=True)),
        "two_over_one": median(2 * a / b for a, b in zip(one_s, two_s, strict=True)),
        "measuring_share": measuring_share(trial),
        "matmul_flops_one": median(peak_one),
        "matmul_flops_two": median(peak_two),
        "share_of_matmul_one": median(flops / s / p for s, p in zip(one_s, peak_one, strict=True)),
        "share_of_matmul_two": median(
            2 * flops / s / p for s, p in zip(two_s, peak_two, strict=True)
        ),
        "state_bytes_per_run": 16.0 * cost(trial).n_param,
        **{
            f"stack_{size}_over_plain": ratio
            for size, ratio in stack_ratios(trial, STACKS, n_step=24).items()
        },
    }


def _matmul_flops(n_process: int) -> float:
    """Of as many processes of one thread at once."""
    command = [sys.executable, "-m", "redline.train.bench", "matmul"]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(n_process)
    ]
    return sum(float(process.communicate()[0]) for process in running)


@contextmanager
def _plain_loop(trial: Trial, folder: Path) -> Generator[Callable[[], float], None, None]:
    """A process with the plain loop; yields a function that trains a trial and says its seconds."""
    path = folder / "trial.json"
    path.write_text(trial.model_dump_json(), "utf-8")
    command = [sys.executable, "-m", "redline.train.bench", str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def seconds() -> float:
            stdin.write("go\n")
            stdin.flush()
            return float(stdout.readline())

        yield seconds
        stdin.close()


def _trained(store: Store, twins: Iterator[str], n_worker: int) -> list[float]:
    """Seconds of the second trial of each worker, all at once: like the plain loop, it is warm."""
    ids = [next(twins) for _ in range(2 * n_worker)]
    local.run(store, ids, study="bench", n_worker=n_worker, on_event=lambda event: None)
    return [attempts(store, trial_id)[-1]["elapsed_s"] for trial_id in ids[n_worker:]]


def _print(found: dict[str, float], console: Console) -> None:
    console.print(
        f"plain nanoGPT-style loop, one thread: {show.large(found['plain_tokens_per_s'])} tokens/s"
    )
    console.print(
        f"one worker, all that it measures and records included: "
        f"{show.large(found['worker_tokens_per_s'])} tokens/s, {found['worker_over_plain']:.2f}x"
    )
    console.print(f"two workers over one: {found['two_over_one']:.2f}x")
    console.print(f"share of probes and evaluations: {found['measuring_share']:.1%}")
    for name in ("one", "two"):
        console.print(
            f"model FLOP/s of {name} over large matrix products on as many cores "
            f"({found[f'matmul_flops_{name}'] / 1e9:.0f} GFLOP/s): "
            f"{found[f'share_of_matmul_{name}']:.2f}"
        )
    stacks = ", ".join(f"{size} runs {found[f'stack_{size}_over_plain']:.2f}x" for size in STACKS)
    console.print(f"forced stacks over the plain loop, updates alone, one thread: {stacks}")
    kib = found["state_bytes_per_run"] / 1024
    console.print(
        f"weights, gradient and moments of a run: {kib:,.0f} KiB. Plan on a CPU: one process of "
        "one thread a core, no stack"
    )
