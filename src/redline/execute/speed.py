"""How fast the finished trials of a store were trained, from their own records."""

from collections.abc import Mapping

from redline.config.cost import cost
from redline.config.trial import Trial
from redline.store import reader
from redline.store.layout import Store


def seconds_per_flop(store: Store, finished: Mapping[str, Trial]) -> float | None:
    """Seconds of one worker for one FLOP, over the `finished` trials by id; None without a record.

    A resumed attempt did only part of the work and does not count.
    """
    spent_s = flops = 0.0
    for trial_id, trial in finished.items():
        last = reader.attempts(store, trial_id)[-1:]
        if last and last[0].get("first_step") == 0:
            spent_s += last[0].get("elapsed_s", 0.0)
            flops += cost(trial).flops
    return spent_s / flops if flops else None
