"""What the decoder shows to a listener on the way. Listening changes nothing."""

from typing import Protocol

from torch import Tensor


class Tap(Protocol):
    """Receives activations of one forward pass; layers count from 0."""

    def attention(self, layer: int, q_BHTD: Tensor, k_BHTD: Tensor, scale: float) -> None:
        """Queries and keys as they meet: after norm, gain and RoPE; logits are scale * q.k."""
        ...

    def residual(self, layer: int, x_BTC: Tensor) -> None:
        """The residual stream entering block `layer`; `n_layer` is the input of the last norm."""
        ...
