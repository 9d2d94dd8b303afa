"""Keep a machine from idling to sleep during a sweep. A closed lid still sleeps."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Generator


@contextlib.contextmanager
def awake() -> Generator[bool, None, None]:
    """Inhibit idle sleep, not the display, for the body of a `with`; False where it cannot.

    macOS only: a Linux desktop asks its session manager, which a remote shell has none of.
    """
    if sys.platform != "darwin" or shutil.which("caffeinate") is None:
        yield False
        return
    with subprocess.Popen(["caffeinate", "-i", "-w", str(os.getpid())]) as inhibitor:
        try:
            yield True
        finally:
            inhibitor.terminate()
