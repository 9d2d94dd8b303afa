"""Tables as W&B and MLflow write them; the headers are those of real exports, shortened."""

import json

import pytest

from redline.files import UserError
from redline.foreign.exports import MLFLOW, WANDB, WANDB_API, WANDB_FLAT, recognised
from redline.foreign.intake import take_in
from redline.foreign.mapping import parse
from redline.foreign.source import read

WANDB_HEADER = (
    '"Name","Agent","State","Notes","User","Tags","Created","Runtime","Sweep",'
    '"lr","n_layer","qk_norm","seed","width","_step","_timestamp","train/loss","val/loss"'
)
WANDB_MAPS = [
    "peak_lr=lr",
    "n_layer=n_layer",
    "qk_norm=qk_norm",
    "seed=seed",
    "final_loss=val/loss",
]


def wandb_row(name, state, lr, arm, seed, loss, width=64):
    cells = [name, "", state, "-", "me", "", "2025-11-13T09:48:11.000Z", str(hash(name)), "1wfh"]
    cells += [lr, "2", arm, seed, width, "100", str(hash(name)), loss, loss]
    return ",".join(f'"{cell}"' for cell in cells)


@pytest.fixture
def wandb(write):
    """The intake of runs of a W&B export."""

    def taken(*runs, where=()):
        rows = [wandb_row(*run) for run in runs]
        path = write(text="\n".join([WANDB_HEADER, *rows]))
        return take_in(read(path), parse(WANDB_MAPS, (), where, (), ()))

    return taken


def test_the_runs_table_of_wandb_is_recognised_and_its_runs_keep_their_names(wandb):
    taken = wandb(
        ("good-sun-1", "finished", "1e-3", "true", "0", "3.5"),
        ("good-sun-2", "finished", "1e-3", "false", "0", "NaN"),
    )
    assert taken.tool == "W&B"
    assert taken.frame["trial_id"].to_list() == ["good-sun-1", "good-sun-2"]
    assert taken.frame["non_finite"].to_list() == [None, "loss"]


@pytest.mark.parametrize("state", ["crashed", "failed", "killed", "running", "preempted", ""])
@pytest.mark.parametrize("loss", ["3.5", "NaN", "oops"])
def test_only_a_finished_run_has_a_result(wandb, state, loss):
    """A run that crashed logged its last loss, or nan, before it died: neither is its result."""
    taken = wandb(
        ("a", "finished", "1e-3", "true", "0", "3.5"), ("b", state, "1e-3", "false", "0", loss)
    )
    assert taken.frame["final_loss"].to_list() == [3.5, None]
    assert taken.frame["non_finite"].null_count() == 2
    assert taken.unfinished == {state or "without a state": 1}
    assert (taken.counts.without_result, taken.counts.non_finite) == (1, 0)


def test_a_run_that_was_tried_again_yields_to_the_one_that_finished(wandb):
    taken = wandb(
        ("a", "crashed", "1e-3", "true", "0", "9"),
        ("b", "failed", "1e-3", "true", "0", ""),
        ("c", "finished", "1e-3", "true", "0", "3.5"),
        ("d", "crashed", "1e-3", "true", "1", "9"),
        ("e", "running", "1e-3", "true", "1", "9"),
    )
    assert taken.frame["trial_id"].to_list() == ["c", "d"]
    counts = taken.counts
    assert (counts.superseded, counts.duplicates, counts.kept) == (2, 1, 2)
    assert taken.unfinished == {"crashed": 1}


def test_what_a_run_that_died_did_not_say_is_no_setting(wandb):
    """Its last loss is 9 or nothing for every seed, as a setting would be."""
    taken = wandb(
        *(
            (f"{arm}{seed}{state}", state, "1e-3", arm, str(seed), loss)
            for arm in ("on", "off")
            for seed in (0, 1)
            for state, loss in (("crashed", ""), ("finished", f"3.{seed}"))
        )
    )
    assert taken.found_groups == ()
    assert (taken.counts.kept, taken.counts.superseded) == (4, 4)


def test_two_finished_runs_of_one_trial_still_contradict_each_other(wandb):
    with pytest.raises(UserError, match="one trial has different results"):
        wandb(
            ("a", "crashed", "1e-3", "true", "0", "9"),
            ("b", "finished", "1e-3", "true", "0", "3.5"),
            ("c", "finished", "1e-3", "true", "0", "3.6"),
        )


def test_a_run_that_died_before_it_said_what_it_was_is_refused_with_the_way_out(wandb):
    runs = (
        ("a", "finished", "1e-3", "true", "0", "3.5"),
        ("b", "failed", "", "", "", ""),
    )
    with pytest.raises(UserError, match=r"have not finished, and `--where` can leave them out"):
        wandb(*runs)
    assert wandb(*runs, where=["State=finished"]).counts.kept == 1


@pytest.mark.parametrize("names", [("a", "a"), ("a", ""), ("a", "b\x1b[31m"), ("a", "b" * 101)])
def test_names_that_name_no_run_are_not_used(wandb, names):
    first, second = names
    taken = wandb(
        (first, "finished", "1e-3", "true", "0", "3.5"),
        (second, "finished", "1e-3", "false", "0", "3.6"),
    )
    assert taken.frame["trial_id"].to_list() == ["sweep.csv:2", "sweep.csv:3"]


def test_what_a_run_of_wandb_says_of_itself_separates_nothing(wandb):
    runs = [
        (f"{arm}{seed}{width}", "finished", "1e-3", arm, str(seed), f"{seed}.{width}", width)
        for arm in ("on", "off")
        for seed in (0, 1)
        for width in (64, 128)
    ]
    taken = wandb(*runs)
    assert taken.found_groups == ("width",)
    assert {"Name", "Runtime", "_timestamp"} <= taken.unused.keys()


def test_runs_of_the_wandb_api_are_read_from_json_lines(tmp_path):
    runs = [
        {
            "name": f"run-{arm}-{width}",
            "state": "finished" if arm else "crashed",
            "config": {"lr": 1e-3, "depth": 2, "arm": arm, "seed": 0, "width": width},
            "summary": {"val": 3.5, "_runtime": 12.5, "host": "a"},
        }
        for arm in (True, False)
        for width in (64, 128)
    ]
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(map(json.dumps, runs)))
    maps = ["peak_lr=lr", "n_layer=depth", "qk_norm=arm", "seed=seed", "final_loss=val"]
    taken = take_in(read(path), parse(maps, (), (), (), ()))
    assert taken.tool == "W&B"
    assert taken.found_groups == ("config.width",)
    assert taken.mapping.map["peak_lr"] == "config.lr"
    assert taken.mapping.map["final_loss"] == "summary.val"
    assert taken.frame["trial_id"][0] == "run-True-64"
    assert taken.frame["final_loss"].to_list() == [3.5, 3.5, None, None]


MLFLOW_HEADER = (
    ",run_id,experiment_id,status,artifact_uri,start_time,end_time,metrics.val_loss,metrics.acc,"
    "params.lr,params.depth,params.qk_norm,params.seed,params.width,tags.mlflow.runName"
)


def mlflow_row(n, status, arm, seed, loss, width):
    return (
        f"{n},id{n},1,{status},file:///a/{n},2024-05-01 10:0{n}:00,2024,{loss},0.5,"
        f"1e-3,2,{arm},{seed},{width},run-{n % 2}"
    )


def test_an_mlflow_table_is_recognised_and_its_prefixes_need_not_be_written(write):
    rows = [
        mlflow_row(0, "FINISHED", "True", 0, 3.5, 64),
        mlflow_row(1, "FAILED", "False", 0, 3.25, 64),
        mlflow_row(2, "FINISHED", "True", 0, 3.5, 128),
        mlflow_row(3, "RUNNING", "False", 0, "", 128),
    ]
    path = write(text="\n".join([MLFLOW_HEADER, *rows]))
    maps = ["peak_lr=lr", "n_layer=depth", "qk_norm=qk_norm", "seed=seed", "final_loss=val_loss"]
    taken = take_in(read(path), parse(maps, (), (), (), ()))
    assert taken.tool == "MLflow"
    assert taken.found_groups == ("params.width",)
    # Two runs have one runName, so their ids name them.
    assert taken.frame["trial_id"].to_list() == ["id0", "id1", "id2", "id3"]
    assert taken.frame["final_loss"].to_list() == [3.5, None, 3.5, None]
    assert taken.unfinished == {"FAILED": 1, "RUNNING": 1}


@pytest.mark.parametrize(
    ("header", "export"),
    [
        (("Name", "State", "Created", "Runtime", "lr"), WANDB),
        (("name", "state", "config.lr", "summary.loss"), WANDB_API),
        (("name", "state", "lr", "loss", "_timestamp", "_step"), WANDB_FLAT),
        (("run_id", "experiment_id", "status", "artifact_uri", "params.lr"), MLFLOW),
        (("name", "state", "lr"), None),
        (("run_id", "status"), None),
    ],
)
def test_an_export_is_known_by_its_columns(header, export):
    assert recognised("f", header) == export


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (("_step", "_runtime", "_timestamp", "loss"), "history of a W&B run; it has a row a step"),
        (("Step", "a - loss", "a - loss__MIN", "a - loss__MAX"), "the data of a W&B chart"),
        (("", "summary", "config", "name"), "write one JSON object a line"),
    ],
)
def test_an_export_with_no_row_a_run_is_refused_with_the_right_one(header, why):
    with pytest.raises(UserError, match=why):
        recognised("f", header)
