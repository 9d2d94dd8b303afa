"""How fast this machine trains a trial: an estimate for plans, and what to compare it with.

`python -m redline.train.bench TRIAL.json` is a plain loop in a process of its own: each line on
standard input trains as many steps as the trial has, and prints the seconds that they took.
`python -m redline.train.bench matmul` prints the FLOP/s of float32 matrix products on one thread,
the most that this machine does with a core.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from redline.config.edit import with_fields
from redline.config.trial import Model, Trial
from redline.data.batches import Batches
from redline.data.tokens import Corpus, prepare
from redline.train.device import use_one_thread
from redline.train.loop import Run, probe_steps
from redline.train.schedule import lr
from redline.train.stack import Stack

MAX_MEASURED_TOKENS = 1024
ROUNDS = 3
MATMUL_SIZE, MATMUL_S = 768, 2.0


def trial_seconds(trial: Trial) -> float:
    """Seconds of one whole trial on one thread of this device, from a few steps on random tokens.

    A forward pass for evaluation is taken as a third of a training step, a probe as a whole one.
    """
    t, m = trial.train, trial.model
    tokens_per_step = t.batch_size * m.block_size
    n_eval = 1 + -(-t.n_step // trial.measure.eval_every)
    probed = len(probe_steps(trial)) * trial.measure.n_probe_row * m.block_size
    measured = n_eval * trial.data.n_eval_token / 3 + probed
    return step_seconds(trial) * (t.n_step + measured / tokens_per_step)


def step_seconds(trial: Trial) -> float:
    """Seconds of one training step; a large batch is measured in part and scaled."""
    use_one_thread()
    rows = max(1, min(trial.train.batch_size, MAX_MEASURED_TOKENS // trial.model.block_size))
    few = {"train.batch_size": rows, "train.n_step": 10, "train.warmup_fraction": 0.1}
    run = Run(with_fields(trial, few), random_corpus(trial))
    run.update(1)
    # The fastest of a few: whatever else the machine does can only add.
    fastest = min(_seconds(lambda step=step: run.update(step)) for step in (2, 3))
    return fastest * trial.train.batch_size / rows


def measuring_share(trial: Trial) -> float:
    """Share of a trial's time that its probes and evaluations take, on one thread."""
    use_one_thread()
    run = Run(trial, random_corpus(trial))
    n_step, recorder = trial.train.n_step, Silent()
    run.update(1)
    run.measure(0, {}, recorder)
    updating = _seconds(lambda: [run.update(step) for step in range(2, n_step + 1)])
    run.non_finite = None
    measuring = _seconds(lambda: [run.measure(step, {}, recorder) for step in range(n_step + 1)])
    return measuring / (updating + measuring)


def random_corpus(trial: Trial) -> Corpus:
    """Tokens without meaning, for measurements before any corpus is prepared."""
    ids = np.random.default_rng(0).integers(0, trial.data.vocab_size - 1, 300_000, dtype=np.uint8)
    manifest = {"vocab_size": trial.data.vocab_size, "eval_sha256": ""}
    return Corpus(ids, np.resize(ids, trial.data.n_eval_token + 1), manifest)


class Silent:
    """A recorder that keeps nothing."""

    def step(self, row: dict[str, Any]) -> None: ...
    def probe(self, row: dict[str, Any]) -> None: ...
    def save(self, step: int, checkpoint: bytes) -> None: ...
    def rewind(self, step: int) -> None: ...

    def checkpoints(self) -> Iterator[bytes]:
        return iter(())


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def plain_loop(trial: Trial, corpus: Corpus) -> Iterator[float]:
    """A plain nanoGPT-style loop on the same batches: AdamW, clip, one `loss.item()` a step."""
    m, t = trial.model, trial.train
    batches = Batches(corpus.train, trial.seed, t.batch_size, m.block_size)
    model = PlainGPT(m, trial.data.vocab_size)
    groups = [
        {"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": t.weight_decay},
        {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=t.peak_lr, betas=(t.beta1, t.beta2), eps=t.adam_eps)
    for step in count(1):
        for group in optimiser.param_groups:
            group["lr"] = lr(t, min(step, t.n_step))
        rows_BT = torch.from_numpy(batches(step))
        logits = model(rows_BT[:, :-1].contiguous())
        targets = rows_BT[:, 1:].contiguous()
        loss = F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), t.grad_clip)
        optimiser.step()
        yield loss.item()


class PlainGPT(nn.Module):
    """nanoGPT's model as its author wrote it, to be timed against."""

    def __init__(self, m: Model, vocab_size: int):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, m.n_embd)
        self.wpe = nn.Embedding(m.block_size, m.n_embd)
        self.h = nn.ModuleList(PlainBlock(m) for _ in range(m.n_layer))
        self.ln_f = nn.LayerNorm(m.n_embd, bias=m.bias)
        self.lm_head = nn.Linear(m.n_embd, vocab_size, bias=False)
        self.wte.weight = self.lm_head.weight
        for p in self.parameters():
            if p.ndim >= 2:
                nn.init.normal_(p, std=m.init_std)

    def forward(self, idx: Tensor) -> Tensor:
        pos = torch.arange(0, idx.size(1), dtype=torch.long)
        x = self.wte(idx) + self.wpe(pos)
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class PlainBlock(nn.Module):
    def __init__(self, m: Model):
        super().__init__()
        self.n_head = m.n_head
        self.ln_1 = nn.LayerNorm(m.n_embd, bias=m.bias)
        self.ln_2 = nn.LayerNorm(m.n_embd, bias=m.bias)
        self.c_attn = nn.Linear(m.n_embd, 3 * m.n_embd, bias=m.bias)
        self.c_proj = nn.Linear(m.n_embd, m.n_embd, bias=m.bias)
        self.c_fc = nn.Linear(m.n_embd, 4 * m.n_embd, bias=m.bias)
        self.mlp_proj = nn.Linear(4 * m.n_embd, m.n_embd, bias=m.bias)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.size()
        q, k, v = self.c_attn(self.ln_1(x)).split(C, dim=2)
        q, k, v = (
            part.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for part in (q, k, v)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))
        return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x))))


def stack_ratios(trial: Trial, sizes: Sequence[int], n_step: int) -> dict[int, float]:
    """Tokens per second of forced stacks over those of the plain loop, both on one thread here.

    Of updates alone, the median over rounds in which one is measured after the other.
    """
    use_one_thread()
    corpus, few = random_corpus(trial), max(2, n_step)
    run = Run(trial, corpus)
    stacks = {
        size: Stack(
            [with_fields(trial, {"seed": seed}) for seed in range(size)],
            corpus,
            [Silent()] * size,
            "cpu",
        )
        for size in sizes
    }
    ratios: dict[int, list[float]] = {size: [] for size in sizes}
    for _ in range(1 + ROUNDS):  # the first round warms up
        plain = _seconds(lambda: [run.update(step) for step in range(1, few + 1)]) / few
        for size, stack in stacks.items():
            each = max(2, few // size)
            spent = _seconds(lambda s=stack, n=each: [s.update(step) for step in range(1, n + 1)])
            ratios[size].append(plain * size * each / spent)
    return {size: median(of_size[1:]) for size, of_size in ratios.items()}


def matmul_flops() -> float:
    """FLOP/s of products of square float32 matrices on one thread, for two seconds."""
    use_one_thread()
    a, b = torch.randn(2, MATMUL_SIZE, MATMUL_SIZE)
    out = a @ b
    start, n = time.perf_counter(), 0
    while time.perf_counter() - start < MATMUL_S:
        torch.mm(a, b, out=out)
        n += 1
    return 2.0 * MATMUL_SIZE**3 * n / (time.perf_counter() - start)


def main() -> None:
    """Serve the plain loop of one trial, a line for a line, or print the speed of products."""
    if sys.argv[1] == "matmul":
        print(matmul_flops(), flush=True)
        return
    use_one_thread()
    trial = Trial.model_validate_json(Path(sys.argv[1]).read_text("utf-8"))
    loop = plain_loop(trial, prepare(trial.data))
    next(loop)  # warm from here on
    for _ in sys.stdin:
        print(_seconds(lambda: [next(loop) for _ in range(trial.train.n_step)]), flush=True)


if __name__ == "__main__":
    main()
