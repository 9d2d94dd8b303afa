"""Where and with what a trial was trained: facts that never enter its identity."""

import os
import platform
import socket
from importlib.metadata import version
from pathlib import Path
from typing import Any

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
"""What the numerical libraries read when they load; setting them later has no effect."""


FAILED_CHECKS = "REDLINE_FAILED_CHECKS"
"""What a device failed in its self-test, set by a parent that was told to train all the same."""


def provenance(executor: str) -> dict[str, Any]:
    """The host, its software and the threads of this process, without loading torch."""
    overridden = os.environ.get(FAILED_CHECKS)
    return ({"failed_checks": overridden} if overridden else {}) | {
        "host": socket.gethostname(),
        "os": platform.platform(),
        "cpu": _cpu_name(),
        "n_thread": int(os.environ.get(THREAD_VARIABLES[0], os.cpu_count() or 1)),
        "executor": executor,
        "python": platform.python_version(),
        "redline": version("redline"),
        "torch": version("torch"),
        "numpy": version("numpy"),
    }


def _cpu_name() -> str:
    described = Path("/proc/cpuinfo")
    if described.exists():
        for line in described.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
