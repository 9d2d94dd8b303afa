import pytest

from redline.config.cost import cost

D, T, V, LAYERS = 64, 64, 256, 2
"""The width, context, vocabulary and depth of the trial that `make` builds."""

BLOCK = 12 * D * D + 2 * D  # four D x D of attention, two D x 4D of the MLP, two norm gains
PLAIN = LAYERS * BLOCK + D + V * D + T * D


def test_the_default_trial_has_the_parameters_counted_by_hand(make):
    assert cost(make()).n_param == PLAIN == 119_104
    assert cost(make()).n_param_embedding == V * D + T * D


@pytest.mark.parametrize(
    ("qk_norm", "n_extra_per_layer"),
    [
        ({}, 2 * 32),
        ({"kind": "layernorm"}, 2 * 32),
        ({"kind": "rmsnorm_full"}, 2 * D),
        ({"kind": "l2"}, 1),
        ({"gain": "frozen"}, 0),
        ({"gain": "none"}, 0),
    ],
)
def test_qk_norm_adds_only_its_learned_gains(make, qk_norm, n_extra_per_layer):
    trial = make({"model.qk_norm": qk_norm})
    assert cost(trial).n_param == PLAIN + LAYERS * n_extra_per_layer


def test_an_untied_head_is_counted_once_more_and_rope_has_no_table(make):
    assert cost(make({"model.tied_head": False})).n_param == PLAIN + V * D
    assert cost(make({"model.pos": "rope"})).n_param == PLAIN - T * D


def test_biases_are_counted(make):
    # 3D + D in attention, 4D + D in the MLP, D in each of two norms; D in the last norm.
    assert cost(make({"model.bias": True})).n_param == PLAIN + LAYERS * (9 * D + 2 * D) + D


def test_tokens_are_steps_times_batch_times_context(make):
    assert cost(make()).tokens_seen == 400 * 16 * 64


def test_flops_are_those_of_the_weights_that_multiply_and_of_attention(make):
    per_token = 6 * (LAYERS * BLOCK + D + V * D) + 12 * LAYERS * D * T
    assert cost(make()).flops == per_token * 400 * 16 * 64
    untied = make({"model.tied_head": False})
    assert cost(untied).flops == cost(make()).flops, "a tied head multiplies as an untied one does"
