import json
import shutil
from pathlib import Path

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


@pytest.fixture
def unfit(monkeypatch):
    """A machine whose attention sees the future."""
    monkeypatch.setattr(
        "redline.execute.readiness.failed_checks", lambda kind, memory: ["causal attention (leaks)"]
    )
    monkeypatch.setenv("REDLINE_FAILED_CHECKS", "")


def test_a_study_does_not_start_on_a_device_that_fails(tiny, unfit, capsys):
    assert call(["run", str(tiny), "--store", "store"]) == 2
    said = capsys.readouterr().err
    assert "the device fails its self-test: causal attention (leaks)" in said
    assert "--despite-failed-checks" in said
    assert not list(Path("store").glob("trials/*/finished.json"))


def test_who_trains_all_the_same_has_it_in_every_trial_and_on_the_page(tiny, unfit, capsys):
    assert call(["run", str(tiny), "--store", "store", "--despite-failed-checks"]) == 0
    records = [json.loads(p.read_text()) for p in Path("store").glob("trials/*/provenance.json")]
    assert [record["failed_checks"] for record in records] == ["causal attention (leaks)"] * 4
    assert call(["report", str(tiny), "--store", "store"]) == 0
    assert "failed_checks causal attention (leaks)" in Path("store/report/tiny.html").read_text()


def test_a_healthy_run_records_no_failure(trained):
    records = [json.loads(p.read_text()) for p in trained.glob("store/trials/*/provenance.json")]
    assert records
    assert not [record for record in records if "failed_checks" in record]


def test_a_finished_study_is_not_examined_again(trained, tmp_path, unfit, monkeypatch, capsys):
    monkeypatch.setenv("REDLINE_CACHE", str(trained / "cache"))
    shutil.copytree(trained / "store", tmp_path / "store")
    path = str(trained / "tiny.toml")
    assert call(["run", path, "--store", str(tmp_path / "store")]) == 0
