"""`redline import`, as a person types it."""

import json

import polars as pl
import pytest

from redline.cli.app import call
from redline.foreign import rows
from redline.store.layout import Store

OPTIONS = [
    part
    for pair in ("peak_lr=lr", "n_layer=depth", "qk_norm=arm", "seed=seed", "final_loss=val")
    for part in ("--map", pair)
]
TABLE = """lr,depth,arm,seed,val,width,time
1e-3,2,True,0,3.5,384,1
1e-3,2,False,0,nan,384,2
1e-3,2,False,0,nan,384,3
1e-3,2,False,1,,384,4
1e-3,2,False,0,4.5,512,5
"""


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """The working directory holds a table and nothing else."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sweep.csv").write_text(TABLE)
    return tmp_path


def test_the_account_of_every_row_is_printed(sweep, capsys):
    arguments = ["import", "sweep.csv", *OPTIONS, "--where", "width=384", "--store", "my store"]
    assert call(arguments) == 0
    out = " ".join(capsys.readouterr().out.split())
    for part in (
        "sweep.csv: 5 rows read, 3 kept, 1 left out by --where, 1 exact duplicate collapsed.",
        "1 kept without a final loss",
        "1 diverged, and the analysis needs the loss that they count at",
        "Not used: 'time' (another value in every row).",
        "Missing: 2 of 4 cells of the full product: off, n_layer 2, peak LR 0.001, seed 1; on, ",
        "`redline report 'my store'`",
    ):
        assert part in out, part
    store = Store(sweep / "my store")
    assert rows.load(store, rows.imports(store)[0]).height == 3


def test_groups_and_values_for_all_rows(sweep, capsys):
    more = ["--group", "width", "--set", "init_loss=10.8", "--set", "weight_decay=0.1"]
    assert call(["import", "sweep.csv", *OPTIONS, *more, "--store", "s"]) == 0
    assert "diverged" not in capsys.readouterr().out.replace("a run that diverged needs", "")
    frame = rows.load(Store(sweep / "s"), rows.imports(Store(sweep / "s"))[0])
    assert frame["group.width"].to_list() == ["384", "384", "384", "512"]
    assert frame["weight_decay"].unique().to_list() == [0.1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.csv", *OPTIONS], "none.csv: No such file"),
        ([".", *OPTIONS], "this is a directory"),
        (["sweep.csv"], "--map peak_lr=COLUMN is needed"),
        (["sweep.csv", *OPTIONS, "--ignore", "width"], "one trial has different results"),
        (["sweep.csv", *OPTIONS, "--ignore", "widht"], 'did you mean "width"?'),
        (["sweep.csv", *OPTIONS, "--mapping", "none.toml"], "--mapping none.toml: No such file"),
        (["sweep.csv", *OPTIONS, "--map", "n_emb=width"], 'did you mean "n_embd"?'),
        (["sweep.csv", *OPTIONS, "--group", "widht"], 'did you mean "width"?'),
        (["sweep.csv", *OPTIONS, "--where", "width=1"], "width is 384, 512"),
        (["sweep.csv", *OPTIONS, "--where", "width"], "two names with = between"),
        (
            ["sweep.csv", *OPTIONS[:-2], "--map", "final_loss=arm"],
            'line 2: final_loss, from column "arm": "True"',
        ),
    ],
)
def test_bad_input_is_a_clear_sentence_and_leaves_no_store(sweep, capsys, arguments, message):
    assert call(["import", *arguments, "--store", "s"]) == 2
    out, err = capsys.readouterr()
    assert message in err and out == ""
    assert "Traceback" not in err
    assert not (sweep / "s").exists()


def test_what_looks_like_a_setting_separates_rows_and_can_be_dropped(sweep, capsys):
    assert call(["import", "sweep.csv", *OPTIONS, "--store", "s"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Grouped by 'width': rows that differ there are never pooled; --ignore COLUMN" in out
    assert "One arm alone, so nothing to compare: n_layer 2, width=512 (off alone)." in out
    (sweep / "sweep.csv").write_text(TABLE.replace("0,4.5,512", "2,4.5,512"))
    assert call(["import", "sweep.csv", *OPTIONS, "--ignore", "width", "--store", "s"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Grouped" not in out and "'width' (as --ignore asks)" in out


def test_a_stored_map_is_given_again_and_options_override_it(sweep, capsys):
    more = ["--set", "init_loss=10.8"]
    assert call(["import", "sweep.csv", *OPTIONS, *more, "--store", "s"]) == 0
    (stored,) = (sweep / "s" / "imports").glob("*/map.toml")
    again = ["import", "sweep.csv", "--mapping", str(stored), "--store", "t"]
    assert call(again) == 0
    first, second = (Store(sweep / name) for name in "st")
    (sha256,) = rows.imports(first)
    assert rows.load(second, sha256).equals(rows.load(first, sha256))
    assert call([*again, "--set", "init_loss=9", "--where", "width=384"]) == 0
    frame = rows.load(second, sha256)
    assert frame["init_loss"].unique().to_list() == [9.0] and frame.height == 3


def test_losses_of_a_run_in_json_lines_and_in_parquet(sweep, capsys):
    runs = [
        {"opt": {"lr": 1e-3}, "depth": 2, "arm": arm, "seed": 0, "losses": [9.0, loss]}
        for arm, loss in ((True, 3.5), (False, float("nan")))
    ]
    (sweep / "a.jsonl").write_text("\n".join(map(json.dumps, runs)))
    pl.DataFrame(runs).write_parquet("a.parquet")
    options = ["--map", "peak_lr=opt.lr", *OPTIONS[2:8], "--map", "losses=losses"]
    for name in ("a.jsonl", "a.parquet"):
        arguments = ["import", name, *options, "--set", "init_loss=first", "--store", name + ".s"]
        assert call(arguments) == 0
        assert "diverged" not in capsys.readouterr().out
        store = Store(sweep / (name + ".s"))
        frame = rows.load(store, rows.imports(store)[0])
        assert frame["init_loss"].to_list() == [9.0, 9.0]
        assert frame["non_finite"].to_list() == [None, "loss"]


def test_an_export_is_named_and_its_unfinished_runs_are_missing(sweep, capsys):
    header = (
        "run_id,experiment_id,status,artifact_uri,params.lr,params.depth,params.arm,params.seed"
    )
    table = f"""{header},metrics.val
a,1,FINISHED,u,1e-3,2,True,0,3.5
b,1,FINISHED,u,1e-3,2,False,0,
c,1,FAILED,u,1e-3,2,True,1,3.5
d,1,FINISHED,u,1e-3,2,True,1,3.4
e,1,RUNNING,u,1e-3,2,False,1,3.6
"""
    (sweep / "runs.csv").write_text(table)
    assert call(["import", "runs.csv", *OPTIONS, "--store", "s"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for part in (
        "runs.csv (MLflow export): 5 rows read, 4 kept, 0 left out by --where, 0 exact duplicates",
        "collapsed, 1 unfinished run that another row finished left out.",
        "Not finished, so missing and never diverged: 1 RUNNING.",
        "1 kept without a final loss count as missing; a run that diverged needs nan or inf there",
        ", and pandas writes a metric of nan as nothing.",
        "Missing: 2 of 4 cells of the full product",
    ):
        assert part in out, part


def test_a_handful_of_missing_cells_is_named_and_all_are_counted(sweep, capsys):
    lines = [f"1e-{n},2,True,{n},3.5,384,1" for n in range(1, 6)]
    (sweep / "sweep.csv").write_text("\n".join([TABLE.splitlines()[0], *lines]) + "\n")
    assert call(["import", "sweep.csv", *OPTIONS, "--store", "s"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Missing: 20 of 25 cells of the full product: on, n_layer 2, peak LR 1e-05" in out
    assert out.count("peak LR") == 5 and "; and 15 more." in out


def test_the_store_has_to_be_named(sweep, capsys):
    assert call(["import", "sweep.csv", *OPTIONS]) == 2
    assert "--store" in "".join(capsys.readouterr())
