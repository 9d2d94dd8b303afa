"""Nothing is lost between a foreign table and our rows, and what cannot be read is named."""

import math
from collections import Counter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.files import UserError
from redline.foreign.intake import take_in
from redline.foreign.mapping import parse
from redline.foreign.source import Source, read
from redline.store.tables import SCHEMAS

PUBLIC = "data/public_results/snimu_qknorm_29_65M.csv"
MAPS = ("peak_lr=lr", "n_layer=depth", "qk_norm=arm", "seed=seed", "final_loss=val")
SNIMU = ["n_layer=depth", "qk_norm=use_qk_norm", "seed=seed", "final_loss=final_val_loss"]


def test_rows_have_the_columns_of_our_own_trials_and_where_they_come_from(take):
    frame = take("1e-3,2,on,0,3.5,x", group=["note"]).frame
    origin = {"origin": pl.String, "row": pl.Int64, "group.note": pl.String}
    assert frame.schema == pl.Schema(SCHEMAS["trials"] | origin)
    row = {name: value for name, value in frame.row(0, named=True).items() if value is not None}
    assert row == {
        "trial_id": "sweep.csv:2",
        "arm": "on",
        "n_layer": 2,
        "peak_lr": 1e-3,
        "seed": 0,
        "final_loss": 3.5,
        "origin": "sweep.csv",
        "row": 2,
        "group.note": "x",
    }


def test_a_value_for_all_rows_and_fields_of_a_trial(take):
    frame = take("1e-3,2,1,0,3.5,384", sets=["bias=no"], maps=[*MAPS, "n_embd=note"]).frame
    assert frame.select("bias", "n_embd").row(0) == (False, 384)
    with pytest.raises(UserError, match='--set init_loss: "nan" is no number'):
        take("1e-3,2,1,0,3.5,", sets=["init_loss=nan"])


def test_case_a05_a_row_with_a_missing_key_is_named_and_never_vanishes(take):
    """PEtab#298: grouping dropped rows whose key was missing, and nobody heard of it."""
    rows = ("1e-3,2,on,0,3.5,", "1e-3,,on,1,3.5,", "1e-3, ,off,0,3.5,", "1e-3,NA,off,1,3.5,")
    with pytest.raises(UserError) as error:
        take(*rows)
    message = str(error.value)
    assert 'n_layer, from column "depth": "" is empty' in message
    assert [f"line {n}" in message for n in (2, 3, 4, 5)] == [False, True, True, True]


def test_case_a07_a_loss_that_is_no_number_is_not_a_missing_one(take):
    """optuna#2809, #3205: a database turned nan into nothing, and the trial stayed running."""
    rows = [
        f"1e-3,2,on,{seed},{text},"
        for seed, text in enumerate(["3.5", "nan", "inf", "-inf", "", "NA"])
    ]
    taken = take(*rows)
    losses = taken.frame["final_loss"].to_list()
    assert losses[0] == 3.5 and math.isnan(losses[1])
    assert losses[2:] == [math.inf, -math.inf, None, None]
    assert taken.frame["non_finite"].to_list() == [None, "loss", "loss", "loss", None, None]
    assert taken.frame["non_finite_step"].null_count() == 6
    assert (taken.counts.without_result, taken.counts.non_finite) == (2, 3)


def test_a_bad_value_is_refused_once_with_its_column_and_its_lines(take):
    rows = [f"1e-3,2,on,{seed},exploded," for seed in range(20)]
    with pytest.raises(UserError) as error:
        take(*rows, "fast,2,on,99,3,")
    lines = str(error.value).splitlines()
    assert len(lines) == 2
    assert lines[0] == (
        'sweep.csv, line 22: peak_lr, from column "lr": "fast" is no number; write it as 0.001 or '
        "1e-3"
    )
    assert lines[1] == (
        'sweep.csv, line 2, 3, 4, 5, 6 and 15 more: final_loss, from column "val": "exploded" is '
        "no number; a number, nan or inf for a diverged run, or nothing is possible"
    )


def test_many_bad_values_are_counted_and_few_named(take):
    with pytest.raises(UserError) as error:
        take(*(f"1e-3,2,on,{n},x{n}," for n in range(50)))
    lines = str(error.value).splitlines()
    assert len(lines) == 6 and lines[-1] == "and 45 more such values"


def test_a_row_of_parquet_is_called_a_row(tmp_path, maps):
    path = tmp_path / "a.parquet"
    columns = {
        "lr": [1e-3, 0.0],
        "depth": [2, 2],
        "arm": ["on", "on"],
        "seed": [0, 1],
        "val": [3, 3],
    }
    pl.DataFrame(columns).write_parquet(path)
    with pytest.raises(UserError, match=r'a.parquet, row 2: peak_lr, .* "0.0" must be above 0'):
        take_in(read(path), parse(maps, (), (), (), ()))


LOSSES = [*MAPS[:-1], "losses=val"]


def test_a_list_of_losses_ends_in_the_final_one_and_begins_with_the_initial_one_if_asked(take):
    rows = [f'1e-3,2,on,{n},"{t}",' for n, t in enumerate(["[9, 3.5]", "[9, nan, 3]", "[nan]", ""])]
    taken = take(*rows, maps=LOSSES)
    losses = taken.frame["final_loss"].to_list()
    assert losses[0] == 3.5 and math.isnan(losses[1]) and math.isnan(losses[2])
    assert losses[3] is None
    assert taken.frame["non_finite"].to_list() == [None, "loss", "loss", None]
    assert taken.frame["non_finite_step"].null_count() == 4
    assert taken.frame["init_loss"].null_count() == 4
    first = take(*rows, maps=LOSSES, sets=["init_loss=first"]).frame["init_loss"]
    assert first.to_list() == [9, 9, None, None]
    named = take(*rows, maps=LOSSES, sets=["init_loss=10.8"]).frame["init_loss"]
    assert named.to_list() == [10.8] * 4


def test_losses_of_two_runs_of_a_trial_contradict_each_other_by_their_end_alone(take):
    same = ('1e-3,2,on,0,"[9, 3.5]",', '1e-3,2,on,0,"[8, 3.5]",')
    assert take(*same, maps=LOSSES).counts.duplicates == 1
    with pytest.raises(UserError, match="one trial has different results"):
        take(*same, maps=LOSSES, sets=["init_loss=first"])


def test_a_filter_chooses_rows_before_they_are_read(take):
    taken = take("1e-3,2,on,0,3.5,384.0", "x,,,,y,512", "1e-3,2,off,0,3,384", where=["note=384"])
    assert taken.frame["row"].to_list() == [2, 4]
    assert (taken.counts.read, taken.counts.filtered, taken.counts.kept) == (3, 1, 2)


def test_filters_add_up_and_one_that_matches_nothing_lists_what_there_is(take):
    rows = ("1e-3,2,on,0,3.5,a", "1e-3,4,on,0,3.5,b", "1e-3,2,off,0,3.5,")
    assert take(*rows, where=["depth=2", "note=a"]).counts.kept == 1
    with pytest.raises(UserError, match=r'in the 3 rows, note is a, b, ""$'):
        take(*rows, where=["note=c"])
    with pytest.raises(UserError, match="in the 2 rows that the filters before it leave, note is"):
        take(*rows, where=["depth=2", "note=b"])


def test_a_group_without_a_value_is_unknown_and_no_text(take):
    assert take("1e-3,2,on,0,3.5, ", group=["note"]).frame["group.note"].to_list() == [None]


CELLS = st.tuples(
    st.sampled_from(["1e-3", "0.001", "3e-3"]),
    st.sampled_from(["2", "4", "4.0"]),
    st.sampled_from(["on", "off", "True", "0", "l2"]),
    st.sampled_from(["0", "1", " 2"]),
    st.sampled_from(["", "nan", "inf", "3.5", "NA"]),
    st.sampled_from(["a", "b", ""]),
)


@given(st.lists(CELLS, min_size=1, max_size=40), st.booleans())
def test_every_row_is_accounted_for(rows, filtered):
    """Kept, filtered, an exact copy, or the whole table is refused: there is no fifth fate."""
    header = ("lr", "depth", "arm", "seed", "val", "note")
    source = Source("a.csv", "0" * 64, header, tuple(enumerate(rows, start=2)))
    where = ["note=a"] if filtered and any(row[5] == "a" for row in rows) else []
    mapping = parse(MAPS, (), where, ["note"], ())
    arm = {"on": "on", "True": "on", "off": "off", "0": "off", "l2": "l2"}
    loss = {"nan": "nan", "inf": "inf", "3.5": "3.5"}
    chosen = [row for row in rows if not where or row[5] == "a"]
    meant = Counter(
        (float(lr), float(depth), arm[word], int(seed), note, loss.get(val, ""))
        for lr, depth, word, seed, val, note in chosen
    )
    if len({key[:-1] for key in meant}) < len(meant):
        with pytest.raises(UserError, match="one trial has different results"):
            take_in(source, mapping)
        return
    taken = take_in(source, mapping)
    counts = taken.counts
    assert counts.read == len(rows) == counts.filtered + counts.duplicates + counts.kept
    assert counts.filtered == len(rows) - len(chosen)
    assert counts.kept == taken.frame.height == len(meant)
    assert counts.without_result == sum(key[-1] == "" for key in meant)
    assert counts.non_finite == sum(key[-1] in ("nan", "inf") for key in meant)
    lines = dict(source.rows)
    for row in taken.frame.iter_rows(named=True):
        assert arm[lines[row["row"]][2]] == row["arm"]


HOSTILE = st.one_of(
    st.sampled_from(["", "nan", "1", "1e-3", "on", "-", "[1, 2]", "1,5", "9" * 5000, "\x00", "a"]),
    st.text(max_size=8),
)


@given(
    st.lists(st.tuples(*[HOSTILE] * 6), min_size=1, max_size=8),
    st.sampled_from([MAPS, (*MAPS[:-1], "losses=val")]),
    st.sampled_from([(), ("note",)]),
)
def test_any_cells_are_accounted_for_or_refused(rows, maps, ignores):
    header = ("lr", "depth", "arm", "seed", "val", "note")
    source = Source("a.csv", "0" * 64, header, tuple(enumerate(rows, start=2)))
    try:
        taken = take_in(source, parse(maps, (), (), (), ignores))
    except UserError:
        return
    counts = taken.counts
    assert counts.read == counts.kept + counts.filtered + counts.duplicates + counts.superseded
    assert counts.superseded == 0 and counts.kept == taken.frame.height


STATES = st.sampled_from(["finished", "crashed", "running"])


@given(st.lists(st.tuples(CELLS, STATES), min_size=1, max_size=40))
def test_every_row_of_an_export_is_accounted_for(runs):
    """An unfinished run is kept as missing, a copy of such a run, or replaced by a finished one."""
    header = ("lr", "depth", "arm", "seed", "val", "note", "State", "Name", "Created", "Runtime")
    rows = [(*cells, state, f"r{n}", str(n), str(n)) for n, (cells, state) in enumerate(runs)]
    source = Source("a.csv", "0" * 64, header, tuple(enumerate(rows, start=2)))
    try:
        taken = take_in(source, parse(MAPS, (), (), ["note"], ()))
    except UserError as error:
        assert "one trial has different results" in str(error)  # noqa: PT017
        return
    counts, frame = taken.counts, taken.frame
    assert counts.read == len(runs) == counts.kept + counts.duplicates + counts.superseded
    finished = [row for row in rows if row[6] == "finished"]
    assert frame["final_loss"].count() <= len(finished)
    n_dead = sum(taken.unfinished.values())
    assert counts.superseded <= len(rows) - len(finished) - n_dead
    state = {row[7]: row[6] for row in rows}
    assert n_dead == sum(state[name] != "finished" for name in frame["trial_id"])


def test_the_paired_difference_of_a_public_sweep(shared):
    """snimu/attention-experiments: rotary, depth 4, width 384, five seeds."""
    where = ["linear=False", "embedding_type=rotary", "use_all_norm=False", "depth=4", "width=384"]
    mapping = parse(SNIMU, ["peak_lr=1e-3"], where, (), ())
    taken = take_in(read(shared / PUBLIC), mapping)
    assert (taken.counts.kept, taken.counts.filtered) == (10, 470)
    arms = taken.frame.pivot("arm", index="seed", values="final_loss")
    delta = arms["off"] - arms["on"]
    assert delta.len() == 5
    assert delta.mean() == pytest.approx(0.0805, abs=5e-5)
    assert delta.std() / 5**0.5 == pytest.approx(0.0232, abs=5e-5)


def test_a_public_sweep_with_copies_and_two_contradictions(shared):
    """480 rows are 300 runs: 140 of them stand there more than once, and two of these disagree."""
    source = read(shared / PUBLIC)
    groups = ["linear", "embedding_type", "use_all_norm", "width"]
    mapping = parse(SNIMU, ["peak_lr=1e-3"], (), groups, ())
    with pytest.raises(UserError) as error:
        take_in(source, mapping)
    message = str(error.value)
    assert "2 times over" in message
    assert "in line 247 but" in message and "in line 367" in message
    assert "in line 248 but" in message and "in line 368" in message

    column = {name: source.header.index(name) for name in [*groups, "depth", "use_qk_norm", "seed"]}
    runs = Counter(tuple(row[c] for c in column.values()) for _, row in source.rows)
    assert sum(n > 1 for n in runs.values()) == 140
    rest = tuple(row for row in source.rows if row[0] not in (367, 368))
    counts = take_in(Source(source.name, source.sha256, source.header, rest), mapping).counts
    assert (counts.kept, counts.duplicates) == (len(runs), len(rest) - len(runs)) == (300, 178)
