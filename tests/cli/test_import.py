"""`redline import`, as a person types it."""

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
        "Not used: 'time'.",
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
        (["sweep.csv", *OPTIONS], "one trial has different results"),
        (["sweep.csv", *OPTIONS, "--map", "n_emb=width"], 'did you mean "n_embd"?'),
        (["sweep.csv", *OPTIONS, "--group", "widht"], 'did you mean "width"?'),
        (["sweep.csv", *OPTIONS, "--where", "width=1"], "width is 384, 512"),
        (["sweep.csv", *OPTIONS, "--where", "width"], "two names with = between"),
        (["sweep.csv", *OPTIONS[:-2], "--map", "final_loss=arm"], '"True" is no number: line 2'),
    ],
)
def test_bad_input_is_a_clear_sentence_and_leaves_no_store(sweep, capsys, arguments, message):
    assert call(["import", *arguments, "--store", "s"]) == 2
    out, err = capsys.readouterr()
    assert message in err and out == ""
    assert "Traceback" not in err
    assert not (sweep / "s").exists()


def test_the_store_has_to_be_named(sweep, capsys):
    assert call(["import", "sweep.csv", *OPTIONS]) == 2
    assert "--store" in "".join(capsys.readouterr())
