import re
import shutil

import pytest

from redline.cli.app import call

SWEEP = """lr,depth,arm,seed,val,width
0.001,2,off,0,2.30,64
0.001,2,on,0,2.29,64
0.001,2,off,1,2.32,64
0.001,2,on,1,2.30,64
0.001,2,off,2,2.31,64
0.001,2,on,2,2.31,64
0.1,2,off,0,nan,64
0.1,2,on,0,2.35,64
0.1,2,off,1,4.1,64
0.1,2,on,1,2.36,64
0.1,2,off,2,3.9,64
0.1,2,on,2,,64
"""
MAPS = ("peak_lr=lr", "n_layer=depth", "qk_norm=arm", "seed=seed", "final_loss=val")


@pytest.fixture
def store(trained, tmp_path):
    """A copy that a test may damage."""
    shutil.copytree(trained, tmp_path / "copy")
    return tmp_path / "copy" / "store"


def page_of(store, name="tiny"):
    return (store / "report" / f"{name}.html").read_text()


def warnings_of(page):
    found = re.search(r'<section class="warnings".*?</section>', page, re.S)
    return "" if found is None else re.sub(r"<[^>]+>|\s+", " ", found.group())


def bring_in(tmp_path, *options, text=SWEEP):
    """Import a hand-typed table; the store."""
    (tmp_path / "sweep.csv").write_text(text)
    maps = [part for name in MAPS for part in ("--map", name)]
    store = tmp_path / "imported"
    assert (
        call(["import", str(tmp_path / "sweep.csv"), *maps, "--store", str(store), *options]) == 0
    )
    return store


def test_a_report_says_the_verdict_and_where_the_page_is(store, capsys):
    assert call(["report", str(store)]) == 0
    said = capsys.readouterr().out
    assert "tiny: 4 of 4 trials have a result" in said
    # Twenty steps teach nothing, and the verdict says that instead of comparing.
    assert "n_layer 2, off against on: Not meaningful: the best mean loss, " in said
    assert f"page: {store / 'report' / 'tiny.html'}" in said
    page = page_of(store)
    assert "Is QK-norm all that differs?" in page
    assert "torch 2." in page
    assert "title = &#34;tiny&#34;" in page
    assert (store / "report" / "tiny" / "figures" / "loss.png").exists()


def test_the_command_on_the_page_trains_that_trial_again(store, tmp_path, capsys, monkeypatch):
    assert call(["report", str(store)]) == 0
    trial_id = sorted(path.name for path in (store / "trials").iterdir())[0]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text((store / "study.toml").read_text())
    assert call(["run", "study.toml", "--store", "replica", "--only", trial_id]) == 0
    again = tmp_path / "replica" / "trials" / trial_id / "finished.json"
    first = store / "trials" / trial_id / "finished.json"
    assert '"final_loss"' in again.read_text()
    loss = re.compile(r'"final_loss": ([^,\n]+)')
    assert loss.search(again.read_text()).group(1) == loss.search(first.read_text()).group(1)


def test_reporting_twice_gives_the_same_bytes(store):
    assert call(["report", str(store)]) == 0
    first = page_of(store)
    assert call(["report", str(store)]) == 0
    assert page_of(store) == first


def test_nothing_that_has_run_is_a_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert call(["report", "pilot"]) == 2
    assert "nothing of pilot has run; `redline run pilot` begins" in capsys.readouterr().err


def test_case_s09_a_hole_is_on_the_page_by_name(store, capsys):
    """S09 (wandb#1787): progress counted issued runs, so a sweep with holes was called complete."""
    victim = sorted((store / "trials").iterdir())[0]
    shutil.rmtree(victim)
    assert call(["report", str(store)]) == 0
    assert "tiny: 3 of 4 trials have a result" in capsys.readouterr().out
    assert "3 of 4 trials have a result. Missing: " in warnings_of(page_of(store))


def test_a_damaged_trial_is_named_and_in_no_number(store):
    victim = sorted((store / "trials").iterdir())[0]
    (victim / "series.jsonl").write_text("{}\n")
    assert call(["report", str(store)]) == 0
    said = warnings_of(page_of(store))
    assert f"Trial {victim.name} is damaged (series.jsonl) and in no number" in said
    assert "3 of 4 trials have a result" in said


def test_case_a10_trials_of_another_study_are_listed(store):
    """A10 (marin#2037): results of an older grid lay in the folder and were charted or dropped."""
    study = store.parent / "tiny.toml"
    study.write_text(study.read_text().replace("[1e-3, 1e-2]", "[1e-3]"))
    assert call(["report", str(study), "--store", str(store)]) == 0
    said = warnings_of(page_of(store))
    assert "2 trials of the store not of this study, in no number: " in said


def test_margins_that_were_not_registered_are_said(store):
    study = store.parent / "tiny.toml"
    study.write_text(study.read_text() + "\n[analysis]\nm_nec = 0.2\n")
    assert call(["report", str(study), "--store", str(store)]) == 0
    said = warnings_of(page_of(store))
    assert "The margins are not those that were registered before training" in said
    assert "m_nec 0.1 then, 0.2 now" in said


def test_results_of_another_tool_have_a_page(tmp_path, capsys):
    store = bring_in(tmp_path, "--set", "init_loss=5.5")
    assert call(["report", str(store)]) == 0
    said = capsys.readouterr().out
    assert "sweep.csv: 11 of 12 trials have a result" in said
    assert "Missing: on at 0.1 (2 of 3 seeds)." in said
    page = page_of(store, next((store / "report").glob("*.html")).stem)
    assert "Missing: on, n_layer 2, peak LR 0.1, seed 2." in warnings_of(page)
    assert "The bigram loss is not known" in warnings_of(page)
    assert "How the table was read" in page
    assert "Is QK-norm all that differs?" not in page


def test_a_diverged_row_without_an_initial_loss_is_one_sentence(tmp_path, capsys):
    store = bring_in(tmp_path)
    assert call(["report", str(store)]) == 2
    said = capsys.readouterr().err
    assert "non-finite and without init_loss" in said
    assert "off, n_layer 2, peak_lr 0.1, seed 0 (sweep.csv:8)" in said


def test_results_of_another_tool_cannot_be_trained(tmp_path, capsys):
    store = bring_in(tmp_path)
    assert call(["run", str(store)]) == 2
    assert "holds only results of another tool, which cannot be trained" in capsys.readouterr().err


def test_a_store_with_a_study_and_an_import_has_two_pages(store, tmp_path, capsys):
    (tmp_path / "sweep.csv").write_text(SWEEP)
    maps = [part for name in MAPS for part in ("--map", name)]
    file, into = str(tmp_path / "sweep.csv"), ["--store", str(store), "--set", "init_loss=5.5"]
    assert call(["import", file, *maps, *into]) == 0
    assert call(["report", str(store)]) == 0
    assert capsys.readouterr().out.count("page: ") == 2
    assert len(list((store / "report").glob("*.html"))) == 2


def test_real_public_results_make_a_page_that_makes_sense(shared, tmp_path, capsys):
    file = shared / "data" / "public_results" / "snimu_qknorm_29_65M.csv"
    maps = {
        "n_layer": "depth",
        "n_embd": "width",
        "qk_norm": "use_qk_norm",
        "seed": "seed",
        "final_loss": "final_val_loss",
    }
    options = [part for ours, theirs in maps.items() for part in ("--map", f"{ours}={theirs}")]
    for where in ("linear=False", "use_all_norm=False", "embedding_type=rotary"):
        options += ["--where", where]
    options += ["--set", "peak_lr=1e-3", "--store", str(tmp_path / "public")]
    assert call(["import", str(file), *options]) == 0
    assert call(["report", str(tmp_path / "public")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    # The known delta, +0.0805 with a standard error of 0.0232 over 5 seeds, decides nothing at
    # these margins: its interval holds both of them.
    depth_4 = next(line for line in said.split("n_layer ") if line.startswith("4, n_embd=384"))
    assert "Undecided at every peak LR with 5 seeds." in depth_4
    assert "the 95 % interval +0.016 to +0.145 is neither below 0.05 nor" in depth_4
    assert "Delta 0.1 is below seed noise in" in said
