"""`redline doctor`: does this installation compute what it should?"""

import platform
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from redline.files import to_json


def doctor(
    *,
    golden: Annotated[Path | None, Parameter(help="Replay a recorded nanoGPT run (.npz).")] = None,
) -> int:
    """Print versions, or replay a golden recording and print the largest differences as JSON."""
    from redline.train.device import use_one_thread

    use_one_thread()
    if golden is None:
        from redline.train.doctor import check

        found = {name: version(name) for name in ("redline", "torch", "numpy", "polars")}
        checks = check()
        print(to_json({"python": platform.python_version(), **found, "checks": checks}, indent=1))
        return 0 if all(checks.values()) else 1
    from redline.train.doctor import replay_golden

    print(to_json(replay_golden(golden)))
    return 0
