from collections.abc import Callable
from typing import Any

import pytest

from redline.config.edit import put
from redline.config.trial import Trial


def explicit() -> dict[str, Any]:
    """Every field spelled out: golden ids must not follow a protocol that changes its values."""
    return {
        "protocol": "nanogpt",
        "model": {
            "n_layer": 2,
            "n_head": 2,
            "n_embd": 64,
            "block_size": 64,
            "bias": False,
            "pos": "learned",
            "tied_head": True,
            "layer_norm_eps": 1e-5,
            "init_std": 0.02,
            "qk_init": "init_std",
            "qk_norm": None,
        },
        "data": {
            "corpus": "stories",
            "tokenizer": "bytes",
            "n_train_token": 1_000_000,
            "n_eval_token": 8_192,
        },
        "train": {
            "batch_size": 16,
            "n_step": 400,
            "peak_lr": 1e-3,
            "warmup_fraction": 0.1,
            "lr_floor": 0.1,
            "lr_floor_mode": "fraction",
            "weight_decay": 0.1,
            "weight_decay_mode": "coupled",
            "beta1": 0.9,
            "beta2": 0.95,
            "adam_eps": 1e-8,
            "grad_clip": 1.0,
            "z_loss": 0.0,
        },
        "measure": {"eval_every": 100, "probe_every": 40, "n_probe_row": 16},
        "seed": 0,
        "device": "cpu",
        "precision": "float32",
    }


@pytest.fixture
def table() -> dict[str, Any]:
    return explicit()


@pytest.fixture(scope="session")
def make() -> Callable[..., Trial]:
    """A trial with some fields changed: `make({"train.peak_lr": 3e-3})`."""

    def build(changes: dict[str, Any] | None = None) -> Trial:
        nested = explicit()
        for path, value in (changes or {}).items():
            put(nested, path, value)
        return Trial.model_validate(nested)

    return build
