"""What a training loop writes: series, probes, checkpoints and, at the end, the result."""

import contextlib
import errno
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from redline.files import read_lines, to_json, write_atomic
from redline.store.claims import Claim
from redline.store.finished import write_finished
from redline.store.layout import Store
from redline.store.schema import RESULT_COLUMNS, Column

FLUSH_EVERY_S = 1.0
GAP_S = 30.0
"""A pause between two steps after which another host may have taken the trial over."""

N_CHECKPOINT = 2
DISK_FULL = {errno.ENOSPC, errno.EDQUOT}

Row = dict[str, Any]


class Recorder:
    """The record of one claimed trial. It is what a training loop sees of the store.

    A row costs some microseconds and may be lost in a kill; what lies before a checkpoint is on
    the disk before the checkpoint is. An attempt that does not `rewind` starts from nothing.
    `on_step` is called after each row.
    """

    def __init__(self, store: Store, trial_id: str, *, claim: Claim, study: str) -> None:
        self._store = store
        self._trial_id = trial_id
        self._claim = claim
        self._study = study
        self._series: _Lines | None = None
        self._probes: _Lines | None = None
        self._settled = 0.0
        self.first_step: int | None = None
        self.last_step: int | None = None
        self.on_step: Callable[[Row], None] | None = None

    def step(self, row: Row) -> None:
        """Add one row of the series; its columns are `schema.SERIES_COLUMNS`."""
        series, _ = self._open()
        series.append(row)
        self.last_step = int(row[Column.STEP])
        if self.first_step is None:
            self.first_step = self.last_step
        # Wall clock, not a monotonic one: that of Linux stands still while the machine sleeps.
        now = time.time()
        if not 0 <= now - self._settled < FLUSH_EVERY_S:
            self._settle(now)
        if self.on_step is not None:
            self.on_step(row)

    def probe(self, row: Row) -> None:
        """Add one measurement: `step`, `log_z_sq`, `layers` and `residual`."""
        _, probes = self._open()
        probes.append(row)

    def save(self, step: int, checkpoint: bytes) -> None:
        """Keep a checkpoint, and every row up to it, on the disk; the newest two stay.

        A write that fails for good costs the checkpoint and not the trial, unless the disk is full.

        Raises:
            OSError: the disk is full, or the rows could not be made durable.
        """
        self._claim.check()
        for lines in self._open():
            lines.sync()
        directory = self._store.checkpoints(self._trial_id)
        directory.mkdir(exist_ok=True)
        try:
            write_atomic(directory / f"step-{step:08d}.bin", checkpoint)
        except OSError as error:
            if error.errno in DISK_FULL:
                raise
            print(f"WARNING: no checkpoint at step {step}: {error}", file=sys.stderr, flush=True)
            return
        for _, path in self._saved()[N_CHECKPOINT:]:
            path.unlink()

    def checkpoints(self) -> Iterator[bytes]:
        """The saved checkpoints, newest first, without any that is ahead of its series."""
        saved = self._saved()
        n_row = _n_whole_row(self._store.series(self._trial_id)) if saved else 0
        for step, path in saved:
            if step < n_row:
                yield path.read_bytes()

    def rewind(self, step: int) -> None:
        """Drop what lies after `step`: a resumed trial writes it again. -1 drops all.

        A checkpoint that was passed over goes too, or it would be kept as the newest.
        """
        self.close()
        for saved, path in self._saved():
            if saved > step:
                path.unlink()
        self._series = _Lines(self._store.series(self._trial_id), step)
        self._probes = _Lines(self._store.probes(self._trial_id), step)
        self._settled = time.time()

    def finish(self, result: Row) -> None:
        """Declare the trial finished and remove its checkpoints.

        Raises:
            ValueError: the result or the series is not complete.
            ClaimLostError: the trial belongs to another process now.
        """
        self._claim.check()
        for lines in self._open():
            lines.sync()
        self.close()
        self._refuse_incomplete(result)
        write_finished(self._store, self._trial_id, self._study, result)
        shutil.rmtree(self._store.checkpoints(self._trial_id), ignore_errors=True)

    def close(self) -> None:
        """Write out what is buffered, if the disk takes it, and let go of the files."""
        for lines in (self._series, self._probes):
            if lines is not None:
                lines.close()
        self._series = self._probes = None

    def _open(self) -> "tuple[_Lines, _Lines]":
        if self._series is None or self._probes is None:
            self.rewind(-1)
        assert self._series and self._probes
        return self._series, self._probes

    def _settle(self, now: float) -> None:
        gap_s = now - self._settled
        if gap_s > GAP_S:
            print(f"no step for {gap_s:.0f} s: did the machine sleep?", file=sys.stderr, flush=True)
            self._claim.check()
        for lines in self._open():
            lines.flush()
        self._settled = now

    def _saved(self) -> list[tuple[int, Path]]:
        directory = self._store.checkpoints(self._trial_id)
        return sorted(
            (
                (int(match[1]), path)
                for path in directory.glob("step-*.bin")
                if (match := re.fullmatch(r"step-(\d+)\.bin", path.name))
            ),
            reverse=True,
        )

    def _refuse_incomplete(self, result: Row) -> None:
        missing = set(RESULT_COLUMNS) - result.keys()
        if missing:
            raise ValueError(f"the result lacks {', '.join(sorted(missing))}")
        last_step = _n_whole_row(self._store.series(self._trial_id)) - 1
        if last_step != result[Column.STEPS_DONE]:
            raise ValueError(
                f"the series holds steps 0 to {last_step} without a gap, "
                f"but {result[Column.STEPS_DONE]} were done"
            )


class _Lines:
    """A JSON Lines file that grows at its end."""

    def __init__(self, path: Path, step: int) -> None:
        """Open the file with its rows up to `step`."""
        write_atomic(path, b"".join(_encode(row) for row in _rows_until(path, step)))
        self._file = path.open("ab")

    def append(self, row: Row) -> None:
        self._file.write(_encode(row))

    def flush(self) -> None:
        self._file.flush()

    def sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        # A full disk has been reported by the write that met it first; closing tries it once more.
        with contextlib.suppress(OSError):
            self._file.close()


def _encode(row: Row) -> bytes:
    return to_json(row).encode() + b"\n"


def _rows_until(path: Path, step: int) -> Iterator[Row]:
    if step < 0:
        return
    for row in read_lines(path):
        if row[Column.STEP] > step:
            return
        yield row


def _n_whole_row(path: Path) -> int:
    """Count the rows from step 0 on without a gap or a repetition."""
    n_row = 0
    for row in read_lines(path):
        if row[Column.STEP] != n_row:
            return n_row
        n_row += 1
    return n_row
