import shutil

import pytest

from redline.cli import budget
from redline.cli.app import call
from redline.session import open_session


@pytest.fixture
def grown(trained, tmp_path, monkeypatch):
    """The trained store and a study of twelve trials, of which it has four; a trial takes 100 s."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REDLINE_CACHE", str(trained / "cache"))
    shutil.copytree(trained / "store", tmp_path / "store")
    text = (trained / "tiny.toml").read_text()
    path = tmp_path / "grown.toml"
    path.write_text(text.replace("seed = [0]", "seed = [0, 1, 2]"))
    monkeypatch.setattr(budget, "seconds_per_flop", lambda store, finished: 100.0)
    monkeypatch.setattr(budget, "cost", lambda trial: type("Cost", (), {"flops": 1.0}))
    return path


def run(path, *options):
    return call(["run", str(path), "--store", "store", "--workers", "1", *options])


def finished(path):
    session = open_session(str(path), store_of(path))
    plan = session.begin()
    return [session.by_id[i] for i, status in plan.statuses.items() if status == "finished"]


def store_of(path):
    return path.parent / "store"


def test_a_budget_trains_whole_pairs_of_the_next_seed_and_says_what_it_leaves(grown, capsys):
    assert run(grown, "--budget", "500s") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Budget 8 min: 4 of 8 trials fit." in said
    assert "Left out, and trained by a later run: seed 2; n_layer 2; peak_lr 0.001, 0.01." in said
    assert "Not finished: 4 planned." in said
    done = finished(grown)
    assert sorted({trial.seed for trial in done}) == [0, 1]
    assert len(done) == 8


def test_a_budget_for_all_leaves_nothing(grown, capsys):
    assert run(grown, "--budget", "1h") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "8 of 8 trials fit." in said
    assert "Left out" not in said
    assert len(finished(grown)) == 12


def test_a_budget_for_nothing_trains_nothing(grown, capsys):
    assert run(grown, "--budget", "90s") == 1
    assert "Budget 2 min: 0 of 8 trials fit." in capsys.readouterr().out
    assert len(finished(grown)) == 4


def test_no_trial_starts_when_the_time_is_over(grown, capsys, monkeypatch):
    """Trials that take longer than was reckoned do not run into the morning."""
    monkeypatch.setattr(budget, "seconds_per_flop", lambda store, finished: 1e-9)
    assert run(grown, "--budget", "1s") == 1
    assert "8 of 8 trials fit." in " ".join(capsys.readouterr().out.split())
    assert 4 < len(finished(grown)) < 12


@pytest.mark.parametrize("value", ["0s", "-3h", "soon", "8"])
def test_a_budget_that_is_no_time_is_refused(grown, capsys, value):
    assert run(grown, f"--budget={value}") == 2
    assert "--budget" in "".join(capsys.readouterr())


def test_without_finished_trials_one_step_is_timed(tiny, capsys):
    assert call(["run", str(tiny), "--workers", "1", "--budget", "1h"]) == 0
    assert "4 of 4 trials fit." in capsys.readouterr().out
