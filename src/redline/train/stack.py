"""Many trials of one structure trained as one program, for devices that idle on a tiny model.

What `loop` does for one trial happens here for R at once: the losses of a step are one call, each
run has its own rate, clip, seed and batches, and a run that leaves the numbers is taken out, so
that the others go on without it. Rows, probes, results and checkpoints are those of the plain loop.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import vmap

from redline.config.edit import with_fields
from redline.config.identity import digest, scientific_fields
from redline.config.trial import Trial
from redline.data.batches import Batches, evaluation_rows, window_order
from redline.data.tokens import Corpus, sha256_array
from redline.model.decoder import Decoder
from redline.model.init import build, weights_sha256
from redline.model.stacked import Stacked
from redline.train import checkpoint, probes
from redline.train.loop import Recorder, cross_entropy, probe_steps
from redline.train.schedule import lr
from redline.train.stack_optim import StackOptimiser

Row = dict[str, Any]
Result = dict[str, Any]

OF_A_RUN = {
    "seed": 0,
    "train.peak_lr": 1.0,
    "train.warmup_fraction": 0.0,
    "train.lr_floor": 0.0,
    "train.lr_floor_mode": "absolute",
    "train.weight_decay": 0.0,
    "train.weight_decay_mode": "coupled",
    "train.grad_clip": 1.0,
    "train.z_loss": 0.0,
    "model.init_std": 0.02,
    "model.qk_init": "init_std",
}
"""What may differ within a stack: numbers that a run has for itself, and where it starts."""


def structure(trial: Trial) -> str:
    """Trials with the same text can be trained as one stack; an arm is a structure of its own."""
    return with_fields(trial, OF_A_RUN).model_dump_json()


def train_stack(
    trials: Sequence[Trial],
    corpus: Corpus,
    recorders: Sequence[Recorder],
    checkpoint_every_s: float = 30.0,
    device: str = "cpu",
) -> Iterator[tuple[int, Result]]:
    """Train trials of one structure; (index, result) of each as soon as it has ended.

    Results, rows and probes are those of `loop.train`. A stack continues from the last step of
    which every run has a checkpoint, or begins anew. A run's bits depend on nothing else in it.

    Raises:
        ValueError: trials of different structure.
    """
    if len({structure(trial) for trial in trials}) > 1:
        raise ValueError("trials of different structure share no stack")
    stack = Stack(trials, corpus, recorders, device)
    step = stack.resume()
    n_step = trials[0].train.n_step
    saved_at = time.monotonic()
    if step is None:
        step = 0
        stack.measure(step, [{"step": step} for _ in stack.runs])
        yield from stack.ended(step)
    while stack.runs and step < n_step:
        step += 1
        stack.measure(step, stack.update(step))
        yield from stack.ended(step)
        if stack.runs and time.monotonic() - saved_at > checkpoint_every_s and step < n_step:
            stack.save(step)
            saved_at = time.monotonic()
    yield from stack.finish(step)


@dataclass
class _RunState:
    """One trial of a stack: what is its own and no tensor."""

    index: int
    trial: Trial
    recorder: Recorder
    init_sha256: str
    owner: str
    init_loss: float = math.nan
    eval_loss: float = math.nan
    non_finite: str | None = None

    def finite(self, **values: float) -> bool:
        """Whether all are; the first that is not is why the run ends."""
        for name, value in values.items():
            if not math.isfinite(value):
                self.non_finite = name
                return False
        return True


class Stack:
    """The runs that are still in training, and one step of all of them."""

    def __init__(
        self, trials: Sequence[Trial], corpus: Corpus, recorders: Sequence[Recorder], device: str
    ):
        first = trials[0]
        decoders = [build(trial.model, corpus.vocab_size, trial.seed) for trial in trials]
        self.runs = [
            _run_state(index, trial, recorder, weights_sha256(decoder), corpus)
            for index, (trial, recorder, decoder) in enumerate(
                zip(trials, recorders, decoders, strict=True)
            )
        ]
        self.device = torch.device(device)
        self.module = Stacked(
            [decoder.to(self.device) for decoder in decoders],
            lambda: Decoder(first.model, corpus.vocab_size),
        )
        self.optimiser = StackOptimiser(self.module.parameters, [t.train for t in trials])
        self.module.parameters = self.optimiser.parameters
        self.corpus, self.measured = corpus, first.measure
        self.n_step, self.batch_size = first.train.n_step, first.train.batch_size
        self.batches = {
            seed: Batches(corpus.train, seed, self.batch_size, first.model.block_size)
            for seed in {trial.seed for trial in trials}
        }
        rows = torch.from_numpy(evaluation_rows(corpus.eval, first.model.block_size))
        self.eval_rows = rows.to(self.device)
        self.probe_steps = probe_steps(first)

    def update(self, step: int) -> list[Row]:
        """One step of every run. A run that is not finite ends; what it did to itself is its own.

        The numbers of all runs come to the host together, once a step.
        """
        rates = [lr(run.trial.train, step) for run in self.runs]
        rows_RBT = self._batch(step)
        logits = self.module.logits(rows_RBT[..., :-1])
        loss_R = vmap(cross_entropy)(logits, rows_RBT[..., 1:])
        low_R, high_R = torch.aminmax(logits.detach().flatten(1), dim=1)
        z_R = torch.tensor([run.trial.train.z_loss for run in self.runs]).to(loss_R)
        total = loss_R.sum()
        if z_R.any():
            total = total + (z_R * logits.logsumexp(-1).square().flatten(1).mean(1)).sum()
        gradients_RP = self.optimiser.gradients(total)
        norm_R = torch.linalg.vector_norm(gradients_RP, dim=1)
        update_R = self.optimiser.step(rates, gradients_RP, norm_R)
        weight_R = torch.linalg.vector_norm(self.optimiser.state["weight"], dim=1)
        columns = (loss_R.detach(), high_R - low_R, norm_R, weight_R, update_R)
        numbers = torch.stack(columns).double().T.tolist()
        return [
            _row(run, step, rate, *of_run)
            for run, rate, of_run in zip(self.runs, rates, numbers, strict=True)
        ]

    def _batch(self, step: int) -> Tensor:
        """(R, B, T + 1); runs of one seed read the same rows, which are made once."""
        by_seed = {seed: self.batches[seed](step) for seed in {r.trial.seed for r in self.runs}}
        rows = np.stack([by_seed[run.trial.seed] for run in self.runs])
        return torch.from_numpy(rows).to(self.device)

    def measure(self, step: int, rows: Sequence[Row]) -> None:
        """Evaluate and probe when the schedule says so, and record the step of every run."""
        if step % self.measured.eval_every == 0 or step == self.n_step:
            for run, row, loss in zip(self.runs, rows, self._evaluate(), strict=True):
                if run.non_finite is None:
                    row["eval_loss"] = run.eval_loss = loss
                    run.finite(loss=loss)
        for place, (run, row) in enumerate(zip(self.runs, rows, strict=True)):
            if step == 0:
                run.init_loss = run.eval_loss
            if run.non_finite is None and step in self.probe_steps:
                ids_BT = self.eval_rows[: self.measured.n_probe_row, :-1]
                record = probes.probe(self.module.solo(place), ids_BT)
                if probes.non_finite_logit(record):
                    run.non_finite = "logit"
                run.recorder.probe({"step": step, **record})
            run.recorder.step(row)

    @torch.no_grad()
    def _evaluate(self) -> list[float]:
        """Mean loss of each run over all evaluation windows, in the chunks of the plain loop."""
        chunk = math.gcd(len(self.eval_rows), self.batch_size)
        losses = [
            vmap(cross_entropy, in_dims=(0, None))(self.module.logits(part[:, :-1]), part[:, 1:])
            for part in self.eval_rows.split(chunk)
        ]
        by_run = torch.stack(losses).T.tolist()
        return [math.fsum(of_run) / len(of_run) for of_run in by_run]

    def ended(self, step: int) -> Iterator[tuple[int, Result]]:
        """The results of runs that are not finite any more; the stack goes on without them."""
        alive = [place for place, run in enumerate(self.runs) if run.non_finite is None]
        if len(alive) == len(self.runs):
            return
        lost = [run for run in self.runs if run.non_finite is not None]
        self.runs = [self.runs[place] for place in alive]
        if alive:
            self.optimiser.keep(alive)
            self.module.parameters = self.optimiser.parameters
            index = torch.tensor(alive, device=self.device)
            self.module.buffers = {n: part[index] for n, part in self.module.buffers.items()}
        for run in lost:
            yield run.index, self._result(run, step)

    def finish(self, step: int) -> Iterator[tuple[int, Result]]:
        """The results of the runs that have come to the end."""
        for run in self.runs:
            yield run.index, self._result(run, step)

    def _result(self, run: _RunState, step: int) -> Result:
        is_lost = run.non_finite is not None
        order = window_order(run.trial.seed, 0, self.batches[run.trial.seed].n_window)
        return {
            "init_loss": run.init_loss,
            "final_loss": None if is_lost else run.eval_loss,
            "steps_done": step,
            "non_finite": run.non_finite,
            "non_finite_step": step if is_lost else None,
            "init_sha256": run.init_sha256,
            "batch_sha256": sha256_array(order),
            "eval_sha256": self.corpus.eval_sha256,
        }

    def save(self, step: int) -> None:
        """A checkpoint of every run, in the form of the plain loop."""
        for place, run in enumerate(self.runs):
            state = {
                "owner": run.owner,
                "step": step,
                "init_loss": run.init_loss,
                "eval_loss": run.eval_loss,
            }
            run.recorder.save(step, checkpoint.pack(self.optimiser.tensors(place), state))

    def resume(self) -> int | None:
        """Continue from the last step that all runs can; None where there is no such step."""
        found = [_by_step(run) for run in self.runs]
        shared = set[int].intersection(*(set(of_run) for of_run in found))
        step = max(shared, default=None)
        for place, (run, of_run) in enumerate(zip(self.runs, found, strict=True)):
            run.recorder.rewind(-1 if step is None else step)
            if step is not None:
                tensors, state = of_run[step]
                self.optimiser.restore(place, tensors)
                run.init_loss, run.eval_loss = state["init_loss"], state["eval_loss"]
        if step is not None:
            self.optimiser.n_step = step
        return step


def halves(trials: Sequence[Trial]) -> tuple[Sequence[Trial], Sequence[Trial]]:
    """Two smaller stacks, for one that did not fit into the device's memory.

    Raises:
        ValueError: one trial alone cannot be halved.
    """
    if len(trials) < 2:
        raise ValueError("one trial alone does not fit")
    middle = len(trials) // 2
    return trials[:middle], trials[middle:]


def _run_state(
    index: int, trial: Trial, recorder: Recorder, init_sha256: str, corpus: Corpus
) -> _RunState:
    owner = digest([scientific_fields(trial), init_sha256, corpus.eval_sha256])
    return _RunState(index, trial, recorder, init_sha256, owner)


def _row(
    run: _RunState,
    step: int,
    rate: float,
    loss: float,
    logit_range: float,
    grad_norm: float,
    param_norm: float,
    update_norm: float,
) -> Row:
    """The row of the plain loop, which ends where the first number is not finite."""
    row: Row = {"step": step, "lr": rate, "loss": loss}
    if not run.finite(loss=loss, logit=logit_range):
        return row
    row["grad_norm"] = grad_norm
    if not run.finite(grad_norm=grad_norm):
        return row
    row |= {"param_norm": param_norm, "update_norm": update_norm}
    run.finite(param_norm=param_norm)
    return row


def _by_step(run: _RunState) -> dict[int, tuple[dict[str, Tensor], dict[str, Any]]]:
    """The whole checkpoints of a run that are its own."""
    found: dict[int, tuple[dict[str, Tensor], dict[str, Any]]] = {}
    for content in run.recorder.checkpoints():
        one = checkpoint.newest([content], run.owner)
        if one is not None:
            found[one[1]["step"]] = one
    return found
