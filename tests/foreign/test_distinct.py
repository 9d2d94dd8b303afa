"""Copies of a row collapse and are counted; rows that contradict each other are refused."""

import pytest

from redline.files import UserError


def test_exact_duplicates_collapse_and_are_counted(take):
    rows = ("1e-3,2,on,0,nan,a", "0.001,2.0,TRUE,0,NaN,b", "1e-3,2,on,1,3,a")
    taken = take(*rows, ignore=["note"])
    assert taken.frame["row"].to_list() == [2, 4]
    assert (taken.counts.kept, taken.counts.duplicates) == (2, 1)


def test_rows_that_contradict_each_other_are_refused_with_what_tells_them_apart(take):
    rows = ("1e-3,2,on,0,3.5,a", "1e-3,2,on,0,3.6,b", "1e-3,2,on,1,,a", "1e-3,2,on,1,3,b")
    with pytest.raises(UserError) as error:
        take(*rows, ignore=["note"])
    message = str(error.value)
    assert "2 times over" in message
    assert "final_loss 3.5 in line 2 but final_loss 3.6 in line 3" in message
    assert "no result in line 4 but final_loss 3.0 in line 5" in message
    assert "these rows differ in note" in message
    assert "`--where note=VALUE`" in message and "`--group note`" in message
    assert take(*rows, where=["note=a"]).counts.kept == 2
    assert take(*rows, group=["note"]).counts.kept == 4
    assert take(*rows).found_groups == ("note",)


def test_rows_that_nothing_tells_apart_have_to_leave_the_file(take):
    with pytest.raises(UserError, match="no other column tells these rows apart"):
        take("1e-3,2,on,0,3.5,a", "1e-3,2,on,0,3.6,a")


def test_two_infinities_of_one_trial_contradict_each_other(take):
    with pytest.raises(UserError, match="final_loss inf in line 2 but final_loss -inf in line 3"):
        take("1e-3,2,on,0,inf,a", "1e-3,2,on,0,-inf,a")


def test_many_contradictions_are_counted_and_few_named(take):
    rows = [f"1e-3,2,on,{seed},{loss},a" for seed in range(50) for loss in (3.5, 3.6)]
    with pytest.raises(UserError) as error:
        take(*rows)
    lines = str(error.value).splitlines()
    assert "50 times over" in lines[0] and len(lines) == 8
    assert lines[6] == "and 45 more trials"
