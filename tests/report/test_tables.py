import polars as pl
import pytest
from polars.testing import assert_frame_equal
from sweeps import findings, parting

from redline.report.tables import tables, trial_table, write_tables


@pytest.fixture(scope="module")
def found():
    return findings()


def test_the_tables_of_the_page_in_reading_order(found):
    assert [t.name for t in tables(found)] == [
        "deltas",
        "robustness",
        "thresholds",
        "sensitivities",
        "optima",
        "steps",
        "mechanism",
        "cells",
    ]


def test_every_row_has_a_cell_for_each_column(found):
    for table in (*tables(found), trial_table(found)):
        assert table.rows
        assert {len(row) for row in table.rows} == {len(table.columns)}


def test_a_setting_has_a_column_when_there_are_several(found):
    mixed = findings(train__z_loss=1e-4).trials.with_columns(control=pl.lit("z_loss=0.0001"))
    two = type(found)(
        **{
            **{name: getattr(found, name) for name in found.__dataclass_fields__},
            "trials": pl.concat([found.trials, mixed]),
            "cells": pl.concat(
                [found.cells, found.cells.with_columns(control=pl.lit("z_loss=0.0001"))]
            ),
        }
    )
    cells = tables(two)[-1]
    assert cells.columns[0] == "setting"
    assert {len(row) for row in cells.rows} == {len(cells.columns)}


def test_a_trial_that_finished_leads_to_its_panel_and_a_missing_one_does_not():
    found = findings(loss=lambda a, n, r, s: None if s == 2 else parting(a, n, r, s))
    rows = trial_table(found).rows
    assert len(rows) == found.n_expected
    missing = [row for row in rows if row[4].text == "missing"]
    assert len(missing) == found.missing.height == 10
    assert all(not row[-1].trial_id for row in missing)
    assert all(row[-1].trial_id for row in rows if row not in missing)


def test_an_open_end_is_a_dash_and_no_number(found):
    row = next(
        row for row in tables(found)[2].rows if (row[1].text, row[2].text) == ("on", "unstable")
    )
    assert row[3].text == ">= 0.1 (highest tested)"
    assert row[4].text.startswith(">= 0.")
    assert row[5].text == "0.1 to –"


def test_one_seed_prints_no_spread():
    found = findings(n_seed=1)
    texts = [c.text for table in tables(found) for row in table.rows for c in row]
    assert not [text for text in texts if "±" in text]


def test_files_hold_what_the_findings_hold(found, tmp_path):
    write_tables(found, tmp_path)
    for name, frame in found.tables.items():
        assert_frame_equal(pl.read_parquet(tmp_path / f"{name}.parquet"), frame)
        header, *lines = (tmp_path / f"{name}.csv").read_text().splitlines()
        assert header.split(",") == frame.columns
        assert len(lines) == frame.height
