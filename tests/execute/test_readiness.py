import sys

import pytest

from redline.execute.readiness import failed_checks
from redline.files import UserError


@pytest.fixture
def command(tmp_path):
    """A self-test that prints what it is told to, and counts how often it was asked."""

    def write(line):
        script = tmp_path / "selftest.py"
        script.write_text(
            "import pathlib, sys\n"
            "log = pathlib.Path(__file__).with_name('asked')\n"
            "log.write_text((log.read_text() if log.exists() else '') + sys.argv[1] + ' ')\n"
            f"print({line!r})\n"
        )
        return (sys.executable, str(script))

    return write


def asked(tmp_path):
    return (tmp_path / "asked").read_text().split()


def test_a_device_that_passes_is_asked_once(command, tmp_path):
    healthy = command('{"failed": []}')
    for _ in range(3):
        assert failed_checks("cpu", tmp_path / "memory", healthy) == []
    assert asked(tmp_path) == ["cpu"]


def test_another_device_is_asked_for_itself(command, tmp_path):
    healthy = command('{"failed": []}')
    for kind in ("cpu", "mps", "cpu"):
        failed_checks(kind, tmp_path / "memory", healthy)
    assert asked(tmp_path) == ["cpu", "mps"]


def test_a_failure_is_never_remembered(command, tmp_path):
    broken = command('{"failed": ["causal attention (leaks)"]}')
    for _ in range(2):
        assert failed_checks("mps", tmp_path / "memory", broken) == ["causal attention (leaks)"]
    assert asked(tmp_path) == ["mps", "mps"]


def test_a_new_version_is_asked_again(command, tmp_path, monkeypatch):
    healthy = command('{"failed": []}')
    failed_checks("cpu", tmp_path / "memory", healthy)
    monkeypatch.setattr("redline.execute.provenance.version", lambda name: "99")
    failed_checks("cpu", tmp_path / "memory", healthy)
    assert asked(tmp_path) == ["cpu", "cpu"]


@pytest.mark.parametrize("line", ["", "no JSON", "[]", '{"other": 1}'])
def test_a_self_test_that_does_not_answer_is_one_sentence(command, tmp_path, line):
    with pytest.raises(UserError, match="device cpu: its self-test did not run"):
        failed_checks("cpu", tmp_path / "memory", command(line))


def test_this_cpu_passes(tmp_path):
    assert failed_checks("cpu", tmp_path / "memory") == []
    assert len(list((tmp_path / "memory").iterdir())) == 1
