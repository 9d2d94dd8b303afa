import json

import pytest

from redline.files import UserError
from redline.foreign import jsonl
from redline.foreign.source import read


@pytest.fixture
def table(tmp_path):
    """What a JSON Lines file of some lines holds."""

    def read_lines(*lines):
        path = tmp_path / "a.jsonl"
        path.write_text("\n".join(lines), "utf-8")
        return read(path)

    return read_lines


def test_nested_names_are_dotted_and_what_is_absent_is_empty(table):
    source = table('{"config": {"lr": 1e-3, "opt": {"name": "adam"}}, "ok": true}', '{"b": null}')
    assert source.header == ("config.lr", "config.opt.name", "ok", "b")
    assert source.rows == ((1, ("1e-3", "adam", "true", "")), (2, ("", "", "", "")))
    assert source.unit == "line"


def test_a_number_keeps_the_digits_that_it_is_written_with(table):
    digits = "9" * 5000
    source = table(f'{{"a": 0.1000, "b": {digits}, "c": 1.{digits}, "d": "0.1000"}}')
    assert source.rows == ((1, ("0.1000", digits, f"1.{digits}", "0.1000")),)


def test_case_a07_pythons_nan_in_json_is_not_a_missing_value(table):
    """optuna#2809: a run that diverged came back as one that had measured nothing."""
    written = json.dumps(
        {"a": float("nan"), "b": float("-inf"), "c": None, "d": [1.0, float("inf")]}
    )
    assert table(written).rows == ((1, ("NaN", "-Infinity", "", "[1.0, Infinity]")),)


def test_a_list_is_a_cell_in_brackets(table):
    assert table('{"a": [3.5, null, true, [1], {"b": 2}]}').rows == (
        (1, ("[3.5, , true, [1], {b: 2}]",)),
    )


def test_a_line_number_leads_to_the_object_below_blank_lines_and_other_separators(table):
    source = table('{"a": "x\u2028y"}', "", "  ", '{"a": 2}\r')
    assert [line for line, _ in source.rows] == [1, 4]


def test_half_a_character_becomes_a_mark_and_not_an_error(table):
    assert table('{"a": "\\ud800"}').rows == ((1, ("?",)),)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"a": 1', "line 2, column 8: this is no JSON"),
        ('{"a": 1} {"a": 2}', "line 2, column 10: this is no JSON"),
        ("{'a': 1}", "line 2, column 2: this is no JSON"),
        ("[1]", "line 2: this is no JSON object; write one in braces a line"),
        ("NaN", "line 2: this is no JSON object"),
        ('{"a": 1, "a": 2}', 'line 2: "a" stands there twice; drop one'),
        ('{"a": {"b": 1}, "a.b": 2}', 'line 2: "a.b" stands there twice; drop one'),
        ('{"a": ' + '{"a": ' * 100_000, "line 2: this object is nested too deeply"),
        ('{"a": ' + "[" * 100_000, "line 2: this object is nested too deeply"),
    ],
)
def test_a_line_that_is_no_row_is_one_sentence(table, line, why):
    with pytest.raises(UserError) as error:
        table('{"a": 1}', line)
    assert why in str(error.value) and "\n" not in str(error.value)


def test_objects_that_share_no_names_do_not_fill_the_memory(table, monkeypatch):
    monkeypatch.setattr(jsonl, "MAX_CELLS", 100)
    with pytest.raises(UserError, match="11 columns by line 11 are too many"):
        table(*(f'{{"name{n}": 1}}' for n in range(1000)))


def test_objects_that_hold_nothing_are_no_table(table):
    with pytest.raises(UserError, match="these objects hold nothing"):
        table("{}", "{}")


def test_another_encoding_is_refused(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(UserError, match="not UTF-8"):
        read(path)
