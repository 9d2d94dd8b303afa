"""Make `sweeps` importable, and find a browser."""

import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def browser():
    """A real browser that is on the machine; without one the test skips, in CI it fails."""
    found = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if found is None:
        if os.environ.get("REDLINE_TESTS_SKIP_NOTHING"):
            pytest.fail("no Chromium on a machine where no browser test may skip")
        pytest.skip(f"none of {', '.join(CHROMIUM)} is installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Chromium's own sandbox does not run as root, which containers are.
        started = playwright.chromium.launch(
            executable_path=found, args=list(QUIET), chromium_sandbox=os.geteuid() != 0
        )
        yield started
        started.close()
