"""Shared fixtures: tiny trials, tokens in memory, and a cache that is not the user's."""

import os
import tomllib
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

# One thread per process, before torch is loaded: tests compare bits, and xdist shares the cores.
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import pytest
from hypothesis import settings

from redline.config.edit import put
from redline.config.trial import Trial

# Speed is measured by benchmarks, never by a test: a busy machine must not fail one.
settings.register_profile("redline", deadline=None)
settings.load_profile("redline")

SHARED = Path(__file__).parents[2] / "shared"


def tiny_trial(**changes: Any) -> Trial:
    """2 layers, width 32, 2 heads, context 16, batch 4, 20 steps; `changes` by dotted path."""
    protocol = files("redline.study").joinpath("protocols/nanogpt.toml").read_text("utf-8")
    nested: dict[str, Any] = tomllib.loads(protocol)
    del nested["analysis"]
    fields = {
        "protocol": "nanogpt",
        "device": "cpu",
        "seed": 0,
        "model.n_embd": 32,
        "model.block_size": 16,
        "model.qk_norm": None,
        "data.n_train_token": 20_000,
        "data.n_eval_token": 512,
        "train.batch_size": 4,
        "train.n_step": 20,
        "train.peak_lr": 1e-3,
        "measure.eval_every": 5,
        "measure.probe_every": 5,
        "measure.n_probe_row": 4,
    }
    for path, value in (fields | {key.replace("__", "."): v for key, v in changes.items()}).items():
        put(nested, path, value)
    return Trial.model_validate(nested)


@pytest.fixture
def make_trial() -> Callable[..., Trial]:
    return tiny_trial


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Token files of a test run never mix with the user's; one cache serves the whole session."""
    root = tmp_path_factory.getbasetemp() / "cache"
    monkeypatch.setenv("REDLINE_CACHE", str(root))


@pytest.fixture
def shared() -> Path:
    """Material beside the checkout that the product does not need."""
    if not SHARED.is_dir():
        pytest.skip("no ../shared beside this checkout")
    return SHARED
