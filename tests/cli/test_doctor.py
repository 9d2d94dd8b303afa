import json

import pytest
import torch

from redline.cli.app import call
from redline.train import selftest


def test_a_healthy_machine_is_said_to_be_one(capsys):
    assert call(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "FAILS" not in said
    assert "causal attention" in said
    assert torch.__version__ in said


def test_json_is_one_object_with_every_check(capsys):
    assert call(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["device"] == "cpu"
    assert all(one["holds"] for one in found["checks"])


def test_a_machine_that_fails_ends_with_one(capsys, monkeypatch):
    lost = selftest.Check("causal attention", holds=False, detail="leaks")
    monkeypatch.setattr(selftest, "check", lambda machine: [lost])
    assert call(["doctor"]) == 1
    assert "FAILS  causal attention: leaks" in capsys.readouterr().out


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has the device")
def test_a_device_that_is_not_there_is_refused(capsys):
    assert call(["doctor", "--device", "cuda"]) == 2
    assert "device cuda" in capsys.readouterr().err
