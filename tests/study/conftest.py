from collections.abc import Callable
from pathlib import Path

import pytest

from redline.files import UserError
from redline.study.spec import Study, load

HEAD = """
title = "tiny"
protocol = "nanogpt"
"""

BASE = """
seed = 0
[model]
qk_norm = "off"
[train]
peak_lr = 1e-3
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """A study file of a given text, with a title and a protocol in front."""

    def build(text: str, name: str = "tiny.toml", head: str = HEAD) -> Path:
        path = tmp_path / name
        path.write_text(head + text, "utf-8")
        return path

    return build


@pytest.fixture
def study(write: Callable[..., Path]) -> Callable[[str], Study]:
    """The study whose base is complete and to which a text adds sections such as `[axes]`."""
    return lambda text: load(write(BASE + text))


@pytest.fixture
def refusal(write: Callable[..., Path]) -> Callable[..., str]:
    """What a person reads when the study of a given text is refused."""

    def read(text: str, head: str = HEAD) -> str:
        path = write(text, head=head)
        with pytest.raises(UserError) as caught:
            load(path)
        return str(caught.value)

    return read
