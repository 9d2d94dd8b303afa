"""The commands, run for real on a study of seconds."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from redline.cli.app import call
from redline.session import open_session
from redline.store.tables import load


def finished(store="redline-runs/tiny"):
    session = open_session(store)
    return sorted((session.store.root / "trials").glob("*/finished.json"))


def test_a_study_is_trained_once_then_only_its_new_cells(tiny, capsys):
    """Issue: a second run trains nothing; another LR and seed train only the new cells."""
    assert call(["run", str(tiny)]) == 0
    out = capsys.readouterr().out
    assert "[4/4]" in out and "4/4" not in out.splitlines()[0]
    assert "Means over seeds" in out and "n_layer 2, off against on" in out
    stamps = {path: path.stat().st_mtime_ns for path in finished()}
    assert len(stamps) == 4

    assert call(["run", str(tiny)]) == 0
    assert "4 of 4 trials done, 0 to train" in capsys.readouterr().out

    text = tiny.read_text().replace("[1e-3, 1e-2]", "[1e-3, 1e-2, 3e-2]").replace("[0]", "[0, 1]")
    tiny.write_text(text)
    assert call(["run", str(tiny)]) == 0
    assert "4 of 12 trials done, 8 to train" in capsys.readouterr().out
    assert len(finished()) == 12
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps


def test_plan_says_everything_before_anything_is_prepared(tiny, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("REDLINE_CACHE", str(tmp_path / "none"))
    options = ["--watts", "50", "--price-per-kwh", "0.3", "--price-per-hour", "2"]
    assert call(["plan", str(tiny), *options]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for part in (
        "4 trials",
        "train.peak_lr: 0.001, 0.01",
        "off, on",
        "without embeddings",
        "FLOPs",
        "kWh",
        "for energy",
        "for the machine",
        "Corpus not prepared",
        "redline run",
        "1 seed",
        "Isolation audit",
        "initial attention temperature",
    ):
        assert part in out, part
    assert not (tmp_path / "none").exists()
    assert not (tmp_path / "redline-runs").exists()


def test_plan_prints_the_whole_grid(tiny, capsys):
    more = '[around_base]\npos = ["rope"]\nboth = { tied_head = false, z_loss = 1e-4 }\n'
    tiny.write_text(tiny.read_text() + more + "[[extra_axes]]\nn_layer = [3]\n")
    assert call(["plan", str(tiny)]) == 0
    out = capsys.readouterr().out
    assert "around the base, model.pos: model.pos = rope" in out
    assert "around the base, both: model.tied_head = False, train.z_loss = 0.0001" in out
    assert "and also model.n_layer: 3" in out


def test_plan_states_the_core_matrix(capsys):
    assert call(["plan", "core", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["n_trial"] == 24
    assert {row["n_trial"] for row in found["models"]} == {12}
    for row in found["models"]:
        assert 10e6 <= row["n_param"] <= 15e6
        assert 100e6 <= row["tokens"] <= 150e6
    assert found["estimate"]["hours"] > 0


def test_status_and_trials_are_named(tiny, capsys):
    assert call(["status", str(tiny), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["finished"] == 0
    assert call(["run", str(tiny)]) == 0
    capsys.readouterr()
    assert call(["status", "redline-runs/tiny", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["counts"]["finished"] == 4
    assert found["missing"] == found["running"] == found["failed"] == []
    assert call(["plan", str(tiny), "--trials"]) == 0
    out = capsys.readouterr().out
    assert out.count("finished") >= 4
    assert "qk_norm on, peak_lr 0.01, n_layer 2, seed 0" in out


def test_case_s09_a_deleted_result_is_named_and_alone_is_trained_again(tiny, capsys):
    """wandb#1787: a sweep called itself complete while combinations were missing."""
    assert call(["run", str(tiny)]) == 0
    finished()[2].unlink()
    capsys.readouterr()
    assert call(["status", str(tiny), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["missing"]) == 1
    assert call(["run", str(tiny)]) == 0
    assert "3 of 4 trials done, 1 to train" in capsys.readouterr().out


def test_one_trial_alone_can_be_trained(tiny, capsys):
    session = open_session(str(tiny))
    name = list(session.by_id)[3]
    assert call(["run", str(tiny), "--only", name]) == 0
    assert [path.parent.name for path in finished()] == [name]
    assert call(["run", str(tiny), "--only", "0" * 16]) == 2
    assert "no such trial" in capsys.readouterr().err


def test_a_diverged_trial_is_finished_and_never_retried(tiny, capsys):
    text = tiny.read_text().replace("[1e-3, 1e-2]", "[1e-3, 1e30]")
    tiny.write_text(text)
    assert call(["run", str(tiny)]) == 0
    out = capsys.readouterr().out
    assert "non-finite" in out and "non_finite" in out
    assert call(["retry", str(tiny)]) == 0
    assert "0 to train" in capsys.readouterr().out
    tables = load(open_session(str(tiny)).store, list(open_session(str(tiny)).by_id))
    died = tables.trials.filter(pl.col("peak_lr") == 1e30)
    assert died["final_loss"].null_count() == 2 and died["non_finite"].null_count() == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("n_embd = 32", "n_embd = 33"), "n_embd = 33 is not divisible by n_head = 2"),
        (("n_embd = 32", "n_emb = 32"), "did you mean"),
        (("n_embd = 32", 'n_embd = "wide"'), "model.n_embd"),
        (("[1e-3, 1e-2]", "[1e-3, 0.0]"), "peak_lr"),
        (("[1e-3, 1e-2]", '[1e-3, "0.001"]'), "peak_lr"),
        (("n_step = 20", "n_step = 20\nwarmup_fraction = 1.0"), "warmup_fraction"),
        (("n_train_token = 20_000", 'corpus = "none.txt"\nn_train_token = 20_000'), "no such file"),
        (("seed = [0]", "seed = []"), "seed"),
        (('title = "tiny"', 'title = "tiny"\ndevice = "cuda"'), "cpu"),
        (('title = "tiny"', 'title = "tiny'), "tiny.toml"),
        # Case G04 (nanochat#741): an unsupported precision is refused before the sweep.
        (('title = "tiny"', 'title = "tiny"\nprecision = "bfloat16"'), "precision"),
    ],
)
def test_bad_input_is_a_clear_sentence_and_exit_code_2(tiny, capsys, change, message):
    text = tiny.read_text()
    assert change[0] in text
    tiny.write_text(text.replace(*change))
    assert call(["run", str(tiny)]) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert "Traceback" not in out + err
    assert not finished_anything()


def finished_anything():
    return list(Path.cwd().glob("redline-runs/*/trials/*"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["run", "pilott"],
        ["rum", "pilot"],
        ["run", "pilot", "--workers", "many"],
        ["run", "pilot", "--workers", "0"],
        ["plan", "pilot", "--price-per-kwh", "1"],
        ["doctor", "--golden", "nothing.npz"],
    ],
    ids=" ".join,
)
def test_a_bad_command_line_is_exit_code_2(tiny, capsys, arguments):
    assert call(arguments) == 2
    out, err = capsys.readouterr()
    assert out + err and "Traceback" not in out + err


def test_an_edited_trial_is_refused_by_name(tiny, capsys):
    assert call(["run", str(tiny)]) == 0
    trial = finished()[0].parent / "trial.json"
    trial.write_text(trial.read_text().replace('"n_step": 20', '"n_step": 21'))
    capsys.readouterr()
    assert call(["run", str(tiny)]) == 1
    out = "".join(capsys.readouterr().out.split())
    assert "damaged,andinnonumberabove" in out
    assert "trial.json" in out and finished()[0].parent.name in out


def test_nothing_has_run_is_said_and_no_error(tiny, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("REDLINE_CACHE", str(tmp_path / "none"))
    assert call(["status", str(tiny)]) == 0
    assert "nothing of it has run" in capsys.readouterr().out
    assert call(["plan", str(tiny), "--trials"]) == 0
    out = capsys.readouterr().out
    assert f"`redline run {tiny}`" in " ".join(out.split())
    assert out.count("unnamed") == 4


def test_a_refused_study_does_not_take_the_name_of_the_store(tiny):
    assert call(["run", str(tiny)]) == 0
    before = Path("redline-runs/tiny/study.toml").read_text()
    text = tiny.read_text().replace("n_train_token", 'corpus = "none.txt"\nn_train_token')
    tiny.write_text(text)
    assert call(["run", str(tiny)]) == 2
    assert Path("redline-runs/tiny/study.toml").read_text() == before


def test_verify_finds_an_edit_that_keeps_the_size(tiny, capsys):
    assert call(["run", str(tiny), "--workers", "1"]) == 0
    series = finished()[0].parent / "series.jsonl"
    content = bytearray(series.read_bytes())
    content[40] ^= 1
    series.write_bytes(content)
    capsys.readouterr()
    assert call(["status", str(tiny), "--verify"]) == 0
    out = capsys.readouterr().out
    assert "1 damaged" in out and "series.jsonl" in out


def test_a_reader_that_leaves_is_no_crash(tiny):
    """`| head -1` closes the pipe after one line."""
    code = f"import sys; from redline.cli.app import call; sys.exit(call(['plan', {str(tiny)!r}]))"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert process.wait() == 141
        assert process.stderr.read() == b""


def test_a_hostile_title_is_text_and_stays_in_its_directory(tiny, capsys, tmp_path):
    tiny.write_text(tiny.read_text().replace('title = "tiny"', 'title = "../[/b] [red]x"'))
    assert call(["plan", str(tiny)]) == 0
    assert "../[/b] [red]x" in capsys.readouterr().out
    assert call(["run", str(tiny)]) == 0
    assert "../[/b] [red]x" in capsys.readouterr().out
    assert [path.name for path in (tmp_path / "redline-runs").iterdir()] == ["b-red-x"]


def test_the_store_knows_its_trials_without_the_cache(tiny, capsys, tmp_path, monkeypatch):
    assert call(["run", str(tiny)]) == 0
    monkeypatch.setenv("REDLINE_CACHE", str(tmp_path / "none"))
    capsys.readouterr()
    assert call(["status", "redline-runs/tiny", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["finished"] == 4


def test_a_trial_outside_the_study_is_named_and_in_no_number(tiny, capsys):
    assert call(["run", str(tiny)]) == 0
    tiny.write_text(tiny.read_text().replace("[1e-3, 1e-2]", "[1e-3]"))
    capsys.readouterr()
    assert call(["status", str(tiny), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["counts"]["finished"], len(found["extra"])) == (2, 2)


def test_a_shipped_name_never_binds_to_a_directory_of_that_name(tiny):
    assert call(["run", str(tiny), "--store", "pilot"]) == 0
    assert open_session("pilot").store.root == Path("redline-runs/pilot")
    assert open_session("./pilot").store.root == Path("pilot")


def test_help_loads_no_heavy_library():
    """exca holds the same: a person who asks for help waits for nothing."""
    script = (
        "import sys; from redline.cli.app import call; call(['--help']);"
        "heavy = {'torch', 'polars', 'scipy', 'numpy'} & set(sys.modules); assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_program_runs_as_a_program(redline):
    assert redline("--version")[:2] == (0, "0.1.0\n")
    code, out, err = redline("run", "pilot", "--store", __file__)
    assert (code, out) == (2, "")
    assert "this is a file" in err
