"""What is done and what is left: the difference between the trials asked for and the files."""

from collections import Counter
from dataclasses import dataclass

from redline.config.trial import Trial
from redline.store import reader
from redline.store.layout import Store
from redline.store.schema import Status

RUN = frozenset({Status.PLANNED, Status.PREEMPTED})
RETRY = frozenset({Status.CRASHED, Status.TIMED_OUT})


@dataclass(frozen=True)
class Plan:
    """The status of each trial, in the order in which the study lists them."""

    statuses: dict[str, Status]

    @property
    def counts(self) -> dict[Status, int]:
        """Status -> number of trials, every status named."""
        counted = Counter(self.statuses.values())
        return {status: counted[status] for status in Status}

    @property
    def missing(self) -> list[str]:
        """Trials without a usable result, whatever the reason."""
        return [name for name, status in self.statuses.items() if status is not Status.FINISHED]

    def to_run(self) -> list[str]:
        """Trials that `redline run` trains: never begun, or interrupted."""
        return self._in(RUN)

    def to_retry(self) -> list[str]:
        """Trials that `redline retry` trains: crashed or out of time."""
        return self._in(RETRY)

    def _in(self, wanted: frozenset[Status]) -> list[str]:
        return [name for name, status in self.statuses.items() if status in wanted]


def plan(store: Store, ids: list[str]) -> Plan:
    """Read the status of each trial from the store."""
    return Plan({trial_id: reader.status(store, trial_id) for trial_id in ids})


def describe(trial: Trial) -> str:
    """The coordinates of a trial for a line of text: arm, peak LR, depth and seed."""
    return (
        f"qk_norm {trial.model.arm}, peak_lr {trial.train.peak_lr:g}, "
        f"n_layer {trial.model.n_layer}, seed {trial.seed}"
    )
