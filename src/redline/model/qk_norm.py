"""The intervention: QK-norm in its four kinds.

Shapes: B batch, T context, H heads, D head_dim. Heads are still beside time here (BTHD), so that
`rmsnorm_full` can see the whole projected width. Statistics are float32 whatever the autocast.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from redline.config.trial import Model, QKNorm


class QKNormalisation(nn.Module):
    """Normalises queries and keys; `scale` multiplies their dot product afterwards."""

    logit_scale: Tensor
    q_gain: Tensor | None
    k_gain: Tensor | None

    def __init__(self, model: Model, norm: QKNorm):
        super().__init__()
        self.norm = norm
        self.scale = 1.0 if norm.kind == "l2" else 1 / math.sqrt(model.head_dim)
        width = model.n_embd if norm.kind == "rmsnorm_full" else model.head_dim
        if norm.kind == "l2":
            # Henry et al. 2010.04245: logits of unit vectors need room to separate T keys.
            self._gain(
                "logit_scale", torch.tensor(math.log2(model.block_size**2 - model.block_size))
            )
        else:
            self._gain("q_gain", torch.ones(width))
            self._gain("k_gain", torch.ones(width))

    def _gain(self, name: str, value: Tensor) -> None:
        match self.norm.gain:
            case "learned":
                self.register_parameter(name, nn.Parameter(value))
            case "frozen":
                self.register_buffer(name, value)
            case "none":
                self.register_parameter(name, None)

    def forward(self, q_BTHD: Tensor, k_BTHD: Tensor) -> tuple[Tensor, Tensor]:
        q, k = q_BTHD.float(), k_BTHD.float()
        if self.norm.kind == "l2":
            q = F.normalize(q, dim=-1, eps=self.norm.eps) * self.logit_scale
            k = F.normalize(k, dim=-1, eps=self.norm.eps)
        else:
            q, k = self._normalise(q, self.q_gain), self._normalise(k, self.k_gain)
        return q.to(q_BTHD.dtype), k.to(k_BTHD.dtype)

    def _normalise(self, x_BTHD: Tensor, gain: Tensor | None) -> Tensor:
        eps, width = self.norm.eps, (x_BTHD.shape[-1],)
        match self.norm.kind:
            case "layernorm":
                return F.layer_norm(x_BTHD, width, gain, None, eps)
            case "rmsnorm_full":
                x_BTC = x_BTHD.flatten(-2)
                return F.rms_norm(x_BTC, (x_BTC.shape[-1],), gain, eps).view_as(x_BTHD)
            case _:
                return F.rms_norm(x_BTHD, width, gain, eps)
