"""Causal attention: the one place that chooses a kernel."""

import torch.nn.functional as F
from torch import Tensor


def attend(q_BHTD: Tensor, k_BHTD: Tensor, v_BHTD: Tensor, scale: float) -> Tensor:
    """softmax(scale q k^T) v over the keys up to each query; query and key lengths are equal."""
    assert q_BHTD.shape[-2] == k_BHTD.shape[-2]  # is_causal aligns top-left: wrong for a cache
    return F.scaled_dot_product_attention(q_BHTD, k_BHTD, v_BHTD, is_causal=True, scale=scale)
