import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import vmap

from redline.config.trial import QKNorm
from redline.model.decoder import Decoder
from redline.model.init import build
from redline.model.stacked import FoldRuns, Stacked
from redline.train.loop import cross_entropy

VOCAB, N_RUN = 64, 4
VARIANTS = {
    "off": {},
    "on": {"model__qk_norm": QKNorm()},
    "frozen gain": {"model__qk_norm": QKNorm(gain="frozen")},
    "no gain": {"model__qk_norm": QKNorm(gain="none")},
    "layernorm": {"model__qk_norm": QKNorm(kind="layernorm")},
    "full width": {"model__qk_norm": QKNorm(kind="rmsnorm_full")},
    "l2": {"model__qk_norm": QKNorm(kind="l2")},
    "untied": {"model__tied_head": False},
    "rope": {"model__pos": "rope", "model__qk_norm": QKNorm(position="after_rope")},
    "biases": {"model__bias": True},
}


@pytest.fixture(params=VARIANTS.values(), ids=VARIANTS.keys())
def model(request, make_trial):
    return make_trial(**request.param).model


def stack_of(model, *, kind=torch.float32):
    decoders = [build(model, VOCAB, seed).to(kind) for seed in range(N_RUN)]
    return decoders, Stacked(decoders, lambda: Decoder(model, VOCAB))


def tokens(*, n_time=17):
    return torch.randint(VOCAB, (N_RUN, 3, n_time), generator=torch.Generator().manual_seed(0))


def test_stacked_logits_are_those_of_each_decoder_alone(model):
    """Warnings are errors: attention that falls back to a loop over runs would fail here."""
    decoders, stacked = stack_of(model)
    ids = tokens()[..., :-1]
    together = stacked.logits(ids)
    for run, decoder in enumerate(decoders):
        assert torch.allclose(together[run], decoder(ids[run]), rtol=0, atol=1e-6)


def test_a_gradient_taken_outside_of_the_map_is_that_of_each_alone(make_trial):
    decoders, stacked = stack_of(make_trial().model, kind=torch.float64)
    ids = tokens()
    losses = vmap(cross_entropy)(stacked.logits(ids[..., :-1]), ids[..., 1:])
    names = list(stacked.parameters)
    gradients = torch.autograd.grad(losses.sum(), [stacked.parameters[name] for name in names])
    for run, decoder in enumerate(decoders):
        alone = cross_entropy(decoder(ids[run, :, :-1]), ids[run, :, 1:])
        alone.backward()
        assert float(losses[run].detach()) == pytest.approx(float(alone.detach()), abs=1e-12)
        for name, gradient in zip(names, gradients, strict=True):
            own = decoder.get_parameter(name).grad
            assert torch.allclose(gradient[run], own, rtol=0, atol=1e-12), name


def test_tokens_that_all_runs_share_are_not_copied_for_them(make_trial):
    decoders, stacked = stack_of(make_trial().model)
    ids = tokens()[0, :, :-1]
    shared = stacked.logits(ids)
    assert shared.shape == (N_RUN, 3, 16, VOCAB)
    for run, decoder in enumerate(decoders):
        assert torch.allclose(shared[run], decoder(ids), rtol=0, atol=1e-6)


def test_one_run_alone_has_its_own_bits(model):
    decoders, stacked = stack_of(model)
    ids = tokens()[0, :, :-1]
    for run, decoder in enumerate(decoders):
        assert torch.equal(stacked.solo(run)(ids), decoder(ids))


def test_arms_never_share_a_stack(make_trial):
    """torch would stack what the first one has, and lose the gains of the other without a word."""
    arms = [make_trial().model, make_trial(model__qk_norm=QKNorm()).model]
    for pair in (arms, arms[::-1]):
        decoders = [build(model, VOCAB, 0) for model in pair]
        with pytest.raises(ValueError, match="different structure"):
            Stacked(decoders, lambda first=pair[0]: Decoder(first, VOCAB))


class Foreign(nn.Module):
    """Somebody else's attention, which knows nothing of stacks."""

    def __init__(self, **options):
        super().__init__()
        self.token, self.options = nn.Embedding(VOCAB, 8), options

    def forward(self, ids, tap=None):
        x = self.token(ids)[:, None]
        return F.scaled_dot_product_attention(x, x, x, **self.options).squeeze(1)


def test_a_module_of_somebody_else_is_mapped_as_ours_is():
    modules = [Foreign(is_causal=True) for _ in range(3)]
    stacked = Stacked(modules, lambda: Foreign(is_causal=True))
    ids = tokens()[:3, :, :-1]
    together = stacked.logits(ids)
    for run, module in enumerate(modules):
        assert torch.allclose(together[run], module(ids[run]), rtol=0, atol=1e-6)
    together.sum().backward()
    assert stacked.parameters["token.weight"].grad.abs().sum() > 0


def test_attention_that_the_fold_does_not_know_is_refused_and_not_guessed():
    masked = {"attn_mask": torch.zeros(16, 16)}
    stacked = Stacked([Foreign(**masked)] * 2, lambda: Foreign(**masked))
    with pytest.raises(NotImplementedError, match="is_causal"):
        stacked.logits(tokens()[:2, :, :-1])


def test_without_the_fold_torch_falls_back_and_says_so():
    """What the tests above would meet if the redirection were lost."""
    x = torch.randn(2, 1, 1, 4, 8)
    attend = lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True)  # noqa: E731
    with pytest.warns(UserWarning, match="performance drop"):
        vmap(attend)(x)
    with FoldRuns():
        vmap(attend)(x)
