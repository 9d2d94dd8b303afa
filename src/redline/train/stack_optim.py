"""AdamW on a stack of runs: one matrix of weights, a row a run, each with its own LR and decay.

The arithmetic is that of `optim`, with vectors over runs where it has numbers. Shapes: R runs,
P parameters of one run.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from redline.config.trial import Train
from redline.train.optim import decay

MOMENTS = ("exp_avg", "exp_avg_sq")


class StackOptimiser:
    """AdamW (1711.05101), decay on tensors of two or more dimensions only, clipping per run."""

    def __init__(self, parameters: Mapping[str, Tensor], trains: Sequence[Train]):
        """`parameters` are leaves (R, ...); they become views of one matrix."""
        self.parameters = dict(parameters)
        self.trains = list(trains)
        self.slices: dict[str, slice] = {}
        start = 0
        for name, parameter in self.parameters.items():
            self.slices[name] = slice(start, start + parameter[0].numel())
            start = self.slices[name].stop
        flat = torch.cat([p.detach().flatten(1) for p in self.parameters.values()], dim=1)
        # A run's own tensor has one dimension less than its stack.
        decays = [
            torch.full((where.stop - where.start,), float(self.parameters[name].ndim > 2))
            for name, where in self.slices.items()
        ]
        self.is_decayed_P = torch.cat(decays).to(flat)
        self.state = {"weight": flat} | {name: torch.zeros_like(flat) for name in MOMENTS}
        self.n_step = 0
        self._adopt()

    def _adopt(self) -> None:
        """Make every parameter a leaf that looks into the matrix of weights."""
        for name, where in self.slices.items():
            shape = self.parameters[name].shape[1:]
            view = self.state["weight"][:, where].detach().unflatten(1, shape)
            self.parameters[name] = view.requires_grad_()

    def gradients(self, loss: Tensor) -> Tensor:
        """(R, P) gradients of a loss that is a sum over runs, taken outside of the map."""
        each = torch.autograd.grad(loss, list(self.parameters.values()))
        return torch.cat([part.flatten(1) for part in each], dim=1)

    @torch.no_grad()
    def step(self, lr_R: Sequence[float], gradients_RP: Tensor, norm_R: Tensor) -> Tensor:
        """Clip each run by its own norm, update it at its own LR; the norms of the updates."""
        self.n_step += 1
        first = self.trains[0]
        weights, mean, square = (self.state[name] for name in ("weight", *MOMENTS))
        clip_R = self._column([train.grad_clip for train in self.trains])
        gradients_RP = gradients_RP * (clip_R / (norm_R[:, None] + 1e-6)).clamp(max=1.0)
        shrink_R = self._column(
            [-rate * decay(train) for rate, train in zip(lr_R, self.trains, strict=True)]
        )
        before = weights.clone()
        weights.mul_(1 + shrink_R * self.is_decayed_P)
        mean.lerp_(gradients_RP, 1 - first.beta1)
        square.mul_(first.beta2).addcmul_(gradients_RP, gradients_RP, value=1 - first.beta2)
        size_R = self._column([-rate / (1 - first.beta1**self.n_step) for rate in lr_R])
        root = (1 - first.beta2**self.n_step) ** 0.5
        denominator = (square.sqrt() / root).add_(first.adam_eps)
        weights.add_(size_R * mean / denominator)
        return torch.linalg.vector_norm(before.sub_(weights), dim=1)

    def _column(self, values: Sequence[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float64).to(self.state["weight"])[:, None]

    def keep(self, runs: Sequence[int]) -> None:
        """Leave only these runs, in this order."""
        index = torch.tensor(runs, device=self.state["weight"].device)
        self.state = {name: matrix[index] for name, matrix in self.state.items()}
        self.trains = [self.trains[run] for run in runs]
        self._adopt()

    def tensors(self, run: int) -> dict[str, Tensor]:
        """What the checkpoint of one run holds, by the names of `optim.Optimiser.tensors`."""
        return {
            f"{kind}/{name}": matrix[run, where]
            for kind, matrix in self.state.items()
            for name, where in self.slices.items()
        }

    def restore(self, run: int, tensors: Mapping[str, Tensor]) -> None:
        """Put back one run; every name must be there, none else."""
        if set(tensors) != set(self.tensors(run)):
            raise ValueError("not resumable: the checkpoint holds other tensors")
        for name, view in self.tensors(run).items():
            view.copy_(tensors[name])
