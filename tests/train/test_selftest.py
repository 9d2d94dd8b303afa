"""A device that computes something else must be found out, by the check that is there for it."""

from dataclasses import dataclass, field

import pytest
import torch

from redline.files import UserError
from redline.train.selftest import CPU, Check, Device, check, failed


class Faithful:
    """The CPU under another name; each fake device below breaks one thing of it."""

    def logits(self, decoder, ids):
        return CPU.logits(decoder, ids)

    def train(self, decoder, rows):
        return CPU.train(decoder, rows)

    def product(self, a, b, dtype):
        return CPU.product(a, b, dtype)


class Leaks(Faithful):
    """Every position sees the mean of all."""

    def logits(self, decoder, ids):
        found = CPU.logits(decoder, ids)
        return found + 1e-6 * found.mean(dim=1, keepdim=True)


class Deaf(Faithful):
    """Answers the same to whatever it is asked."""

    def logits(self, decoder, ids):
        return CPU.logits(decoder, torch.zeros_like(ids))


class SwallowsNaN(Faithful):
    def logits(self, decoder, ids):
        return CPU.logits(decoder, ids).nan_to_num()


class RoundsLogits(Faithful):
    """A matrix product in a shorter format than was asked for."""

    def logits(self, decoder, ids):
        return CPU.logits(decoder, ids).half().float() * 1.001


class StepsTooFar(Faithful):
    def train(self, decoder, rows):
        losses, weights = CPU.train(decoder, rows)
        return losses, weights + 1e-4


class Drifts(Faithful):
    """Right at first; wrong once twenty steps have passed."""

    def train(self, decoder, rows):
        losses, weights = CPU.train(decoder, rows)
        return [loss + 5e-4 * n for n, loss in enumerate(losses)], weights


class LosesItself(Faithful):
    """Ends in NaN, which is below no limit and above none."""

    def train(self, decoder, rows):
        losses, weights = CPU.train(decoder, rows)
        return [float("nan")] * len(losses), weights * float("nan")


@dataclass
class Wavers(Faithful):
    """Sums in another order each time."""

    calls: list[int] = field(default_factory=list)

    def train(self, decoder, rows):
        losses, weights = CPU.train(decoder, rows)
        self.calls.append(1)
        return losses, weights + 1e-9 * len(self.calls)


class LacksKernel(Faithful):
    def train(self, decoder, rows):
        raise NotImplementedError("aten::something is not implemented for this device\nand more")


class NoBf16(Faithful):
    def product(self, a, b, dtype):
        raise RuntimeError("bf16 is not supported")


def test_the_cpu_holds():
    checks = check(CPU)
    assert all(one.holds for one in checks), checks
    assert failed(checks) == []


@pytest.mark.parametrize(
    ("machine", "found_by"),
    [
        (Leaks(), "causal attention"),
        (Deaf(), "causal attention"),
        (SwallowsNaN(), "NaN passes through attention"),
        (RoundsLogits(), "logits as on the CPU"),
        (StepsTooFar(), "one optimiser step as on the CPU"),
        (Drifts(), "20 steps of training as on the CPU"),
        (LosesItself(), "20 steps of training as on the CPU"),
        (Wavers(), "training repeats bit for bit"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Faithful) else "",
)
def test_a_device_that_is_wrong_is_found_out(machine, found_by):
    checks = check(machine)
    assert found_by in [one.name for one in checks if not one.holds]
    assert any(text.startswith(found_by) for text in failed(checks))


def test_a_kernel_that_is_missing_fails_its_checks_and_names_itself():
    checks = check(LacksKernel())
    lost = [one for one in checks if not one.holds]
    assert len(lost) == 3
    assert {one.detail for one in lost} == {"aten::something is not implemented for this device"}
    assert len(failed(checks)) == 3


def test_a_device_without_bf16_may_train():
    checks = check(NoBf16())
    assert [one.name for one in checks if not one.holds] == ["bf16"]
    assert failed(checks) == []


def test_a_device_that_is_not_there_is_one_sentence():
    missing = "cuda" if not torch.cuda.is_available() else "mps"
    with pytest.raises(UserError, match=f"device {missing}: .* has only cpu"):
        Device(missing)


def test_what_is_not_required_stops_nothing():
    assert failed([Check("a", holds=False, detail="", is_required=False)]) == []
