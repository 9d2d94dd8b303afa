"""`redline doctor`: does this installation compute what it should?"""

import platform
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from redline.cli import show
from redline.files import to_json


def doctor(
    *,
    device: Annotated[
        Literal["cpu", "cuda", "mps"], Parameter(help="The device to examine.")
    ] = "cpu",
    golden: Annotated[Path | None, Parameter(help="Replay a recorded nanoGPT run (.npz).")] = None,
    as_json: Annotated[bool, Parameter("--json", help="Print JSON alone.")] = False,
) -> int:
    """Whether a device computes what the CPU does, or the largest differences to a recording.

    Exit code 1 if a check fails without which nothing may be trained there.
    """
    from redline.train.device import use_one_thread

    use_one_thread()
    if golden is not None:
        from redline.train.doctor import replay_golden

        print(to_json(replay_golden(golden)))
        return 0
    from redline.train.selftest import Device, check, failed

    checks = check(Device(device))
    versions = {name: version(name) for name in ("redline", "torch", "numpy", "polars")}
    found = {"python": platform.python_version(), **versions, "device": device}
    if as_json:
        print(to_json({**found, "checks": [vars(one) for one in checks]}, indent=1))
    else:
        console = show.console()
        console.print(", ".join(f"{name} {value}" for name, value in found.items()))
        for one in checks:
            state = "holds" if one.holds else "FAILS" if one.is_required else "lacks"
            console.print(f"  {state}  {one.name}: {one.detail}")
    return 1 if failed(checks) else 0
