"""In which order trials are trained, and how many of them fit into a budget of time.

Whatever ends a run early, what has finished should be a study of its own: seeds one after another,
within a seed the ends and the middle of the LR grid before what lies between, at every depth and in
every setting, and the arms of a pair side by side.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from redline.config.trial import Trial


def balanced(trials: Mapping[str, Trial]) -> list[str]:
    """The ids in the order in which they are trained; equal trials keep theirs."""
    seeds = _ranks([trial.seed for trial in trials.values()])
    rates = coarse_to_fine(sorted({trial.train.peak_lr for trial in trials.values()}))
    rank_of_rate = _ranks(rates)
    place = {
        trial_id: (seeds[trial.seed], rank_of_rate[trial.train.peak_lr])
        for trial_id, trial in trials.items()
    }
    # A pair's arms stand where its first one does.
    first: dict[Trial, int] = {}
    at = {
        trial_id: first.setdefault(without_arm(trial), n)
        for n, (trial_id, trial) in enumerate(trials.items())
    }
    return sorted(trials, key=lambda trial_id: (*place[trial_id], at[trial_id]))


def coarse_to_fine(values: Sequence[float]) -> list[float]:
    """Both ends, the middle, the middles between those, and so on: every prefix spans the whole."""
    if len(values) < 3:
        return list(values)
    found, gaps = [values[0], values[-1]], [(0, len(values) - 1)]
    while gaps:
        left, right = gaps.pop(0)
        middle = (left + right) // 2
        if middle != left:
            found.append(values[middle])
            gaps += [(left, middle), (middle, right)]
    return found


@dataclass(frozen=True)
class Prefix:
    """The trials that fit into a budget and those that do not, and the seconds of a worker."""

    ids: tuple[str, ...]
    left_out: tuple[str, ...]
    seconds: float


def fitting(
    ids: Sequence[str],
    trials: Mapping[str, Trial],
    seconds: Callable[[Trial], float],
    worker_s: float,
) -> Prefix:
    """The longest prefix of `ids` that takes `worker_s` seconds of workers in all.

    The arms of a pair are taken together or not at all.
    """
    pairs: dict[Trial, list[str]] = {}
    for trial_id in ids:
        pairs.setdefault(without_arm(trials[trial_id]), []).append(trial_id)
    taken: list[str] = []
    spent_s = 0.0
    for pair in pairs.values():
        more_s = sum(seconds(trials[trial_id]) for trial_id in pair)
        if spent_s + more_s > worker_s:
            break
        taken += pair
        spent_s += more_s
    return Prefix(tuple(taken), tuple(i for i in ids if i not in set(taken)), spent_s)


def without_arm(trial: Trial) -> Trial:
    """What the trials of a pair share."""
    return trial.model_copy(update={"model": trial.model.model_copy(update={"qk_norm": None})})


def _ranks(values: Sequence[float]) -> dict[float, int]:
    return {value: n for n, value in enumerate(dict.fromkeys(values))}
