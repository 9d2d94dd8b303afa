"""`redline retry`: the failures of a study once more."""

from redline.cli.run import FailFast, Store, Timeout, Workers, train
from redline.session import open_session


def retry(
    study: str,
    *,
    store: Store = None,
    workers: Workers = None,
    fail_fast: FailFast = None,
    timeout: Timeout = None,
) -> int:
    """Train again what crashed or ran out of time; a diverged trial is finished, not failed."""
    session = open_session(study, store)
    plan = session.begin()
    return train(session, plan, plan.to_retry(), workers, fail_fast, timeout)
