"""`redline retry`: the failures of a study once more."""

from redline.cli.run import DEFAULT, Options, Store, train
from redline.session import open_session


def retry(study: str, *, store: Store = None, options: Options = DEFAULT) -> int:
    """Train again what crashed or ran out of time; a diverged trial is finished, not failed."""
    session = open_session(study, store)
    plan = session.begin()
    return train(session, plan, plan.to_retry(), options)
