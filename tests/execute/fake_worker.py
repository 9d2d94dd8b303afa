"""The real worker with the fake training: `python fake_worker.py STORE STUDY SECONDS`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "store"))

import fakes

from redline.execute.worker import Worker, emitter, run_until_done
from redline.store.layout import Store

if __name__ == "__main__":
    root, study, every_s = sys.argv[1:]
    worker = Worker(Store(Path(root)), study, fakes.load, fakes.train, emitter(), float(every_s))
    run_until_done(worker)
