"""Initial weights: every tensor from a generator of its own.

A generator is seeded by (seed, tensor name), so a component that is switched on, or another depth,
leaves every shared tensor bit-identical (residual projections change their scale with depth only).
"""

import hashlib
import math

import numpy as np
import torch
from torch import Tensor, nn

from redline.config.trial import Model
from redline.model.decoder import Decoder


@torch.no_grad()
def build(model: Model, vocab_size: int, seed: int) -> Decoder:
    """A decoder with the initial weights of `seed` (nanoGPT's distributions), float32, on the CPU.

    Gains start at one and biases at zero; only matrices are random.
    """
    decoder = Decoder(model, vocab_size)
    for name, parameter in decoder.named_parameters():
        if name.endswith("bias"):
            parameter.zero_()
        elif parameter.ndim >= 2:
            for part, weight, std in _parts(name, parameter, model):
                weight.copy_(std * normal(seed, part, tuple(weight.shape)))
    return decoder


def _parts(name: str, weight: Tensor, model: Model) -> list[tuple[str, Tensor, float]]:
    """(name, view, std) of the tensors that share one matrix: W_q, W_k and W_v are three."""
    if name.endswith("qkv.weight"):
        std_qk = model.init_std if model.qk_init == "init_std" else 1 / math.sqrt(model.n_embd)
        stds = (std_qk, std_qk, model.init_std)
        views = weight.chunk(3, dim=0)
        return [
            (name.replace("qkv", part), view, std)
            for part, view, std in zip("qkv", views, stds, strict=True)
        ]
    if name.endswith("proj.weight"):
        return [(name, weight, model.init_std / math.sqrt(2 * model.n_layer))]
    return [(name, weight, model.init_std)]


def normal(seed: int, name: str, shape: tuple[int, ...]) -> Tensor:
    """Standard normal float32 numbers that depend on (seed, name) alone."""
    key = int.from_bytes(hashlib.sha256(f"{seed}:{name}".encode()).digest()[:16], "little")
    draw = np.random.Generator(np.random.Philox(key=key)).standard_normal(shape, dtype=np.float32)
    return torch.from_numpy(draw)


def weights_sha256(module: nn.Module) -> str:
    """A hash of all parameters by name: equal weights, equal hash."""
    digest = hashlib.sha256()
    for name, parameter in module.named_parameters():
        digest.update(name.encode())
        digest.update(parameter.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
