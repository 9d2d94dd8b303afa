import sys
import time

from redline.execute.awake import awake


def test_case_x08_macos_is_kept_from_idling_to_sleep_for_the_whole_run(tmp_path, monkeypatch):
    """An inhibitor that was held for single steps let the machine sleep between them."""
    called = tmp_path / "called"
    fake = tmp_path / "caffeinate"
    fake.write_text(f'#!/bin/sh\necho "$@" > {called}\nexec sleep 60\n')
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with awake() as inhibited:
        assert inhibited
        deadline = time.monotonic() + 5
        while not (called.exists() and called.read_text()) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert called.read_text().startswith("-i -w ")


def test_elsewhere_nothing_is_promised(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    with awake() as inhibited:
        assert not inhibited
