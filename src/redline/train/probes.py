"""Statistics of one forward pass on fixed evaluation tokens (the protocol, section 5).

The pass is plain, uncompiled and without gradients: it draws no random number and touches no
parameter, so that a probed run has the bits of an unprobed one.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

MASSIVE_ABS, MASSIVE_RATIO = 100.0, 1000.0  # Sun et al., 2402.17762


@torch.no_grad()
def probe(decoder: Callable[..., Tensor], tokens_BT: Tensor) -> dict[str, Any]:
    """One probe record without its step: `log_z_sq`, `layers` (n_layer), `residual` (n_layer + 1).

    Entropies are nats. Exact for the batch it looks at.
    """
    listener = Listener()
    logits_BTV = decoder(tokens_BT, tap=listener)
    log_z_sq = logits_BTV.float().logsumexp(-1).square().mean()
    return {
        "log_z_sq": float(log_z_sq),
        "layers": listener.attentions,
        "residual": listener.residuals,
    }


class Listener:
    """A tap that turns each activation into numbers at once and keeps no tensor."""

    def __init__(self) -> None:
        self.attentions: list[dict[str, float]] = []
        self.residuals: list[dict[str, float | bool | None]] = []

    def attention(self, layer: int, q_BHTD: Tensor, k_BHTD: Tensor, scale: float) -> None:
        assert layer == len(self.attentions)
        self.attentions.append(attention_statistics(q_BHTD, k_BHTD, scale))

    def residual(self, layer: int, x_BTC: Tensor) -> None:
        assert layer == len(self.residuals)
        self.residuals.append(residual_statistics(x_BTC))


def attention_statistics(q_BHTD: Tensor, k_BHTD: Tensor, scale: float) -> dict[str, float]:
    """Largest absolute logit and entropies of causal attention, in float32.

    Query i (1-based) sees i keys; query 1 has no choice and is left out of the means. `normalised`
    is the mean of H_i / ln i, not a ratio of means.
    """
    logits_BHTT = scale * q_BHTD.float() @ k_BHTD.float().transpose(-2, -1)
    n_time = logits_BHTT.shape[-1]
    future_TT = torch.ones(n_time, n_time, dtype=torch.bool, device=logits_BHTT.device).triu(1)
    max_logit = logits_BHTT.abs().masked_fill(future_TT, 0.0).max()
    p_BHTT = logits_BHTT.masked_fill(future_TT, -math.inf).softmax(-1)
    entropy_BHT = -torch.special.xlogy(p_BHTT, p_BHTT).sum(-1)[..., 1:]
    uniform_T = torch.arange(2, n_time + 1, device=logits_BHTT.device, dtype=torch.float32).log()
    return {
        "max_logit": float(max_logit),
        "entropy": float(entropy_BHT.mean()),
        "entropy_normalised": float((entropy_BHT / uniform_T).mean()),
        "entropy_head_min": float(entropy_BHT.mean(dim=(0, 2)).min()),
    }


def residual_statistics(x_BTC: Tensor) -> dict[str, float | bool | None]:
    """Outliers of the residual stream: max over median, kurtosis m4 / m2^2, Sun et al.'s flag.

    Kurtosis is uncentred, per token over features (Gaussian: 3 d / (d + 2); at most d), and null
    where every token is zero.
    """
    # Float64: the fourth power of 1e10 does not fit into float32.
    x_NC = x_BTC.detach().flatten(0, -2).cpu().numpy().astype(np.float64)
    size_NC = np.abs(x_NC)
    # Large runs overflow here on purpose: the result is inf or nan, and that is the measurement.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        largest, median = size_NC.max(), np.median(size_NC)
        square_NC = np.square(x_NC)
        m2_N = square_NC.mean(-1)
        alive = m2_N != 0
        kurtosis = np.square(square_NC).mean(-1)[alive] / np.square(m2_N[alive])
        ratio = largest / median
    return {
        "outlier_ratio": float(ratio),
        "outlier_abs": float(largest),
        "kurtosis_mean": float(kurtosis.mean()) if alive.any() else None,
        "kurtosis_max": float(kurtosis.max()) if alive.any() else None,
        "massive": bool(largest > MASSIVE_ABS and largest > MASSIVE_RATIO * median),
    }


def non_finite_logit(record: Mapping[str, Any]) -> bool:
    """Whether a probe saw a non-finite attention logit or output logit."""
    values = [record["log_z_sq"], *(layer["max_logit"] for layer in record["layers"])]
    return not all(map(math.isfinite, values))
