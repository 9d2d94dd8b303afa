"""The plain training loop: one trial from its initial weights to its last evaluation.

It knows no store and no schedule of trials. A recorder takes rows and checkpoints, so the loop is
tested with a list and no disk.
"""

import math
import time
from collections.abc import Iterator
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from redline.config.identity import digest, scientific_fields
from redline.config.trial import Trial
from redline.data.batches import Batches, evaluation_rows, window_order
from redline.data.tokens import Corpus, sha256_array
from redline.model.init import build, weights_sha256
from redline.train import checkpoint, probes
from redline.train.optim import Optimiser
from redline.train.schedule import lr


class Recorder(Protocol):
    """Where a run leaves its rows and checkpoints."""

    def step(self, row: dict[str, Any]) -> None: ...
    def probe(self, row: dict[str, Any]) -> None: ...
    def save(self, step: int, checkpoint: bytes) -> None: ...
    def checkpoints(self) -> Iterator[bytes]: ...
    def rewind(self, step: int) -> None: ...


def train(
    trial: Trial, corpus: Corpus, recorder: Recorder, checkpoint_every_s: float = 30.0
) -> dict[str, Any]:
    """Train one trial to its last step, or to the first non-finite number; continue if it can.

    Returns the result record: `init_loss` and `final_loss` in nats per token (final is null when
    the trial ended non-finite), `steps_done`, `non_finite` with `non_finite_step`, and the hashes
    of initial weights, batch order and evaluation tokens.
    """
    run = Run(trial, corpus)
    step = run.resume(recorder)
    saved_at = time.monotonic()
    if step is None:
        step = 0
        run.measure(step, {"step": step}, recorder)
    while run.non_finite is None and step < trial.train.n_step:
        step += 1
        run.measure(step, run.update(step), recorder)
        if run.non_finite is None and time.monotonic() - saved_at > checkpoint_every_s:
            recorder.save(step, run.checkpoint(step))
            saved_at = time.monotonic()
    return run.result(step)


class Run:
    """The state of one trial in training."""

    def __init__(self, trial: Trial, corpus: Corpus):
        self.trial = trial
        self.corpus = corpus
        self.decoder = build(trial.model, corpus.vocab_size, trial.seed)
        self.init_sha256 = weights_sha256(self.decoder)
        self.owner = digest([scientific_fields(trial), self.init_sha256, corpus.eval_sha256])
        self.optimiser = Optimiser(self.decoder, trial.train)
        self.batches = Batches(
            corpus.train, trial.seed, trial.train.batch_size, trial.model.block_size
        )
        self.eval_rows = torch.from_numpy(evaluation_rows(corpus.eval, trial.model.block_size))
        self.probe_steps = probe_steps(trial)
        self.init_loss = self.eval_loss = math.nan
        self.non_finite: str | None = None

    def update(self, step: int) -> dict[str, Any]:
        """One optimiser step. A non-finite number ends it before it can reach the weights."""
        row: dict[str, Any] = {"step": step, "lr": lr(self.trial.train, step)}
        rows_BT = torch.from_numpy(self.batches(step))
        logits_BTV = self.decoder(rows_BT[:, :-1])
        loss = cross_entropy(logits_BTV, rows_BT[:, 1:])
        row["loss"] = float(loss.detach())
        # One pass over the logits: a finite loss alone is no proof that all of them are.
        low, high = torch.aminmax(logits_BTV.detach())
        if not self._finite(loss=row["loss"], logit=float(high - low)):
            return row
        if self.trial.train.z_loss:
            loss = loss + self.trial.train.z_loss * logits_BTV.logsumexp(-1).square().mean()
        self.optimiser.zero_grad()
        loss.backward()
        gradient_norm = self.optimiser.gradient_norm()
        row["grad_norm"] = float(gradient_norm)
        if not self._finite(grad_norm=row["grad_norm"]):
            return row
        norms = self.optimiser.step(row["lr"], gradient_norm)
        row |= {"param_norm": norms.parameter, "update_norm": norms.update}
        self._finite(param_norm=norms.parameter)
        return row

    def measure(self, step: int, row: dict[str, Any], recorder: Recorder) -> None:
        """Evaluate and probe when the schedule says so, and record the step."""
        if self.non_finite is None and self._is_evaluated(step):
            row["eval_loss"] = self.eval_loss = evaluate(
                self.decoder, self.eval_rows, self.trial.train.batch_size
            )
            self._finite(loss=self.eval_loss)
        if step == 0:
            self.init_loss = self.eval_loss
        if self.non_finite is None and step in self.probe_steps:
            rows_BT = self.eval_rows[: self.trial.measure.n_probe_row]
            record = probes.probe(self.decoder, rows_BT[:, :-1])
            if probes.non_finite_logit(record):
                self.non_finite = "logit"
            recorder.probe({"step": step, **record})
        recorder.step(row)

    def _is_evaluated(self, step: int) -> bool:
        return step % self.trial.measure.eval_every == 0 or step == self.trial.train.n_step

    def _finite(self, **values: float) -> bool:
        for name, value in values.items():
            if not math.isfinite(value):
                self.non_finite = name
                return False
        return True

    def checkpoint(self, step: int) -> bytes:
        state = {
            "owner": self.owner,
            "step": step,
            "init_loss": self.init_loss,
            "eval_loss": self.eval_loss,
        }
        return checkpoint.pack(self.optimiser.tensors(), state)

    def resume(self, recorder: Recorder) -> int | None:
        """Continue from the newest whole checkpoint; the step it stands at, or None if none."""
        found = checkpoint.newest(recorder.checkpoints(), self.owner)
        if found is None:
            recorder.rewind(-1)
            return None
        tensors, state = found
        self.optimiser.restore(tensors, state["step"])
        self.init_loss, self.eval_loss = state["init_loss"], state["eval_loss"]
        recorder.rewind(state["step"])
        return state["step"]

    def result(self, step: int) -> dict[str, Any]:
        ended = self.non_finite is not None
        order = window_order(self.trial.seed, 0, self.batches.n_window)
        return {
            "init_loss": self.init_loss,
            "final_loss": None if ended else self.eval_loss,
            "steps_done": step,
            "non_finite": self.non_finite,
            "non_finite_step": step if ended else None,
            "init_sha256": self.init_sha256,
            "batch_sha256": sha256_array(order),
            "eval_sha256": self.corpus.eval_sha256,
        }


def cross_entropy(logits_BTV: Tensor, targets_BT: Tensor) -> Tensor:
    """Mean next-token loss in nats over all targets of the batch."""
    return F.cross_entropy(logits_BTV.flatten(0, 1), targets_BT.flatten())


@torch.no_grad()
def evaluate(decoder: torch.nn.Module, rows: Tensor, batch_size: int) -> float:
    """Mean loss over all evaluation windows (n_window, T + 1), every target weighing the same."""
    # Equal chunks of at most a batch: one shape for the whole study, no short last batch.
    chunk = math.gcd(len(rows), batch_size)
    losses = [
        float(cross_entropy(decoder(part[:, :-1]), part[:, 1:])) for part in rows.split(chunk)
    ]
    return math.fsum(losses) / len(losses)


def probe_steps(trial: Trial) -> frozenset[int]:
    """Steps after which the model is probed: the regular ones and the protocol's headlines.

    Headlines (section 5): 2 % of training, 40 % of warm-up, the end of warm-up, the start and the
    end.
    """
    n_step, warmup = trial.train.n_step, trial.train.warmup_step
    regular = range(0, n_step + 1, trial.measure.probe_every)
    headlines = {math.ceil(0.02 * n_step), max(1, math.ceil(0.4 * warmup)), warmup, n_step}
    return frozenset(regular) | headlines
