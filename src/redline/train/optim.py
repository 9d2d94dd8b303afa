"""AdamW on flat memory: all parameters are views of one vector, all gradients of another.

One vector makes the update, its norm and the finiteness test a few calls instead of a few per
tensor; at these model sizes call overhead is what an optimiser step costs. The arithmetic stays
that of torch's plain AdamW and gradient clip, rounding included: near the boundary a last bit grows
to 0.05 nat within 60 steps, so a fused kernel would be another observation (docs/lab-notes.md).
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from redline.config.trial import Train


@dataclass(frozen=True)
class Norms:
    """L2 norms over all parameters after an update, and of the update itself."""

    parameter: float
    update: float


class Optimiser:
    """AdamW (1711.05101) with decay on tensors of two or more dimensions only.

    Norm gains are never decayed: those of QK-norm exist in one arm alone, and decaying them would
    bias the comparison.
    """

    def __init__(self, module: nn.Module, train: Train):
        named = list(module.named_parameters())
        self.decayed = [name for name, p in named if p.ndim >= 2]
        self.undecayed = [name for name, p in named if p.ndim < 2]
        parameters = dict(named)
        self.slices = _slices([(n, parameters[n]) for n in self.decayed + self.undecayed])
        first = parameters[self.decayed[0]]
        n_decayed = sum(parameters[name].numel() for name in self.decayed)
        n_param = sum(p.numel() for p in parameters.values())
        self.weights = torch.empty(n_param, dtype=first.dtype, device=first.device)
        self.gradients = torch.zeros_like(self.weights)
        self._before = torch.empty_like(self.weights)
        for name, parameter in named:
            self._adopt(parameter, self.slices[name])
        self._views = [self.gradients[self.slices[name]] for name, _ in named]
        self.grad_clip = train.grad_clip
        self.adamw = torch.optim.AdamW(
            [
                {"params": [self._leaf(slice(0, n_decayed))], "weight_decay": decay(train)},
                {"params": [self._leaf(slice(n_decayed, n_param))], "weight_decay": 0.0},
            ],
            lr=train.peak_lr,
            betas=(train.beta1, train.beta2),
            eps=train.adam_eps,
            foreach=False,
        )

    def _adopt(self, parameter: nn.Parameter, where: slice) -> None:
        """Move a parameter and its gradient into the flat vectors."""
        view = self.weights[where].view_as(parameter)
        view.copy_(parameter.detach())
        parameter.data = view
        parameter.grad = self.gradients[where].view_as(parameter)

    def _leaf(self, where: slice) -> nn.Parameter:
        leaf = nn.Parameter(self.weights[where])
        leaf.grad = self.gradients[where]
        return leaf

    def zero_grad(self) -> None:
        self.gradients.zero_()

    def gradient_norm(self) -> Tensor:
        """Global norm of the gradients as they are, a scalar tensor."""
        return get_total_norm(self._views)

    def step(self, lr: float, gradient_norm: Tensor) -> Norms:
        """Clip by the global norm, then one AdamW update at `lr`."""
        self.gradients.mul_((self.grad_clip / (gradient_norm + 1e-6)).clamp(max=1.0))
        for group in self.adamw.param_groups:
            group["lr"] = lr
        self._before.copy_(self.weights)
        self.adamw.step()
        update = torch.linalg.vector_norm(self._before.sub_(self.weights))
        return Norms(float(torch.linalg.vector_norm(self.weights)), float(update))

    def tensors(self) -> dict[str, Tensor]:
        """Weights and moments by parameter name: everything that a resumed run needs."""
        moments = [self.adamw.state[group["params"][0]] for group in self.adamw.param_groups]
        flat = {"weight": self.weights}
        for moment in ("exp_avg", "exp_avg_sq"):
            flat[moment] = torch.cat([state[moment] for state in moments])
        return {
            f"{kind}/{name}": vector[where]
            for kind, vector in flat.items()
            for name, where in self.slices.items()
        }

    def restore(self, tensors: dict[str, Tensor], step: int) -> None:
        """Continue after update `step` from `tensors()`; every name must be there, none else."""
        flat = {"weight": self.weights}
        flat |= {kind: torch.empty_like(self.weights) for kind in ("exp_avg", "exp_avg_sq")}
        wanted = {f"{kind}/{name}" for kind in flat for name in self.slices}
        if wanted != set(tensors):
            raise ValueError(
                f"not resumable: missing or unknown {sorted(wanted ^ set(tensors))[:3]}"
            )
        for kind, vector in flat.items():
            for name, where in self.slices.items():
                vector[where].copy_(tensors[f"{kind}/{name}"])
        start = 0
        for group in self.adamw.param_groups:
            leaf = group["params"][0]
            end = start + leaf.numel()
            self.adamw.state[leaf] = {
                "step": torch.tensor(float(step)),
                "exp_avg": flat["exp_avg"][start:end].clone(),
                "exp_avg_sq": flat["exp_avg_sq"][start:end].clone(),
            }
            start = end


def decay(train: Train) -> float:
    """The coefficient for a coupled AdamW, which multiplies it by the learning rate.

    `independent` decay does not scale with the peak (2309.14322): lambda / peak_lr.
    """
    if train.weight_decay_mode == "independent":
        return train.weight_decay / train.peak_lr
    return train.weight_decay


def _slices(named: list[tuple[str, nn.Parameter]]) -> dict[str, slice]:
    slices: dict[str, slice] = {}
    start = 0
    for name, parameter in named:
        slices[name] = slice(start, start + parameter.numel())
        start += parameter.numel()
    return slices
