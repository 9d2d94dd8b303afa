import csv

import pytest

from redline.files import UserError
from redline.foreign.source import read


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_table_is_the_same_however_it_is_written(tmp_path, separator, end, mark):
    text = end.join(separator.join(row) for row in (["lr", " depth "], ["nan", " on"], ["1", ""]))
    path = tmp_path / "a.csv"
    path.write_bytes((mark + text + end).encode())
    source = read(path)
    assert source.header == ("lr", "depth")
    assert source.rows == ((2, ("nan", " on")), (3, ("1", "")))
    assert source.unit == "line"


def test_a_line_number_leads_to_the_row(write):
    """A quoted cell may hold line breaks, and a blank line is no row."""
    source = read(write(text='a,b\n1,"x\ny"\n\n2,z\n3,w\n'))
    assert [line for line, _ in source.rows] == [2, 5, 6]
    assert source.rows[0][1] == ("1", "x\ny")


def test_a_cell_may_hold_all_losses_of_a_long_run(write):
    """Python's reader stops at 131,072 characters unless it is told."""
    before = csv.field_size_limit()
    losses = str([3.123456789] * 20_000)
    assert read(write(text=f'a,b\n1,"{losses}"\n')).rows == ((2, ("1", losses)),)
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a,b\n", "a header and no row"),
        ("a,b,a\n1,2,3\n", 'two columns have the name "a"'),
        ("a,b\n1,2\n1\n1,2,3\n", "2 columns, which is not so in line 3, 4"),
        ('a,b\n1,"2\n', "the row at line 2 is damaged"),
        ('a,b\n1,"2"3\n', "the row at line 2 is damaged"),
    ],
)
def test_a_file_that_is_no_table_is_one_clear_sentence(write, text, why):
    path = write(text=text)
    with pytest.raises(UserError, match=why) as error:
        read(path)
    assert str(error.value).startswith(f"{path}: ")


@pytest.mark.parametrize("content", [b"a,b\n\xff\xfe,1\n", "a,b\n1,2\n".encode("utf-16")])
def test_another_encoding_is_refused(tmp_path, content):
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(UserError, match="not UTF-8 text; save it as UTF-8"):
        read(path)
