"""Replay numbers that nanoGPT itself produced."""

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from redline.config.trial import Model, Train
from redline.files import UserError
from redline.model.decoder import Decoder
from redline.train.loop import cross_entropy
from redline.train.optim import Optimiser

Arrays = dict[str, NDArray[Any]]

RENAMED = (
    ("transformer.wte.", "token."),
    ("transformer.wpe.", "position."),
    ("transformer.h.", "blocks."),
    ("transformer.ln_f.", "norm."),
    (".ln_1.", ".norm_1."),
    (".ln_2.", ".norm_2."),
    (".attn.c_attn.", ".attention.qkv."),
    (".attn.c_proj.", ".attention.proj."),
    (".mlp.c_fc.", ".mlp.fc."),
    (".mlp.c_proj.", ".mlp.proj."),
    ("lm_head.", "head."),
)


def replay_golden(path: Path) -> dict[str, float]:
    """Largest absolute differences between a recorded nanoGPT run and this code.

    The file holds `config` (JSON), `init.NAME` and `final.NAME` weights, `tokens`
    (n_step, batch, T + 1), `logits0`, `losses`, `grad_norms` and sometimes `lrs`. Returns the keys
    `logits`, `losses`, `grad_norms`, `final_weights`; 0 is equality.

    Raises:
        UserError: the file is no such recording.
    """
    recording = _read(path)
    try:
        config = json.loads(str(recording["config"]))
        decoder = Decoder(_model(config), config["vocab_size"])
        _load(decoder, recording, "init.")
        return _replay(decoder, config, recording)
    except (KeyError, RuntimeError, ValueError) as error:
        raise UserError(f"{path}: not a golden recording ({error})") from None


def _read(path: Path) -> Arrays:
    try:
        # An open handle: np.load leaks the one it opens itself when the file is no archive.
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, EOFError, ValueError, AttributeError, zipfile.BadZipFile) as error:
        raise UserError(f"{path}: not a readable .npz file ({error})") from None


def _replay(decoder: Decoder, config: dict[str, Any], recording: Arrays) -> dict[str, float]:
    tokens = torch.from_numpy(recording["tokens"])
    lrs = recording["lrs"] if "lrs" in recording else np.full(len(tokens), config["lr"])
    optimiser = Optimiser(decoder, _train(config, float(max(lrs)), len(tokens)))
    with torch.no_grad():
        logits = decoder(tokens[0, :, :-1]).numpy()
    losses, norms = [], []
    for rows_BT, lr in zip(tokens, lrs, strict=True):
        loss = cross_entropy(decoder(rows_BT[:, :-1]), rows_BT[:, 1:])
        optimiser.zero_grad()
        loss.backward()
        norm = optimiser.gradient_norm()
        optimiser.step(float(lr), norm)
        losses.append(float(loss.detach()))
        norms.append(float(norm))
    final = Decoder(_model(config), config["vocab_size"])
    _load(final, recording, "final.")
    pairs = zip(decoder.parameters(), final.parameters(), strict=True)
    return {
        "logits": _largest(logits, recording["logits0"]),
        "losses": _largest(losses, recording["losses"]),
        "grad_norms": _largest(norms, recording["grad_norms"]),
        "final_weights": max(float((a - b).detach().abs().max()) for a, b in pairs),
    }


def _load(decoder: Decoder, recording: Arrays, prefix: str) -> None:
    weights = {
        _our_name(name.removeprefix(prefix)): torch.from_numpy(value)
        for name, value in recording.items()
        if name.startswith(prefix)
    }
    decoder.load_state_dict(weights, strict=True)


def _our_name(name: str) -> str:
    for theirs, ours in RENAMED:
        name = name.replace(theirs, ours)
    return name


def _largest(ours: Any, theirs: NDArray[Any]) -> float:
    return float(np.abs(np.asarray(ours) - theirs).max())


def _model(config: dict[str, Any]) -> Model:
    shape = {key: config[key] for key in ("n_layer", "n_head", "n_embd", "block_size", "bias")}
    return Model(
        **shape,
        pos="learned",
        tied_head=config["tied"],
        layer_norm_eps=config["layer_norm_eps"],
        init_std=0.02,
        qk_init="init_std",
        qk_norm=None,
    )


def _train(config: dict[str, Any], peak_lr: float, n_step: int) -> Train:
    return Train(
        batch_size=1,
        n_step=n_step,
        peak_lr=peak_lr,
        warmup_fraction=0,
        lr_floor=0,
        lr_floor_mode="absolute",
        weight_decay=config["weight_decay"],
        weight_decay_mode="coupled",
        beta1=config["betas"][0],
        beta2=config["betas"][1],
        adam_eps=config["eps"],
        grad_clip=config["grad_clip"],
        z_loss=0,
    )
