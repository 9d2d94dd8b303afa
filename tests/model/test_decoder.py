"""The decoder: causality, the toggle, what QK-norm normalises and in which order."""

import hashlib
import math

import pytest
import torch

from redline.config.trial import QKNorm
from redline.model.init import build, normal, weights_sha256

KINDS = ["rmsnorm", "layernorm", "rmsnorm_full", "l2"]
ARMS = [None, *(QKNorm(kind=kind) for kind in KINDS)]
VOCAB = 64


def decoder(make_trial, qk_norm=None, seed=0, **changes):
    norm = qk_norm.model_dump() if qk_norm else None
    return build(make_trial(model__qk_norm=norm, **changes).model, VOCAB, seed)


def tokens(n_row=2, n_time=16):
    return torch.randint(VOCAB, (n_row, n_time), generator=torch.Generator().manual_seed(0))


class Heard:
    """A tap that keeps what it hears."""

    def __init__(self):
        self.qk, self.x = [], []

    def attention(self, layer, q_BHTD, k_BHTD, scale):
        self.qk.append((q_BHTD.detach(), k_BHTD.detach(), scale))

    def residual(self, layer, x_BTC):
        self.x.append(x_BTC.detach())


def heard(module, ids=None):
    tap = Heard()
    with torch.no_grad():
        module(tokens() if ids is None else ids, tap=tap)
    return tap


@pytest.mark.parametrize("pos", ["learned", "rope"])
@pytest.mark.parametrize("norm", ARMS, ids=str)
def test_the_gradient_from_an_output_to_a_later_input_is_exactly_zero(make_trial, norm, pos):
    module = decoder(make_trial, norm, model__pos=pos)
    embedded = []
    module.token.register_forward_hook(lambda *parts: embedded.append(parts[2]))
    module.token.weight.requires_grad_(True)
    logits = module(tokens())
    embedded[0].retain_grad()
    logits[:, 7].square().sum().backward()
    assert (embedded[0].grad[:, 8:] == 0).all()
    assert (embedded[0].grad[:, 7] != 0).any()


@pytest.mark.parametrize("norm", ARMS[1:], ids=str)
def test_toggling_qk_norm_moves_no_shared_initial_weight(make_trial, norm):
    off = dict(decoder(make_trial).named_parameters())
    on = dict(decoder(make_trial, norm).named_parameters())
    assert set(off) < set(on)
    assert all(torch.equal(off[name], on[name]) for name in off)


@pytest.mark.parametrize("changes", [{"model__pos": "rope"}, {"model__tied_head": False}], ids=str)
def test_a_control_arm_moves_no_shared_initial_weight(make_trial, changes):
    base = dict(decoder(make_trial).named_parameters())
    control = dict(decoder(make_trial, **changes).named_parameters())
    shared = set(base) & set(control)
    assert len(shared) >= len(base) - 1
    assert all(torch.equal(base[name], control[name]) for name in shared)


def test_another_depth_keeps_every_weight_that_is_no_residual_projection(make_trial):
    shallow = dict(decoder(make_trial).named_parameters())
    deep = dict(decoder(make_trial, model__n_layer=4).named_parameters())
    for name, weight in shallow.items():
        factor = math.sqrt(2 / 4) if name.endswith("proj.weight") else 1.0
        torch.testing.assert_close(deep[name], weight * factor)


@pytest.mark.parametrize("n_layer", [1, 4, 16])
def test_case_t11_residual_projections_are_scaled_by_depth(make_trial, n_layer):
    """transformers#47458: depth scaling matched no name and was silently never applied."""
    module = decoder(make_trial, model__n_layer=n_layer, model__n_embd=128)
    for name, weight in module.named_parameters():
        if weight.ndim >= 2:
            expected = 0.02 / math.sqrt(2 * n_layer) if name.endswith("proj.weight") else 0.02
            assert weight.std().item() == pytest.approx(expected, rel=0.05), name


def test_matched_temperature_starts_queries_and_keys_at_one_over_root_width(make_trial):
    module = decoder(make_trial, model__qk_init="inverse_sqrt", model__n_embd=128)
    w_q, w_k, w_v = module.blocks[0].attention.qkv.weight.chunk(3)
    assert w_q.std().item() == pytest.approx(128**-0.5, rel=0.03)
    assert w_k.std().item() == pytest.approx(128**-0.5, rel=0.03)
    assert w_v.std().item() == pytest.approx(0.02, rel=0.03)


def test_case_t26_a_seed_changes_the_weights_and_the_same_seed_does_not(make_trial):
    """transformers#31818: a seed option was dropped in a refactor and nobody noticed."""
    hashes = [weights_sha256(decoder(make_trial, seed=seed)) for seed in (0, 0, 1)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_initial_weights_have_the_bits_that_stored_trials_started_from():
    """numpy promises no stream for ever: an id must not come to mean other initial weights."""
    draw = normal(0, "blocks.0.attention.q.weight", (4, 8))
    found = hashlib.sha256(draw.numpy().tobytes()).hexdigest()[:16]
    message = "initial weights moved: stored results cannot be repeated; pin numpy or raise SCHEMA"
    assert found == "9e4e7a608b2318a2", message


def test_tensors_of_one_seed_are_independent_of_each_other():
    a, b = normal(0, "a", (64, 64)), normal(0, "b", (64, 64))
    assert abs(torch.corrcoef(torch.stack((a.flatten(), b.flatten())))[0, 1]) < 0.05


@pytest.mark.parametrize("kind", ["rmsnorm", "rmsnorm_full", "layernorm"])
def test_case_t15_the_norm_acts_on_its_stated_axis(make_trial, kind):
    """gpt-neox#1367: 'QK-norm' stands for per-head and whole-width designs; the axis is stated."""
    module = decoder(make_trial, QKNorm(kind=kind), model__qk_init="inverse_sqrt")
    q_BHTD, k_BHTD, _ = heard(module).qk[0]
    for x in (q_BHTD, k_BHTD):
        axes = (1, 3) if kind == "rmsnorm_full" else (3,)
        rms = x.square().mean(axes).sqrt()
        torch.testing.assert_close(rms, torch.ones_like(rms), rtol=2e-2, atol=2e-2)
    with torch.no_grad():
        module.blocks[0].attention.qkv.weight[:16] *= 100  # the query of head 0 alone
    moved = heard(module).qk[0][0]
    other_head_moved = not torch.allclose(moved[:, 1], q_BHTD[:, 1], atol=1e-4)
    assert other_head_moved == (kind == "rmsnorm_full")


@pytest.mark.parametrize("norm", ARMS[1:], ids=str)
def test_case_t16_queries_and_keys_are_normalised_and_values_are_not(make_trial, norm):
    """MegaVIT#17: a mix-up normalised k and v; the model still trained, so nobody noticed."""
    module = decoder(make_trial, norm, model__qk_init="inverse_sqrt")
    attention = module.blocks[0].attention
    x = torch.randn(2, 16, 32, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        before = attention(x, None)
        attention.qkv.weight[:32] *= 50
        attention.qkv.weight[32:64] *= 50
        torch.testing.assert_close(attention(x, None), before, rtol=1e-3, atol=1e-5)
        attention.qkv.weight[64:] *= 2
        torch.testing.assert_close(attention(x, None), 2 * before, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("kind", ["rmsnorm", "l2"])
def test_case_t14_norm_and_rope_commute_until_a_gain_differs_by_dimension(make_trial, kind):
    """nanochat#743: implementations differ in the order and assume that theirs is standard."""
    logits = {}
    for position in ("before_rope", "after_rope"):
        norm = QKNorm(kind=kind, position=position)
        module = decoder(make_trial, norm, model__pos="rope", model__qk_init="inverse_sqrt")
        with torch.no_grad():
            plain = module(tokens())
            for name, gain in module.named_parameters():
                if name.endswith("q_gain"):
                    gain.copy_(torch.linspace(0.2, 5, len(gain)))
            logits[position] = plain, module(tokens())
    before, after = logits["before_rope"], logits["after_rope"]
    torch.testing.assert_close(before[0], after[0], rtol=1e-4, atol=1e-5)
    if kind == "rmsnorm":
        assert (before[1] - after[1]).abs().max() > 1e-4


def test_with_gain_one_the_scaled_logit_is_bounded_by_root_head_dim(make_trial):
    module = decoder(make_trial, QKNorm(gain="none"))
    with torch.no_grad():
        module.blocks[0].attention.qkv.weight.mul_(1e4)
    q, k, scale = heard(module).qk[0]
    assert scale * (q @ k.transpose(-2, -1)).abs().max() <= math.sqrt(16) * (1 + 1e-5)


def test_the_l2_scale_starts_at_its_formula(make_trial):
    scale = decoder(make_trial, QKNorm(kind="l2")).blocks[0].attention.qk_norm.logit_scale
    assert scale.item() == pytest.approx(math.log2(16**2 - 16))


def test_a_frozen_gain_is_no_parameter_and_gain_one_is_no_gain(make_trial):
    frozen = decoder(make_trial, QKNorm(gain="frozen"))
    none = decoder(make_trial, QKNorm(gain="none"))
    assert not [name for name, _ in frozen.named_parameters() if "gain" in name]
    with torch.no_grad():
        torch.testing.assert_close(frozen(tokens()), none(tokens()), rtol=0, atol=0)


def test_case_p06_qk_norm_does_not_saturate_attention_at_the_start(make_trial):
    """transformers#45676: normalised vectors have length sqrt(d): unscaled logits saturate."""
    from redline.train.probes import attention_statistics

    off, on = (heard(decoder(make_trial, norm, model__n_embd=64)) for norm in (None, QKNorm()))
    assert attention_statistics(*on.qk[0])["entropy_normalised"] >= 0.80
    q, k, scale = on.qk[0]
    assert (scale * q @ k.transpose(-2, -1)).std().item() == pytest.approx(1.0, rel=0.1)
    # nanoGPT's own start: logit std is 0.02^2 d, so attention is uniform.
    assert attention_statistics(*off.qk[0])["entropy_normalised"] > 0.999


def test_a_tap_changes_no_bit(make_trial):
    module = decoder(make_trial, QKNorm())
    with torch.no_grad():
        assert torch.equal(module(tokens()), module(tokens(), tap=Heard()))


def test_shorter_inputs_are_prefixes(make_trial):
    for norm in ARMS:
        module = decoder(make_trial, norm, model__pos="rope")
        with torch.no_grad():
            torch.testing.assert_close(module(tokens())[:, :5], module(tokens()[:, :5]))


def test_case_g01_all_parameters_are_contiguous(make_trial):
    """pytorch#118115: an optimiser kernel assumed a dense layout and was silently wrong."""
    assert all(p.is_contiguous() for p in decoder(make_trial, QKNorm()).parameters())
