"""Decoders of one structure as one program: the unchanged decoder, mapped over a run axis.

Shapes: R runs, B batch, T context, V vocabulary; every parameter has a leading R. Nothing crosses
runs, so that one which is not finite cannot touch its neighbours.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.overrides import TorchFunctionMode

from redline.model.taps import Tap

Tensors = Mapping[str, Tensor]


class FoldRuns(TorchFunctionMode):
    """Inside a map over runs, attention takes the run axis into its batch.

    `F.scaled_dot_product_attention` has no batching rule on the CPU and would fall back to a loop
    with a warning. A mode of torch redirects the call in any module, so that a decoder of somebody
    else is mapped as ours is, and keeps the fused kernel that the device has.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        options = dict(kwargs or {})
        if func is not F.scaled_dot_product_attention:
            return func(*args, **options)
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale")
        given = dict(zip(names, args, strict=False)) | options
        if given.get("attn_mask") is not None or given.get("dropout_p") or given.get("enable_gqa"):
            raise NotImplementedError("stacked attention knows is_causal and scale alone")
        query, key, value = (given[name] for name in names[:3])
        return _Attend.apply(query, key, value, given.get("is_causal", False), given.get("scale"))


class _Attend(torch.autograd.Function):
    """Attention with a rule for the map over runs; outside of one it is plain attention.

    Under the map the rule runs one level further out, on ordinary tensors, where the gradient of
    the fused kernel is taken as ever: the function needs none of its own.
    """

    @staticmethod
    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]  # torch's newer form
        q: Tensor, k: Tensor, v: Tensor, is_causal: bool, scale: float | None
    ) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal, scale=scale)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

    @staticmethod
    def vmap(  # pyright: ignore[reportIncompatibleMethodOverride]
        info: Any,
        in_dims: tuple[int | None, ...],
        q: Tensor,
        k: Tensor,
        v: Tensor,
        is_causal: bool,
        scale: float | None,
    ) -> tuple[Tensor, int]:
        q, k, v = (
            _with_runs(part, dim, info.batch_size).flatten(0, 1)
            for part, dim in zip((q, k, v), in_dims, strict=False)
        )
        out = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal, scale=scale)
        return out.unflatten(0, (info.batch_size, -1)), 0


def _with_runs(part: Tensor, dim: int | None, n_run: int) -> Tensor:
    return part.expand(n_run, *part.shape) if dim is None else part.movedim(dim, 0)


class Stacked:
    """Modules of one structure, called as one; `parameters` are leaves with a leading run axis."""

    def __init__(self, modules: Sequence[nn.Module], make: Callable[[], nn.Module]):
        """`make` builds one more of the structure; its weights are never filled.

        Raises:
            ValueError: the modules differ in the names or shapes of what they hold.
        """
        # torch stacks what the first module has: a gain that others have besides would be lost.
        kinds = [_structure(module) for module in modules]
        if any(kind != kinds[0] for kind in kinds):
            raise ValueError("modules of different structure share no stack")
        parameters, buffers = stack_module_state(list(modules))
        self.parameters: dict[str, Tensor] = dict(parameters)
        self.buffers: dict[str, Tensor] = dict(buffers)
        # On "meta" from the start: moving a built one there would untie its embeddings.
        with torch.device("meta"):
            self._base = make()

    def logits(self, ids: Tensor) -> Tensor:
        """(R, B, T) tokens, or (B, T) that all runs share -> (R, B, T, V)."""
        mapped = vmap(self._call, in_dims=(0, 0, 0 if ids.ndim == 3 else None))
        with FoldRuns():
            return mapped(self.parameters, self.buffers, ids)

    def solo(self, run: int) -> Callable[..., Tensor]:
        """One run as a decoder of its own, for probes: tokens (B, T) and a tap -> logits."""
        parameters = {name: part[run].detach() for name, part in self.parameters.items()}
        buffers = {name: part[run] for name, part in self.buffers.items()}

        def call(ids_BT: Tensor, tap: Tap | None = None) -> Tensor:
            return self._call(parameters, buffers, ids_BT, tap)

        return call

    def _call(
        self, parameters: Tensors, buffers: Tensors, ids_BT: Tensor, tap: Tap | None = None
    ) -> Tensor:
        state = (dict(parameters), dict(buffers))
        return functional_call(self._base, state, (ids_BT, tap), strict=True)


def _structure(module: nn.Module) -> dict[str, tuple[int, ...]]:
    held = [*module.named_parameters(), *module.named_buffers()]
    return {name: tuple(tensor.shape) for name, tensor in held}
