import json
import re
import shlex
import shutil

import pytest

from redline.cli.app import call
from redline.execute.plan import plan
from redline.session import open_session

MAPS = ("peak_lr=lr", "n_layer=depth", "qk_norm=arm", "seed=seed", "final_loss=val")


@pytest.fixture
def store(trained, tmp_path, monkeypatch):
    """A copy of a trained study, in an empty working directory."""
    shutil.copytree(trained, tmp_path / "copy")
    monkeypatch.setenv("REDLINE_CACHE", str(trained / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "copy" / "store"


@pytest.fixture
def imported(tmp_path, monkeypatch):
    """A store of an imported table: free to drop at 0.001, needed at 0.1, scattered at 0.01."""
    monkeypatch.chdir(tmp_path)
    deltas = {0.001: (0.01, 0.0, -0.01), 0.01: (-0.05, 0.06, 0.0), 0.1: (0.3, 0.31, 0.29)}
    lines = ["lr,depth,arm,seed,val,width"]
    for lr, of_seed in deltas.items():
        for seed, delta in enumerate(of_seed):
            lines.append(f"{lr},2,off,{seed},{2 + delta},64")
            lines.append(f"{lr},2,on,{seed},2.0,64")
    (tmp_path / "sweep.csv").write_text("\n".join(lines) + "\n")
    maps = [part for name in (*MAPS, "n_embd=width") for part in ("--map", name)]
    assert call(["import", "sweep.csv", *maps, "--store", "imported"]) == 0
    return tmp_path / "imported"


@pytest.fixture
def ask(capsys):
    """Options of `redline advise` -> what it prints; the command must succeed."""

    def run(*options):
        capsys.readouterr()
        assert call(["advise", *map(str, options)]) == 0
        return capsys.readouterr().out

    return run


@pytest.fixture
def answer(ask):
    """The same as JSON: the advice of each sweep."""
    return lambda *options: json.loads(ask(*options, "--json"))


def in_one_line(text):
    return re.sub(r"\s+", " ", text)


def snippet_of(text):
    return re.split(r"Write this to [^\n]*\.toml:\n\n", text)[1].split("\n  redline ")[0]


def commands_of(text):
    return [shlex.split(line) for line in text.splitlines() if line.startswith("  redline ")]


@pytest.mark.parametrize(
    ("peak_lr", "said", "answered"),
    [
        ("1e-3", "Not needed. At peak LR 0.001 dropping QK-norm is shown", "not needed"),
        ("0.1", "Needed. At peak LR 0.1 leaving QK-norm out is shown to cost more", "needed"),
        ("0.01", "Unknown. Shown is only that QK-norm can be dropped up to", "unknown"),
        ("5e-4", "Extrapolated by a factor of 2 in peak LR", "not needed"),
    ],
)
def test_an_imported_table_is_asked_like_a_study(imported, ask, answer, peak_lr, said, answered):
    options = (imported, "--peak-lr", peak_lr, "--n-layer", 2)
    assert said in in_one_line(ask(*options))
    (sweep,) = answer(*options)["sweeps"]
    assert sweep["title"] == "sweep.csv"
    assert [one["answer"] for one in sweep["advice"]] == [answered]


def test_the_answer_shows_its_evidence_and_its_distance(imported, ask):
    said = in_one_line(ask(imported, "--peak-lr", 0.1, "--n-layer", 4, "--n-embd", 64))
    assert "sweep.csv: off against on at n_layer 4, n_embd 64, peak LR 0.1" in said
    assert "│ 2 │ 64 │ - │ 0.1 │ 3 │ +0.300 │ +0.275 to +0.325 │ needed │" in said
    assert (
        "can be dropped up to 0.001; the LR from which it is needed: above 0.001, at most" in said
    )
    assert (
        "Distance: n_layer 4 beyond the tested values, 2x from n_layer 2; n_embd 64 tested; "
        "peak_lr 0.1 tested." in said
    )


def test_the_next_runs_of_an_imported_table_are_named_and_no_command_is_shown(imported, ask):
    said = in_one_line(ask(imported, "--peak-lr", 0.01, "--n-layer", 2))
    assert re.search(
        r"Next, where the table came from: \d+ runs, off and on at n_layer 2; peak_lr 0.01; "
        r"seed 3 to \d+\. With the spread seen so far, \d+ seeds have 80 % power",
        said,
    )
    assert "redline run" not in said


def test_json_is_one_object_with_points_as_data(imported, answer):
    found = answer(imported, "--peak-lr", 0.01, "--n-layer", 2, "--tokens", "400k")
    assert found["place"] == {
        "n_layer": 2,
        "peak_lr": 0.01,
        "n_embd": None,
        "n_step": None,
        "tokens": 400_000.0,
    }
    (advice,) = found["sweeps"][0]["advice"]
    assert "The results do not say their tokens" in advice["sentence"]
    (advice,) = answer(imported, "--peak-lr", 0.01, "--n-layer", 2)["sweeps"][0]["advice"]
    first = advice["next_runs"]["points"][0]
    assert first == {
        "arm": "off",
        "changes": {"model.n_layer": 2, "train.peak_lr": 0.01, "seed": 3},
    }
    assert advice["evidence"][0]["n_pair"] == 3
    assert len(advice["evidence"][0]["trial_ids"]) == 6
    assert advice["to_run"] is None


def test_a_study_that_learned_nothing_gets_no_answer(store, ask):
    said = in_one_line(ask(store, "--peak-lr", "1e-3", "--n-layer", 2))
    assert "tiny: off against on at n_layer 2, peak LR 0.001 Unknown. Not meaningful: the" in said
    assert "Next: More seeds would settle nothing" in said


@pytest.mark.parametrize("by_store", [True, False], ids=["store", "file"])
@pytest.mark.parametrize(
    "options", [("--n-layer", 4), ("--n-layer", 2, "--n-embd", 64, "--n-step", 20)], ids=str
)
def test_the_study_that_is_shown_holds_the_old_trials_and_exactly_the_next_ones(
    store, ask, answer, tmp_path, by_store, options
):
    source = (store,) if by_store else (store.parent / "tiny.toml", "--store", store)
    options = (*source, "--peak-lr", "3e-3", *options)
    text = ask(*options)
    (tmp_path / "next.toml").write_text(snippet_of(text))
    old = open_session(str(source[0]), store)
    new = open_session("next.toml", store)
    # What is finished is found again by its name, and only the rest is left to train.
    status = plan(new.store, list(new.by_id))
    to_run = [new.by_id[trial_id] for trial_id in status.to_run()]
    assert set(new.trials) == {*old.trials, *to_run}
    assert set(status.statuses) - set(status.to_run()) == set(old.by_id)
    (advice,) = answer(*options)["sweeps"][0]["advice"]
    assert len(to_run) == advice["to_run"]["n_trial"] == len(advice["next_runs"]["points"]) == 18
    assert {(t.model.arm, t.model.n_layer, t.train.peak_lr, t.seed) for t in to_run} == {
        (
            p["arm"],
            p["changes"]["model.n_layer"],
            p["changes"]["train.peak_lr"],
            p["changes"]["seed"],
        )
        for p in advice["next_runs"]["points"]
    }
    assert advice["to_run"]["study"] == snippet_of(text)
    assert advice["to_run"]["flops"] > 0
    assert advice["to_run"]["worker_s"] > 0


def test_the_commands_that_are_shown_train_and_ask_again(store, ask, tmp_path):
    shown = ask(store, "--peak-lr", "3e-2", "--n-layer", 1)
    (tmp_path / "next.toml").write_text(snippet_of(shown))
    run, again = commands_of(shown)
    assert run[:3] == ["redline", "run", "next.toml"]
    assert call(run[1:]) == 0
    said = in_one_line(ask(*again[2:]))
    assert "tiny, next: off against on at n_layer 1, peak LR 0.03" in said
    assert "Distance: n_layer 1 tested; peak_lr 0.03 tested." in said
    # The store itself holds the longer study now.
    assert "Distance: n_layer 1 tested; peak_lr 0.03" in in_one_line(ask(store, *again[5:]))


def test_a_study_that_was_extended_can_be_extended_again_and_is_no_circle(store, ask, tmp_path):
    options = ("--peak-lr", "3e-2", "--n-layer")
    (tmp_path / "next.toml").write_text(snippet_of(ask(store, *options, 1)))
    # It has not run: the store keeps no copy of it, only of the study under it.
    again = ask("next.toml", "--store", store, *options, 4)
    assert "Write this to next-2.toml:" in again
    (tmp_path / "next-2.toml").write_text(snippet_of(again))
    trials = open_session("next-2.toml", store).trials
    assert {trial.model.n_layer for trial in trials} == {1, 2, 4}


def test_what_the_study_lacks_is_run_by_its_own_command(store, ask, answer):
    (victim,) = [
        path
        for path in (store / "trials").iterdir()
        if '"peak_lr": 0.01' in (text := (path / "trial.json").read_text())
        and '"qk_norm": null' in text
    ]
    shutil.rmtree(victim)
    options = (store, "--peak-lr", "1e-2", "--n-layer", 2)
    (advice,) = answer(*options)["sweeps"][0]["advice"]
    assert advice["next_runs"]["is_planned"]
    assert advice["to_run"]["n_trial"] == 1
    assert advice["to_run"]["study"] == ""
    assert advice["to_run"]["commands"][0] == f"redline run {store}"


def test_a_width_that_no_model_can_have_is_said_and_no_runs_are_shown(store, ask):
    said = in_one_line(ask(store, "--peak-lr", "1e-3", "--n-layer", 2, "--n-embd", 33))
    assert (
        "but there can be no such trial: model.n_embd = 33 is not divisible by n_head = 2." in said
    )
    assert "next.toml" not in said


@pytest.mark.parametrize(
    "options",
    [
        ["--peak-lr", "0", "--n-layer", "2"],
        ["--peak-lr", "-1e-3", "--n-layer", "2"],
        ["--peak-lr", "nan", "--n-layer", "2"],
        ["--peak-lr", "inf", "--n-layer", "2"],
        ["--peak-lr", "high", "--n-layer", "2"],
        ["--peak-lr", "1e-3", "--n-layer", "0"],
        ["--peak-lr", "1e-3", "--n-layer", "2.5"],
        ["--peak-lr", "1e-3", "--n-layer", "nan"],
        ["--peak-lr", "1e-3", "--n-layer", "deep"],
        ["--peak-lr", "1e-3"],
        ["--peak-lr", "1e-3", "--n-layer", "2", "--n-embd", "0"],
        ["--peak-lr", "1e-3", "--n-layer", "2", "--tokens", "many"],
        ["--peak-lr", "1e-3", "--n-layer", "2", "--tokens", "0"],
        ["--peak-lr", "1e-3", "--n-layer", "2", "--tokens", "1e999"],
        ["--peak-lr", "1e-3", "--n-layer", "2", "--tokens", "4k", "--n-step", "4"],
    ],
    ids=" ".join,
)
def test_bad_input_is_a_sentence_and_exit_code_2(imported, options, capsys):
    capsys.readouterr()
    assert call(["advise", str(imported), *options]) == 2
    said = capsys.readouterr()
    assert said.out + said.err
    assert "Traceback" not in said.out + said.err


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("400k", 4e5), ("1.5M", 1.5e6), ("409_600", 409600), ("120,000", 1.2e5), ("2e9", 2e9)],
)
def test_tokens_are_written_as_people_do(imported, answer, text, tokens):
    found = answer(imported, "--peak-lr", 0.1, "--n-layer", 2, "--tokens", text)
    assert found["place"]["tokens"] == tokens


def test_an_untrained_study_is_one_sentence(tiny, capsys):
    assert call(["advise", str(tiny), "--peak-lr", "1e-3", "--n-layer", "2"]) == 2
    assert "nothing of tiny has run; `redline run" in capsys.readouterr().err


def test_a_table_with_one_arm_is_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("lr,depth,arm,seed,val\n0.1,2,off,0,2.0\n0.1,2,off,1,2.1\n")
    maps = [part for name in MAPS for part in ("--map", name)]
    assert call(["import", "a.csv", *maps, "--store", "one"]) == 0
    assert call(["advise", "one", "--peak-lr", "0.1", "--n-layer", "2"]) == 2
    assert "no arm with results to compare with `off`" in capsys.readouterr().err


def test_it_is_a_program(redline, imported):
    code, out, _ = redline("advise", imported, "--peak-lr", "0.1", "--n-layer", "2")
    assert code == 0
    assert "Needed." in out
