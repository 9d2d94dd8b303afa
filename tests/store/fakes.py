"""A training that needs no torch: rows by arithmetic, so that every run of a trial is the same.

The seed says what else happens, because a worker process knows nothing but the trial.
"""

import hashlib
import json
import math
import os
import resource
import signal
import time
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

from redline.config.identity import Tokens
from redline.config.trial import Trial
from redline.store import claims
from redline.store.layout import Store
from redline.store.writer import Recorder

RAISES, KILLED, OUT_OF_MEMORY, SLEEPS, DIVERGES, STOPPED = range(101, 107)

TOKENS = Tokens(token_sha256="a" * 64, tokenizer_sha256="b" * 64)
MANIFEST = TOKENS.model_dump() | {"bigram_loss": 2.5}
STEP_S = 0.0005


def make_trial(**changes: Any) -> Trial:
    """A small trial of the shipped protocol; `seed=3, qk_norm={}, n_layer=4` change it."""
    text = files("redline.study").joinpath("protocols/nanogpt.toml").read_text("utf-8")
    fields = tomllib.loads(text)
    fields.pop("analysis")
    fields |= {"protocol": "nanogpt", "seed": 0, "device": "cpu"}
    fields["model"]["qk_norm"] = None
    fields["train"] |= {"peak_lr": 1e-3, "n_step": 60}
    for name, value in changes.items():
        section = next((part for part in ("model", "train") if name in fields[part]), None)
        (fields[section] if section else fields)[name] = value
    return Trial.model_validate(fields)


def make_store(root: Path, seeds: Any = range(6), **changes: Any) -> tuple[Store, list[str]]:
    """A store that knows one trial for each seed."""
    store = Store(root).create()
    store.put_corpus(MANIFEST)
    return store, [store.put_trial(make_trial(seed=seed, **changes), TOKENS) for seed in seeds]


def load(token_sha256: str) -> None:
    """The fake needs no corpus."""


def train(trial: Trial, corpus: None, recorder: Recorder, checkpoint_every_s: float) -> dict:
    """Keep a running hash as the weights; each loss depends on all steps before."""
    step, weights = _resume(recorder)
    if step is None:
        step, weights = 0, hashlib.sha256(str(trial.seed).encode()).hexdigest()
        recorder.rewind(-1)
        recorder.step({"step": 0, "param_norm": 1.0, "eval_loss": 5.5})
        recorder.probe(_probe(trial, 0))
    while step < trial.train.n_step:
        step += 1
        weights = hashlib.sha256(weights.encode()).hexdigest()
        row = {"step": step, "lr": 1e-3, "loss": _loss(weights), "grad_norm": 1.0}
        if trial.seed == DIVERGES and step == 7:
            recorder.step(row | {"loss": math.nan, "grad_norm": math.inf})
            return _result(step) | {
                "final_loss": None, "non_finite": "loss", "non_finite_step": step
            }  # fmt: skip
        recorder.step(row | {"param_norm": 1.0, "update_norm": 0.1})
        if step % 10 == 0:
            recorder.probe(_probe(trial, step))
            recorder.save(step, json.dumps({"step": step, "weights": weights}).encode())
        _happen(trial.seed, step)
    return _result(step) | {"final_loss": _loss(weights)}


def record(store: Store, trial_id: str, *, study: str = "s" * 16) -> None:
    """Finish one trial in this process, without a worker."""
    with claims.claim(store, trial_id) as held:
        recorder = Recorder(store, trial_id, claim=held, study=study)
        trial, _ = store.read_trial(trial_id)
        recorder.finish(train(trial, None, recorder, 1.0))


def _loss(weights: str) -> float:
    return int(weights[:8], 16) / 2**32


def _resume(recorder: Recorder) -> tuple[int | None, str]:
    for content in recorder.checkpoints():
        try:
            state = json.loads(content)
        except ValueError:
            continue
        recorder.rewind(state["step"])
        return state["step"], state["weights"]
    return None, ""


def _happen(seed: int, step: int) -> None:
    time.sleep(STEP_S)
    if step != 13:
        return
    if seed == RAISES:
        print("the last words before the crash", flush=True)
        raise RuntimeError("a fault at step 13")
    if seed == KILLED:
        os.kill(os.getpid(), signal.SIGKILL)
    if seed == OUT_OF_MEMORY:
        resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))
        bytearray(2**33)
    if seed == SLEEPS:
        time.sleep(600)


def _probe(trial: Trial, step: int) -> dict[str, Any]:
    attention = {
        "max_logit": math.inf if trial.seed == DIVERGES else 1.5,
        "entropy": 2.0,
        "entropy_normalised": 0.9,
        "entropy_head_min": None,
    }
    stream = {
        "outlier_ratio": 3.0,
        "outlier_abs": 0.5,
        "kurtosis_mean": None,
        "kurtosis_max": math.nan,
        "massive": False,
    }
    n_layer = trial.model.n_layer
    return {
        "step": step,
        "log_z_sq": 30.0,
        "layers": [attention] * n_layer,
        "residual": [stream] * (n_layer + 1),
    }


def _result(step: int) -> dict[str, Any]:
    return {
        "init_loss": 5.5,
        "final_loss": None,
        "steps_done": step,
        "non_finite": None,
        "non_finite_step": None,
        "init_sha256": "1" * 64,
        "batch_sha256": "2" * 64,
        "eval_sha256": "3" * 64,
    }
