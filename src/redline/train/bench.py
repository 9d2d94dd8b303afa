"""How fast this machine trains a trial: an estimate for plans, and ratios against a plain loop."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from statistics import median
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from redline.config.edit import with_fields
from redline.config.trial import Model, Trial
from redline.data.tokens import Corpus
from redline.train.loop import Run, train
from redline.train.schedule import lr

MAX_MEASURED_TOKENS = 1024
ROUNDS, STEPS_A_ROUND = 7, 20


def step_seconds(trial: Trial) -> float:
    """Seconds of one training step on one thread of this device, from a few steps on random tokens.

    A large batch is measured in part and scaled: the time of a step is linear in its tokens.
    """
    torch.set_num_threads(1)
    rows = max(1, min(trial.train.batch_size, MAX_MEASURED_TOKENS // trial.model.block_size))
    run = Run(with_fields(trial, {"train.batch_size": rows}), random_corpus(trial))
    run.update(1)
    # The fastest of a few: whatever else the machine does can only add.
    fastest = min(_seconds(lambda step=step: run.update(step)) for step in (2, 3))
    return fastest * trial.train.batch_size / rows


def trial_seconds(trial: Trial) -> float:
    """Seconds of one whole trial on one thread; what measuring takes is a few per cent."""
    return step_seconds(trial) * trial.train.n_step


def random_corpus(trial: Trial) -> Corpus:
    """Tokens without meaning, for measurements before any corpus is prepared."""
    ids = np.random.default_rng(0).integers(0, trial.data.vocab_size - 1, 300_000, dtype=np.uint8)
    n_eval = trial.data.n_eval_token + 1
    manifest = {"vocab_size": trial.data.vocab_size, "eval_sha256": ""}
    return Corpus(ids, np.resize(ids, n_eval), manifest)


def compare(trial: Trial) -> dict[str, float]:
    """Ratios on this machine, each pair measured in turns in one process.

    `worker_over_plain` sets the whole worker loop (its probes, evaluations and records included)
    against a plain nanoGPT-style loop without any; `measuring_share` is the share of a trial's time
    that probes and evaluations take; `two_over_one` sets two worker processes against one.
    """
    torch.set_num_threads(1)
    corpus = random_corpus(trial)
    plain, run = plain_loop(trial, corpus), Run(trial, corpus)
    step, plain_s, ours_s = 0, [], []
    for _ in range(ROUNDS + 1):
        plain_s.append(_seconds(lambda: [next(plain) for _ in range(STEPS_A_ROUND)]))
        steps = range(step + 1, step + 1 + STEPS_A_ROUND)
        ours_s.append(_seconds(lambda steps=steps: [run.update(s) for s in steps]))
        step += STEPS_A_ROUND
    plain_step, our_step = median(plain_s[1:]) / STEPS_A_ROUND, median(ours_s[1:]) / STEPS_A_ROUND
    measuring = _measuring_seconds(run)
    ours = our_step * trial.train.n_step + measuring
    tokens = trial.train.batch_size * trial.model.block_size
    return {
        "plain_tokens_per_s": tokens / plain_step,
        "update_over_plain": plain_step / our_step,
        "worker_over_plain": plain_step * trial.train.n_step / ours,
        "measuring_share": measuring / ours,
        "two_over_one": _two_over_one(trial),
    }


def _measuring_seconds(run: Run) -> float:
    """What probes, evaluations and records of a whole trial take, start and end included."""
    run.non_finite = None
    recorder = Silent()

    def measure_all() -> None:
        for step in range(run.trial.train.n_step + 1):
            run.measure(step, {"step": step}, recorder)

    return _seconds(measure_all)


def _two_over_one(trial: Trial) -> float:
    """Throughput of two processes over that of one, each with one thread."""
    short = with_fields(trial, {"train.n_step": 200})
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(timed_trial, [short, short]))  # both are warm from here on
        ratios = []
        for _ in range(3):
            alone = pool.submit(timed_trial, short).result()
            together = list(pool.map(timed_trial, [short, short]))
            ratios.append(sum(alone / seconds for seconds in together))
    return median(ratios)


def timed_trial(trial: Trial) -> float:
    """Seconds that one whole trial takes in this process."""
    torch.set_num_threads(1)
    corpus = random_corpus(trial)
    return _seconds(lambda: train(trial, corpus, Silent()))


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
    """A plain nanoGPT-style loop, one loss a step: random offsets, AdamW, clip, `loss.item()`."""
    m, t = trial.model, trial.train
    model = PlainGPT(m, trial.data.vocab_size)
    groups = [
        {"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": t.weight_decay},
        {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=t.peak_lr, betas=(t.beta1, t.beta2), eps=t.adam_eps)
    for step in range(1, 1_000_000_000):
        for group in optimiser.param_groups:
            group["lr"] = lr(t, min(step, t.n_step))
        starts = torch.randint(len(corpus.train) - m.block_size - 1, (t.batch_size,)).tolist()
        rows = [corpus.train[s : s + m.block_size + 1].astype(np.int64) for s in starts]
        rows_BT = torch.stack([torch.from_numpy(row) for row in rows])
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
        self.ln_1, self.ln_2 = (
            nn.LayerNorm(m.n_embd, bias=m.bias),
            nn.LayerNorm(m.n_embd, bias=m.bias),
        )
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
