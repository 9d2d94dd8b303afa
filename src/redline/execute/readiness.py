"""Whether a device may train: its self-test, run in a process of its own and remembered.

The test belongs to `redline.train.selftest`; this module loads no torch. What has passed is kept
for the device, its machine and the software; a failure is asked again.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from redline.config.identity import digest
from redline.execute.process import worker_environment
from redline.execute.provenance import provenance
from redline.files import UserError, write_json

COMMAND = (sys.executable, "-m", "redline.train.selftest")
MACHINE = ("os", "cpu", "python", "redline", "torch", "numpy")


def failed_checks(kind: str, memory: Path, command: Sequence[str] = COMMAND) -> list[str]:
    """The required checks that the device `kind` fails here; `memory` is a directory for passes.

    Raises:
        UserError: the self-test itself could not run.
    """
    here = provenance("")
    passed = memory / f"{kind}-{digest([kind, *(here[name] for name in MACHINE)])}.json"
    if passed.exists():
        return []
    done = subprocess.run(
        [*command, kind], capture_output=True, text=True, env=worker_environment(), check=False
    )
    try:
        found = json.loads(done.stdout)["failed"]
    except (json.JSONDecodeError, KeyError, TypeError):
        last = (done.stderr.strip() or "no output").splitlines()[-1]
        raise UserError(f"device {kind}: its self-test did not run ({last})") from None
    if not found:
        memory.mkdir(parents=True, exist_ok=True)
        write_json(passed, {name: here[name] for name in MACHINE})
    return [str(name) for name in found]
