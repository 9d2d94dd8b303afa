"""A whole `redline run` with fake workers: `python fake_run.py STORE N_WORKER`."""

import sys
from pathlib import Path

from redline.execute import local
from redline.execute.plan import plan
from redline.store.layout import Store

FAKE = (sys.executable, str(Path(__file__).with_name("fake_worker.py")))


def main(root: str, n_worker: str) -> int:
    store = Store(Path(root))
    ids = plan(store, store.ids()).to_run()
    try:
        local.run(
            store,
            ids,
            study="s" * 16,
            n_worker=int(n_worker),
            on_event=lambda event: print(event["event"], event.get("trial_id"), flush=True),
            command=FAKE,
        )
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
