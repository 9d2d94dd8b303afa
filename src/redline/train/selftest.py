"""What a device must compute rightly before it may train: the same numbers as the CPU.

Devices have answered causal attention with a mask that leaks, turned NaN into zeros, and trained
whole runs on silently wrong kernels (pytorch#195910, #177116, #188147). Each check is a function of
a `Machine`, so that tests can hand it one that fails.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from redline.config.trial import Model, QKNorm, Train
from redline.files import UserError, to_json
from redline.model.init import build
from redline.train.device import use_one_thread
from redline.train.loop import cross_entropy
from redline.train.optim import Optimiser

VOCAB, BATCH, LR = 64, 4, 1e-3
"""At a low LR two devices stay together; at a high one training is chaotic."""
N_STEP = 20
FORWARD_LIMIT, STEP_LIMIT, TRAINING_LIMIT = 1e-4, 1e-5, 1e-3
BF16_LIMIT = 0.02


class Machine(Protocol):
    """What a check asks of a device; every tensor goes in and comes out on the CPU."""

    def logits(self, decoder: nn.Module, ids_BT: Tensor) -> Tensor:
        """(B, T, V) in float32."""
        ...

    def train(self, decoder: nn.Module, rows_NBT: Tensor) -> tuple[list[float], Tensor]:
        """The losses of a step for each of the N batches of rows, and the flat weights after."""
        ...

    def product(self, a: Tensor, b: Tensor, dtype: torch.dtype) -> Tensor:
        """a @ b in `dtype`."""
        ...


@dataclass(frozen=True)
class Device:
    """A device of torch: `cpu`, `cuda`, `mps`.

    Raises:
        UserError: this machine, or this build of torch, has none.
    """

    kind: str

    def __post_init__(self) -> None:
        backends = {"cpu": True, "cuda": torch.cuda.is_available()}
        backends["mps"] = torch.backends.mps.is_available()
        if not backends.get(self.kind):
            there = ", ".join(name for name, is_there in backends.items() if is_there)
            raise UserError(f"device {self.kind}: this machine or this torch has only {there}")

    def logits(self, decoder: nn.Module, ids_BT: Tensor) -> Tensor:
        """See `Machine`."""
        with torch.no_grad():
            return decoder.to(self.kind)(ids_BT.to(self.kind)).float().cpu()

    def train(self, decoder: nn.Module, rows_NBT: Tensor) -> tuple[list[float], Tensor]:
        """See `Machine`."""
        decoder = decoder.to(self.kind)
        optimiser = Optimiser(decoder, _settings())
        losses: list[float] = []
        for rows_BT in rows_NBT.to(self.kind):
            loss = cross_entropy(decoder(rows_BT[:, :-1]), rows_BT[:, 1:])
            losses.append(float(loss.detach()))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step(LR, optimiser.gradient_norm())
        return losses, optimiser.weights.detach().float().cpu().clone()

    def product(self, a: Tensor, b: Tensor, dtype: torch.dtype) -> Tensor:
        """See `Machine`."""
        return (a.to(self.kind, dtype) @ b.to(self.kind, dtype)).float().cpu()


CPU = Device("cpu")


@dataclass(frozen=True)
class Check:
    """One question to a device; `is_required` ones must hold before it may train."""

    name: str
    holds: bool
    detail: str
    is_required: bool = True


def check(machine: Machine) -> list[Check]:
    """Every check of a device, the required ones first."""
    checks = (
        _causal,
        _keeps_nan,
        _forward,
        _one_step,
        _training,
        _repeats,
        _bf16,
    )
    return [_asked(ask, machine) for ask in checks]


def failed(checks: list[Check]) -> list[str]:
    """The required checks that do not hold, each with what was found."""
    return [f"{one.name} ({one.detail})" for one in checks if one.is_required and not one.holds]


def _asked(ask: Callable[[Machine], Check], machine: Machine) -> Check:
    try:
        return ask(machine)
    except (RuntimeError, NotImplementedError, TypeError) as error:
        # An operation that the device lacks is an answer, not a crash of the doctor.
        name = ask.__name__.strip("_").replace("_", " ")
        return Check(name, holds=False, detail=str(error).split("\n")[0], is_required=ask != _bf16)


def _causal(machine: Machine) -> Check:
    """An output must not move by a bit when a later input changes."""
    ids = _rows(1)[0, :1, :-1]
    later = torch.cat((ids[:, :8], VOCAB - 1 - ids[:, 8:]), dim=1)
    before, after = (machine.logits(_decoder(), given) for given in (ids, later))
    leak = float((before[:, :8] - after[:, :8]).abs().max())
    moves = not torch.equal(before[:, 8:], after[:, 8:])
    detail = f"a later token moves earlier logits by {leak:g}" if moves else "no logit moves at all"
    return Check("causal attention", leak == 0 and moves, detail)


def _keeps_nan(machine: Machine) -> Check:
    """A NaN must reach every later output: swallowed, a dead run looks alive.

    It may reach earlier ones, where a weight of 0 multiplies it, as on the CPU.
    """
    decoder = _decoder()
    with torch.no_grad():
        decoder.get_parameter("position.weight")[8] = float("nan")
    lost = machine.logits(decoder, _rows(1)[0, :, :-1]).isnan().all(dim=-1)
    n_kept = int((~lost[:, 8:]).sum())
    return Check("NaN passes through attention", not n_kept, f"{n_kept} later outputs stay finite")


def _forward(machine: Machine) -> Check:
    ids = _rows(1)[0, :, :-1]
    apart = float((machine.logits(_decoder(), ids) - CPU.logits(_decoder(), ids)).abs().max())
    return _close("logits as on the CPU", apart, FORWARD_LIMIT)


def _one_step(machine: Machine) -> Check:
    (_, here), (_, there) = (m.train(_decoder(), _rows(1)) for m in (machine, CPU))
    return _close("one optimiser step as on the CPU", float((here - there).abs().max()), STEP_LIMIT)


def _training(machine: Machine) -> Check:
    (here, _), (there, _) = (m.train(_decoder(), _rows(N_STEP)) for m in (machine, CPU))
    apart = max(abs(a - b) for a, b in zip(here, there, strict=True))
    return _close(f"{N_STEP} steps of training as on the CPU", apart, TRAINING_LIMIT)


def _repeats(machine: Machine) -> Check:
    (_, once), (_, again) = (machine.train(_decoder(), _rows(N_STEP)) for _ in range(2))
    apart = float((once - again).abs().max())
    return Check("training repeats bit for bit", apart == 0, f"weights differ by {apart:g}")


def _bf16(machine: Machine) -> Check:
    a, b = torch.randn(2, 64, 64, generator=torch.Generator().manual_seed(0))
    exact = a @ b
    apart = float((machine.product(a, b, torch.bfloat16) - exact).abs().max() / exact.abs().max())
    holds = apart <= BF16_LIMIT
    return Check("bf16 products", holds, f"off by {apart:.2g} of the largest", is_required=False)


def _close(name: str, apart: float, limit: float) -> Check:
    # NaN is not below any limit, so that it fails as it should.
    return Check(name, apart <= limit, f"differ by {apart:.2g}, limit {limit:g}")


def _decoder() -> nn.Module:
    """QK-norm on and a tied head: what training touches on every path."""
    model = Model(
        n_layer=2,
        n_head=2,
        n_embd=32,
        block_size=16,
        bias=False,
        pos="learned",
        tied_head=True,
        layer_norm_eps=1e-5,
        init_std=0.02,
        qk_init="init_std",
        qk_norm=QKNorm(),
    )
    return build(model, VOCAB, seed=0)


def _rows(n_step: int) -> Tensor:
    """(n_step, B, T + 1) tokens with something to learn: each is the one before plus a few."""
    random = torch.Generator().manual_seed(1)
    start = torch.randint(VOCAB, (n_step, BATCH, 1), generator=random)
    return (start + 3 * torch.arange(17)) % VOCAB


def _settings() -> Train:
    return Train(
        batch_size=BATCH,
        n_step=N_STEP,
        peak_lr=LR,
        warmup_fraction=0,
        lr_floor=0,
        lr_floor_mode="absolute",
        weight_decay=0.1,
        weight_decay_mode="coupled",
        beta1=0.9,
        beta2=0.95,
        adam_eps=1e-8,
        grad_clip=1.0,
        z_loss=0,
    )


def main() -> None:
    """Print the required checks that a device fails, as JSON."""
    use_one_thread()
    try:
        found = failed(check(Device(sys.argv[1])))
    except UserError as error:
        found = [str(error)]
    print(to_json({"failed": found}))


if __name__ == "__main__":
    main()
