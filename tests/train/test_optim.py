"""AdamW on flat memory: torch's own numbers, decay groups, independent decay, resuming."""

import pytest
import torch

from redline.model.init import build
from redline.train.optim import Optimiser, decay

VOCAB = 64


def optimised(make_trial, **changes):
    trial = make_trial(**changes)
    module = build(trial.model, VOCAB, 0)
    return module, Optimiser(module, trial.train)


def backward(module, seed=0):
    ids = torch.randint(VOCAB, (4, 17), generator=torch.Generator().manual_seed(seed))
    logits = module(ids[:, :-1])
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).backward()


@pytest.mark.parametrize("arm", [None, {}, {"kind": "l2"}], ids=["off", "on", "l2"])
def test_it_has_the_bits_of_torch_adamw_and_clip(make_trial, arm):
    ours, optimiser = optimised(make_trial, model__qk_norm=arm)
    theirs = build(make_trial(model__qk_norm=arm).model, VOCAB, 0)
    groups = [
        {"params": [p for p in theirs.parameters() if p.ndim >= 2], "weight_decay": 0.1},
        {"params": [p for p in theirs.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    adamw = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95), eps=1e-8)
    for step in range(5):
        optimiser.zero_grad()
        adamw.zero_grad()
        backward(ours, step)
        backward(theirs, step)
        norm = optimiser.gradient_norm()
        assert torch.equal(norm, torch.nn.utils.clip_grad_norm_(theirs.parameters(), 1.0))
        optimiser.step(1e-2, norm)
        adamw.step()
        for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
            assert torch.equal(a, b)


@pytest.mark.parametrize("kind", ["rmsnorm", "layernorm", "rmsnorm_full", "l2"])
def test_case_t10_weight_decay_never_touches_a_gain(make_trial, kind):
    """transformers#35927: a home-made norm class missed the exclusion list and its gain decayed."""
    norm = {"kind": kind}
    module, optimiser = optimised(make_trial, model__qk_norm=norm, train__weight_decay=10.0)
    before = {name: p.detach().clone() for name, p in module.named_parameters()}
    optimiser.step(0.01, optimiser.gradient_norm())
    assert sorted(optimiser.decayed + optimiser.undecayed) == sorted(before)
    for name, parameter in module.named_parameters():
        kept = torch.equal(parameter, before[name])
        assert kept == (parameter.ndim < 2), name
    assert any("gain" in name or "logit_scale" in name for name in optimiser.undecayed)


def test_independent_decay_does_not_scale_with_the_peak(make_trial):
    """2309.14322: one step at the peak shrinks a weight by lambda, whatever the peak is."""
    shrunk = []
    for peak in (1e-3, 1e-1):
        changes = {"weight_decay": 1e-2, "weight_decay_mode": "independent", "peak_lr": peak}
        _, optimiser = optimised(make_trial, **{f"train__{k}": v for k, v in changes.items()})
        before = optimiser.weights.clone()
        optimiser.step(peak, optimiser.gradient_norm())
        weight = optimiser.slices["blocks.0.mlp.fc.weight"]
        shrunk.append((optimiser.weights[weight] / before[weight]).mean().item())
    assert shrunk == pytest.approx([0.99, 0.99], abs=1e-6)
    coupled = make_trial(train__weight_decay=1e-2, train__peak_lr=1e-1).train
    assert decay(coupled) == 1e-2


def test_the_recorded_norm_is_the_one_before_clipping(make_trial):
    module, optimiser = optimised(make_trial, train__grad_clip=1e-3)
    backward(module)
    norm = optimiser.gradient_norm().item()
    update_free = [p.grad.clone() for p in module.parameters()]
    assert norm == pytest.approx(
        torch.cat([g.flatten() for g in update_free]).norm().item(), rel=1e-6
    )
    optimiser.step(1e-3, torch.tensor(norm))
    assert optimiser.gradient_norm().item() == pytest.approx(1e-3, rel=1e-3)


def test_update_and_parameter_norms_are_those_of_the_weights(make_trial):
    module, optimiser = optimised(make_trial)
    before = torch.cat([p.detach().flatten() for p in module.parameters()])
    backward(module)
    norms = optimiser.step(1e-2, optimiser.gradient_norm())
    after = torch.cat([p.detach().flatten() for p in module.parameters()])
    assert norms.parameter == pytest.approx(after.norm().item(), rel=1e-6)
    assert norms.update == pytest.approx((after - before).norm().item(), rel=1e-5)


def test_case_s06_a_checkpoint_without_moments_is_refused_by_name(make_trial):
    """llama2.c#148: a trimmed file was still offered as resumable and failed with a KeyError."""
    module, optimiser = optimised(make_trial)
    backward(module)
    optimiser.step(1e-2, optimiser.gradient_norm())
    tensors = {k: v for k, v in optimiser.tensors().items() if not k.startswith("exp_avg_sq")}
    with pytest.raises(ValueError, match=r"not resumable.*exp_avg_sq"):
        optimiser.restore(tensors, 1)


def test_case_t21_small_updates_reach_the_weights(make_trial):
    """pytorch/ao#1124: bf16 weights swallowed updates, and a low LR 'did not learn'."""
    module, optimiser = optimised(make_trial)
    assert optimiser.weights.dtype == torch.float32
    before = optimiser.weights.clone()
    for step in range(20):
        optimiser.zero_grad()
        backward(module, step)
        optimiser.step(1e-4, optimiser.gradient_norm())
    decayed = torch.cat(
        [optimiser.weights[optimiser.slices[n]].flatten() for n in optimiser.decayed]
    )
    start = torch.cat([before[optimiser.slices[n]].flatten() for n in optimiser.decayed])
    assert (decayed != start).float().mean() > 0.99


def test_case_t06_s04_moments_come_back_with_their_bits_and_names(make_trial):
    """nanotron#245, nanoGPT#325: state was recast on load, and prefixed names were passed over."""
    module, optimiser = optimised(make_trial)
    backward(module)
    optimiser.step(1e-2, optimiser.gradient_norm())
    kept = {name: tensor.clone() for name, tensor in optimiser.tensors().items()}
    assert {tensor.dtype for tensor in kept.values()} == {torch.float32}
    other, again = optimised(make_trial, seed=1)
    again.restore(kept, 1)
    assert all(torch.equal(kept[name], tensor) for name, tensor in again.tensors().items())
    assert all(
        torch.equal(a, b) for a, b in zip(module.parameters(), other.parameters(), strict=True)
    )
    prefixed = {name.replace("/", "/_orig_mod."): tensor for name, tensor in kept.items()}
    with pytest.raises(ValueError, match="not resumable"):
        again.restore(prefixed, 1)


def test_case_c06_the_rate_of_an_update_is_never_taken_from_saved_state(make_trial):
    """pytorch/examples#816: a loaded optimiser brought the old learning rate back."""
    module, optimiser = optimised(make_trial)
    backward(module)
    optimiser.step(1e-2, optimiser.gradient_norm())
    _, again = optimised(make_trial, train__peak_lr=5e-4)
    again.restore(optimiser.tensors(), 1)
    before = again.weights.clone()
    again.step(0.0, again.gradient_norm())
    assert torch.equal(again.weights, before)
