from redline.config.trial import QKNorm
from redline.config.words import ARMS, listed, nearest, shown


def test_an_arm_has_one_list_of_spellings():
    assert {word for word, component in ARMS.items() if component is None} == {
        "off", "false", "no", "0",
    }  # fmt: skip
    assert ARMS["on"] == ARMS["1"] == ARMS["rmsnorm"] == QKNorm()
    assert ARMS["l2"] == QKNorm(kind="l2")


def test_values_are_shown_as_they_were_written():
    assert shown('é "x"') == '"é \\"x\\""'
    assert nearest("dept", ["depth", "lr"]) == '; did you mean "depth"?'
    assert nearest("xyz", ["depth"]) == ""
    assert listed(["a", "", 3], 3) == 'a, "", 3'
    assert listed(range(5), 2) == "0, 1 and 3 more"
