"""Each statistic against the formula on the real tensors."""

import math

import numpy as np
import pytest
import torch

from redline.config.trial import QKNorm
from redline.model.init import build
from redline.train.probes import attention_statistics, probe, residual_statistics


def heads(n_time=16, scale=1.0):
    generator = torch.Generator().manual_seed(0)
    return (scale * torch.randn(2, 3, n_time, 8, generator=generator) for _ in range(2))


def test_case_p01_uniform_attention_has_the_entropy_of_its_keys():
    """trl#7221: a causal mask makes zero probabilities, and 0 log 0 was NaN. Entropy is in nats."""
    q, k = (torch.zeros(1, 2, 8, 4) for _ in range(2))
    found = attention_statistics(q, k, 1.0)
    assert found["entropy"] == pytest.approx(np.log(np.arange(2, 9)).mean(), rel=1e-6)
    assert found["entropy_normalised"] == pytest.approx(1.0)
    assert found["max_logit"] == 0


def test_attention_on_one_key_has_no_entropy():
    q = torch.ones(1, 1, 8, 1)
    k = 1000.0 * torch.arange(8).view(1, 1, 8, 1)
    found = attention_statistics(q, k, 1.0)
    assert found["entropy"] == pytest.approx(0, abs=1e-6)
    assert found["max_logit"] == 7000


def test_attention_statistics_equal_a_plain_computation():
    q, k = heads(scale=2.0)
    scale = 8**-0.5
    per_head, ratios, largest = [], [], 0.0
    for h in range(3):
        rows = []
        for b in range(2):
            for i in range(16):
                logits = scale * (q[b, h, i].double() @ k[b, h, : i + 1].double().T)
                largest = max(largest, logits.abs().max().item())
                p = logits.softmax(-1)
                if i >= 1:
                    rows.append(-(p * p.log()).sum().item())
                    ratios.append(rows[-1] / math.log(i + 1))
        per_head.append(np.mean(rows))
    found = attention_statistics(q, k, scale)
    assert found["entropy"] == pytest.approx(np.mean(per_head), rel=1e-5)
    assert found["entropy_head_min"] == pytest.approx(min(per_head), rel=1e-5)
    assert found["entropy_normalised"] == pytest.approx(np.mean(ratios), rel=1e-5)
    assert found["max_logit"] == pytest.approx(largest, rel=1e-5)


def test_the_future_does_not_enter_the_largest_logit():
    q, k = heads()
    k[:, :, -1] = 1e4
    q[:, :, -1] = 0
    assert attention_statistics(q, k, 1.0)["max_logit"] < 100


@pytest.mark.parametrize(("n_time", "expected"), [(16, 0.83), (64, 0.86), (256, 0.89)])
def test_qk_norm_starts_with_the_entropy_that_the_protocol_states(n_time, expected):
    generator = torch.Generator().manual_seed(0)
    shape = (4, 4, n_time, 64)
    q, k = (
        torch.nn.functional.rms_norm(torch.randn(shape, generator=generator), (64,))
        for _ in range(2)
    )
    found = attention_statistics(q, k, 64**-0.5)
    assert found["entropy_normalised"] == pytest.approx(expected, abs=0.025)


def test_gaussian_kurtosis_and_its_largest_value():
    x = torch.randn(64, 64, 32, generator=torch.Generator().manual_seed(0))
    assert residual_statistics(x)["kurtosis_mean"] == pytest.approx(3 * 32 / 34, rel=0.02)
    spike = torch.zeros(2, 3, 32)
    spike[..., 0] = 5
    assert residual_statistics(spike)["kurtosis_max"] == pytest.approx(32)


def test_a_token_of_zeros_has_no_kurtosis():
    x = torch.zeros(1, 2, 8)
    assert residual_statistics(x)["kurtosis_mean"] is None
    x[0, 0] = 1
    assert residual_statistics(x)["kurtosis_mean"] == 1


def test_outliers_are_largest_over_median_and_flagged_by_sun():
    x = torch.ones(2, 4, 9)
    x[0, 0, 0] = 50_000.0
    found = residual_statistics(x)
    assert (found["outlier_ratio"], found["outlier_abs"]) == (50_000, 50_000)
    assert found["massive"] is True
    x[0, 0, 0] = 99.0
    assert residual_statistics(x)["massive"] is False


def test_huge_activations_are_measured_not_hidden():
    found = residual_statistics(torch.full((1, 2, 4), 1e30))
    assert found["kurtosis_mean"] == pytest.approx(1)
    assert math.isnan(residual_statistics(torch.full((1, 2, 4), math.nan))["outlier_ratio"])


@pytest.mark.parametrize("arm", [None, QKNorm()], ids=str)
def test_case_p03_there_is_one_record_a_layer(make_trial, arm):
    """pytorch#117758: hooks did not fire under compile and the capture was empty without a word."""
    norm = arm.model_dump() if arm else None
    decoder = build(make_trial(model__n_layer=3, model__qk_norm=norm).model, 64, 0)
    record = probe(decoder, torch.randint(64, (2, 16)))
    assert len(record["layers"]) == 3
    assert len(record["residual"]) == 4
    assert all(math.isfinite(v) for layer in record["layers"] for v in layer.values())


def test_the_output_logit_measure_is_the_mean_square_of_log_z(make_trial):
    decoder = build(make_trial().model, 64, 0)
    ids = torch.randint(64, (2, 16))
    with torch.no_grad():
        expected = decoder(ids).double().exp().sum(-1).log().square().mean().item()
    assert probe(decoder, ids)["log_z_sq"] == pytest.approx(expected, rel=1e-5)
