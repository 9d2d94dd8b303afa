"""The plain nanoGPT decoder, with each intervention as an optional part.

Shapes: B batch, T context, C n_embd, H n_head, D head_dim, V vocabulary.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from redline.config.trial import Model
from redline.model.attend import attend
from redline.model.qk_norm import QKNormalisation
from redline.model.taps import Tap

ROPE_BASE = 10_000.0  # 2104.09864


class Decoder(nn.Module):
    """Pre-LayerNorm decoder: token ids (B, T) -> logits (B, T, V)."""

    def __init__(self, model: Model, vocab_size: int):
        super().__init__()
        self.token = nn.Embedding(vocab_size, model.n_embd)
        self.position = (
            nn.Embedding(model.block_size, model.n_embd) if model.pos == "learned" else None
        )
        self.blocks = nn.ModuleList(Block(model, layer) for layer in range(model.n_layer))
        self.norm = layer_norm(model)
        self.head = None if model.tied_head else nn.Linear(model.n_embd, vocab_size, bias=False)

    def forward(self, tokens_BT: Tensor, tap: Tap | None = None) -> Tensor:
        x_BTC = self.token(tokens_BT)
        if self.position is not None:
            x_BTC = x_BTC + self.position.weight[: tokens_BT.shape[-1]]
        for block in self.blocks:
            x_BTC = block(x_BTC, tap)
        if tap is not None:
            tap.residual(len(self.blocks), x_BTC)
        head = self.token if self.head is None else self.head
        return F.linear(self.norm(x_BTC), head.weight)


class Block(nn.Module):
    """Attention and MLP, each on a normalised copy of the residual stream."""

    def __init__(self, model: Model, layer: int):
        super().__init__()
        self.layer = layer
        self.norm_1 = layer_norm(model)
        self.attention = Attention(model, layer)
        self.norm_2 = layer_norm(model)
        self.mlp = MLP(model)

    def forward(self, x_BTC: Tensor, tap: Tap | None) -> Tensor:
        if tap is not None:
            tap.residual(self.layer, x_BTC)
        x_BTC = x_BTC + self.attention(self.norm_1(x_BTC), tap)
        return x_BTC + self.mlp(self.norm_2(x_BTC))


class Attention(nn.Module):
    """Causal self-attention; queries and keys are normalised when the arm says so."""

    def __init__(self, model: Model, layer: int):
        super().__init__()
        self.layer = layer
        self.n_head = model.n_head
        self.scale = model.head_dim**-0.5
        self.rope = Rope(model) if model.pos == "rope" else None
        self.qkv = nn.Linear(model.n_embd, 3 * model.n_embd, bias=model.bias)
        self.qk_norm = QKNormalisation(model, model.qk_norm) if model.qk_norm else None
        self.proj = nn.Linear(model.n_embd, model.n_embd, bias=model.bias)

    def forward(self, x_BTC: Tensor, tap: Tap | None) -> Tensor:
        q_BTHD, k_BTHD, v_BTHD = (
            part.unflatten(-1, (self.n_head, -1)) for part in self.qkv(x_BTC).chunk(3, dim=-1)
        )
        q_BTHD, k_BTHD, scale = self._prepare(q_BTHD, k_BTHD)
        q_BHTD, k_BHTD = q_BTHD.transpose(-3, -2), k_BTHD.transpose(-3, -2)
        if tap is not None:
            tap.attention(self.layer, q_BHTD, k_BHTD, scale)
        y_BHTD = attend(q_BHTD, k_BHTD, v_BTHD.transpose(-3, -2), scale)
        return self.proj(y_BHTD.transpose(-3, -2).flatten(-2))

    def _prepare(self, q_BTHD: Tensor, k_BTHD: Tensor) -> tuple[Tensor, Tensor, float]:
        """Queries and keys as they meet, and the scale of their dot product."""
        if self.qk_norm is None:
            return *self._rotate(q_BTHD, k_BTHD), self.scale
        if self.qk_norm.norm.position == "before_rope":
            return *self._rotate(*self.qk_norm(q_BTHD, k_BTHD)), self.qk_norm.scale
        return *self.qk_norm(*self._rotate(q_BTHD, k_BTHD)), self.qk_norm.scale

    def _rotate(self, q_BTHD: Tensor, k_BTHD: Tensor) -> tuple[Tensor, Tensor]:
        if self.rope is None:
            return q_BTHD, k_BTHD
        return self.rope(q_BTHD), self.rope(k_BTHD)


class Rope(nn.Module):
    """Rotary positions (2104.09864): pairs (i, i + D/2) turn by an angle that grows with time."""

    cos_T1D: Tensor
    sin_T1D: Tensor

    def __init__(self, model: Model):
        super().__init__()
        half = model.head_dim // 2
        speed = ROPE_BASE ** (-torch.arange(half, dtype=torch.float64) / half)
        angle_T1D = torch.outer(torch.arange(model.block_size, dtype=torch.float64), speed)[:, None]
        self.register_buffer("cos_T1D", angle_T1D.cos().float(), persistent=False)
        self.register_buffer("sin_T1D", angle_T1D.sin().float(), persistent=False)

    def forward(self, x_BTHD: Tensor) -> Tensor:
        n_time = x_BTHD.shape[-3]
        cos_T1D, sin_T1D = self.cos_T1D[:n_time], self.sin_T1D[:n_time]
        a, b = x_BTHD.float().chunk(2, dim=-1)
        turned = torch.cat((a * cos_T1D - b * sin_T1D, b * cos_T1D + a * sin_T1D), dim=-1)
        return turned.to(x_BTHD.dtype)


class MLP(nn.Module):
    """Four times wider inside, GELU by the error function."""

    def __init__(self, model: Model):
        super().__init__()
        self.fc = nn.Linear(model.n_embd, 4 * model.n_embd, bias=model.bias)
        self.proj = nn.Linear(4 * model.n_embd, model.n_embd, bias=model.bias)

    def forward(self, x_BTC: Tensor) -> Tensor:
        return self.proj(F.gelu(self.fc(x_BTC)))


def layer_norm(model: Model) -> nn.LayerNorm:
    return nn.LayerNorm(model.n_embd, eps=model.layer_norm_eps, bias=model.bias)
