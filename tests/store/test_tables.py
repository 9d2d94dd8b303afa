import json
import math

import polars as pl
import pytest
from fakes import DIVERGES, TOKENS, make_store, make_trial, record
from polars.testing import assert_frame_equal

from redline.config.edit import field_paths
from redline.config.identity import LOCATORS, Tokens
from redline.store import tables
from redline.store.layout import Store


@pytest.fixture
def spy(monkeypatch):
    """The trials whose files are read."""
    read = []
    real = tables._rows
    monkeypatch.setattr(tables, "_rows", lambda store, name: read.append(name) or real(store, name))
    return read


def frames(store, ids):
    loaded = tables.load(store, ids)
    return loaded.trials, loaded.series, loaded.probes


def test_an_empty_store_gives_empty_tables_with_all_columns(tmp_path):
    store, ids = make_store(tmp_path, seeds=[0])
    empty = frames(store, ids)
    record(store, ids[0])
    full = frames(store, ids)
    for before, after in zip(empty, full, strict=True):
        assert before.height == 0 < after.height
        assert before.schema == after.schema
    assert frames(Store(tmp_path / "new").create(), [])[0].height == 0


def test_a_trial_is_one_row_with_every_scientific_field_by_its_own_name(tmp_path):
    store = make_store(tmp_path, seeds=[])[0]
    name = store.put_trial(make_trial(seed=7, n_layer=4, qk_norm={"kind": "l2"}), TOKENS)
    record(store, name)
    (row,) = tables.load(store, [name]).trials.to_dicts()
    leaves = [path.rpartition(".")[2] for path in field_paths() if path not in LOCATORS]
    assert len(set(leaves)) == len(leaves)
    assert set(leaves) <= row.keys()
    assert row["trial_id"] == name
    assert (row["arm"], row["n_layer"], row["peak_lr"], row["seed"]) == ("l2", 4, 1e-3, 7)
    assert json.loads(row["qk_norm"])["kind"] == "l2"
    assert row["token_sha256"] == TOKENS.token_sha256
    assert row["steps_done"] == 60
    assert row["bigram_loss"] == 2.5


def test_the_final_norm_s_input_is_a_layer_without_attention(tmp_path):
    store, ids = make_store(tmp_path, seeds=[0])
    record(store, ids[0])
    probes = tables.load(store, ids).probes.filter(pl.col("step") == 10)
    assert probes["layer"].to_list() == [0, 1, 2]
    assert probes["max_logit"].to_list() == [1.5, 1.5, None]
    assert probes["outlier_ratio"].to_list() == [3.0, 3.0, 3.0]
    assert probes["massive"].to_list() == [False, False, False]
    assert probes["log_z_sq"].to_list() == [30.0, 30.0, 30.0]


def test_case_a07_nan_inf_and_missing_stay_three_things(tmp_path):
    """Databases turned NaN into NULL and refused inf, and the trial stayed `running`."""
    store, ids = make_store(tmp_path, seeds=[DIVERGES])
    record(store, ids[0])
    trials, series, probes = frames(store, ids)
    assert trials["final_loss"].to_list() == [None]
    assert trials["non_finite"].to_list() == ["loss"]
    assert trials["non_finite_step"].to_list() == [7]
    last = series.row(-1, named=True)
    assert math.isnan(last["loss"])
    assert last["grad_norm"] == math.inf
    assert last["update_norm"] is None
    assert series["loss"].null_count() == 1  # step 0 has no training loss
    assert probes["max_logit"].to_list() == [math.inf, math.inf, None]
    assert probes["kurtosis_mean"].null_count() == 3
    assert probes["kurtosis_max"].is_nan().all()


def test_case_d08_tokens_that_changed_under_us_make_other_trials(tmp_path):
    """A hosted corpus changed; the name stayed. The hash is in the id and in every row."""
    store, ids = make_store(tmp_path, seeds=[0])
    changed = Tokens(token_sha256="c" * 64, tokenizer_sha256=TOKENS.tokenizer_sha256)
    store.put_corpus(changed.model_dump() | {"bigram_loss": 2.7})
    ids.append(store.put_trial(make_trial(), changed))
    for name in ids:
        record(store, name)
    trials = tables.load(store, ids).trials
    assert ids[0] != ids[1]
    assert trials["token_sha256"].to_list() == ["a" * 64, "c" * 64]
    assert trials["bigram_loss"].to_list() == [2.5, 2.7]


def test_tables_that_were_deleted_come_back_the_same(tmp_path):
    store, ids = make_store(tmp_path, seeds=[2, 0, DIVERGES, 1])
    for name in ids[:2]:
        record(store, name)
    tables.load(store, ids)
    for name in ids[2:]:
        record(store, name)
    before = frames(store, ids)
    for path in store.tables.iterdir():
        path.unlink()
    for old, new in zip(before, frames(store, ids), strict=True):
        assert_frame_equal(old, new)


@pytest.mark.parametrize("name", ["trials", "series", "probes"])
def test_one_deleted_damaged_or_outdated_table_is_built_anew(tmp_path, name):
    store, ids = make_store(tmp_path, seeds=range(2))
    for trial_id in ids:
        record(store, trial_id)
    before = frames(store, ids)
    path = store.tables / f"{name}.parquet"
    for spoil in (
        path.unlink,
        lambda: path.write_bytes(b"PAR1 and then nothing"),
        lambda: pl.DataFrame({"trial_id": ["x"], "old": [1]}).write_parquet(path),
    ):
        spoil()
        for old, new in zip(before, frames(store, ids), strict=True):
            assert_frame_equal(old, new)


def test_only_new_trials_are_read(tmp_path, spy):
    store, ids = make_store(tmp_path, seeds=range(31), n_step=3)
    for name in ids[:30]:
        record(store, name)
    assert tables.load(store, ids).trials.height == 30
    spy.clear()
    record(store, ids[30])
    assert tables.load(store, ids).trials.height == 31
    assert spy == [ids[30]]
    spy.clear()
    written = (store.tables / "series.parquet").stat().st_mtime_ns
    assert tables.load(store, ids).series.height == 31 * 4
    assert spy == []
    assert (store.tables / "series.parquet").stat().st_mtime_ns == written


def test_rows_come_in_the_order_of_the_ids_and_of_the_steps(tmp_path):
    store, ids = make_store(tmp_path, seeds=range(4), n_step=11)
    for name in ids:
        record(store, name)
    for order in (ids, ids[::-1], ids[2:]):
        trials, series, probes = frames(store, order)
        assert trials["trial_id"].to_list() == order
        assert series.select("trial_id", "step").rows() == [
            (n, s) for n in order for s in range(12)
        ]
        assert probes.select("trial_id", "step", "layer").rows() == [
            (n, s, layer) for n in order for s in (0, 10) for layer in range(3)
        ]


def test_a_damaged_trial_is_listed_and_in_no_table(tmp_path):
    store, ids = make_store(tmp_path, seeds=range(3))
    for name in ids:
        record(store, name)
    tables.load(store, ids)
    store.series(ids[0]).write_bytes(store.series(ids[0]).read_bytes().replace(b"0.1", b"0.2", 1))
    store.finished(ids[1]).write_text("{}")
    for _ in range(2):
        loaded = tables.load(store, ids)
        assert loaded.damaged == {ids[0]: ("series.jsonl",), ids[1]: ("finished.json",)}
        assert loaded.trials["trial_id"].to_list() == [ids[2]]
        assert loaded.series["trial_id"].unique().to_list() == [ids[2]]


def test_a_trial_whose_result_was_removed_leaves_the_tables(tmp_path):
    store, ids = make_store(tmp_path, seeds=range(2))
    for name in ids:
        record(store, name)
    tables.load(store, ids)
    store.finished(ids[0]).unlink()
    assert tables.load(store, ids).trials["trial_id"].to_list() == [ids[1]]
    record(store, ids[0])
    assert tables.load(store, ids).series.height == 2 * 61


def test_a_kill_between_two_tables_doubles_no_row(tmp_path, monkeypatch):
    store, ids = make_store(tmp_path, seeds=range(2))
    record(store, ids[0])
    tables.load(store, ids)
    record(store, ids[1])

    def killed(path, value):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(tables, "write_json", killed)
        with pytest.raises(KeyboardInterrupt):
            tables.load(store, ids)
    assert [frame.height for frame in frames(store, ids)] == [2, 122, 2 * 7 * 3]
