"""Tables of another tool as text, and how to read them."""

from pathlib import Path

import pytest

from redline.foreign.intake import take_in
from redline.foreign.mapping import parse
from redline.foreign.source import read

MAPS = ("peak_lr=lr", "n_layer=depth", "qk_norm=arm", "seed=seed", "final_loss=val")
HEADER = "lr,depth,arm,seed,val,note"


@pytest.fixture
def maps():
    return MAPS


@pytest.fixture
def write(tmp_path):
    """Write lines under the usual header, or any text as it is; the path of the file."""

    def written(*lines: str, text: str | None = None, name: str = "sweep.csv") -> Path:
        path = tmp_path / name
        path.write_text("\n".join([HEADER, *lines]) + "\n" if text is None else text, "utf-8")
        return path

    return written


@pytest.fixture
def take(write):
    """The intake of lines under the usual header."""

    def taken(*lines: str, maps=MAPS, sets=(), where=(), group=(), ignore=()):
        return take_in(read(write(*lines)), parse(maps, sets, where, group, ignore))

    return taken
