"""A study that trains in seconds, for commands that are run for real."""

import subprocess
import sys

import pytest

from redline.cli.app import call

TINY = """
title = "tiny"
protocol = "nanogpt"
[model]
n_embd = 32
block_size = 16
[data]
n_train_token = 20_000
n_eval_token = 512
[train]
batch_size = 4
n_step = 20
[measure]
eval_every = 10
probe_every = 10
n_probe_row = 4
[axes]
peak_lr = [1e-3, 1e-2]
seed = [0]
qk_norm = ["off", "on"]
"""


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """The path of a tiny study; the working directory is empty but for it."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A tiny study, `tiny.toml`, and its `store`, made once; copy them to change them."""
    root = tmp_path_factory.mktemp("trained")
    (root / "tiny.toml").write_text(TINY)
    # Not the cache of a test: this fixture outlives the test that asks first.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REDLINE_CACHE", str(root / "cache"))
        assert call(["run", str(root / "tiny.toml"), "--store", str(root / "store")]) == 0
    return root


@pytest.fixture
def redline():
    """Run the program as a person does: (exit code, standard output, standard error)."""

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "redline", *map(str, arguments)], capture_output=True, text=True
        )
        return done.returncode, done.stdout, done.stderr

    return run
