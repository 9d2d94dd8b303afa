"""What of a study is there, by name, and which verdicts it can reach when all of it is."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import polars as pl

from redline.analysis.comparable import (
    CONTROL,
    N_LAYER,
    PEAK_LR,
    SEED,
    SETTING,
    planned,
    setting_name,
)
from redline.config.trial import Trial
from redline.store.schema import Column

SIGN_FLIP_PAIRS = 6
BOOTSTRAP_SEEDS = 10


@dataclass(frozen=True)
class Completeness:
    """The difference between a study and its store; `extra` are ids that the study lacks."""

    n_expected: int
    missing: tuple[str, ...]
    extra: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.n_expected - len(self.missing)} of {self.n_expected}"


def completeness(expected: Sequence[tuple[str, Trial]], finished: Collection[str]) -> Completeness:
    """Compare the expected trials with the ids of the finished ones: a set difference, no count."""
    rows = planned(expected)
    rows = rows.with_columns(setting_name(rows, SETTING).alias(CONTROL))
    done = set(finished)
    missing = rows.filter(~pl.col(Column.TRIAL_ID).is_in(list(done)))
    extra = done - {trial_id for trial_id, _ in expected}
    names = tuple(_name(row) for row in missing.iter_rows(named=True))
    return Completeness(len(expected), names, tuple(sorted(extra)))


def _name(row: dict[str, object]) -> str:
    parts = [row[Column.ARM], *(f"{name} {row[name]}" for name in (N_LAYER, PEAK_LR, SEED))]
    return ", ".join(str(part) for part in (*parts, row[CONTROL]) if part != "")


def reachable(trials: Sequence[Trial]) -> list[str]:
    """Sentences on which verdicts the finished study could reach (protocol section 9).

    The seed count is that of the cell with the fewest seeds.
    """
    seeds = Counter(trial.model_copy(update={"seed": 0}).model_dump_json() for trial in trials)
    arms = {trial.model.arm for trial in trials}
    if not ("off" in arms and len(arms) > 1):
        return [f"only the arm {', '.join(sorted(arms))}: no verdict compares QK-norm on with off"]
    n_seed = min(seeds.values())
    return [
        _by_seeds(n_seed),
        _h3_by_depths(len({trial.model.n_layer for trial in trials}), n_seed),
        _sign_flip(n_seed),
        *_with_many_seeds(n_seed),
    ]


def _by_seeds(n_seed: int) -> str:
    if n_seed == 1:
        return "1 seed: grid intervals only, no spread, every statement is indicative"
    if n_seed == 2:
        return "2 seeds: intervals, but H1, H2 and H3 stay undecided"
    if n_seed < SIGN_FLIP_PAIRS:
        return (
            f"{n_seed} seeds: H1 and H2 can be decided; a verdict that changes with the scale of "
            "the prior is marked prior-dependent"
        )
    return f"{n_seed} seeds: H1 and H2 can be decided in full"


def _h3_by_depths(n_depth: int, n_seed: int) -> str:
    if n_depth == 1:
        return "one depth: H3 is not testable"
    verdict = "undecided" if n_seed <= 2 else "can be decided"
    linearity = ", linearity not checked" if n_depth == 2 else ""
    return f"{n_depth} depths: H3 {verdict}{linearity}"


def _sign_flip(n_seed: int) -> str:
    smallest_p = 2.0 ** (1 - n_seed)
    can = "can" if n_seed >= SIGN_FLIP_PAIRS else "cannot"
    return (
        f"a two-sided sign-flip test of {n_seed} pairs {can} reach 0.05: "
        f"its smallest p is {smallest_p:.3g}"
    )


def _with_many_seeds(n_seed: int) -> list[str]:
    if n_seed >= BOOTSTRAP_SEEDS:
        return [
            "10 or more seeds: ED10 and the seed bootstrap are drawn, the margin m_eq can be 0.02"
        ]
    return ["fewer than 10 seeds: no ED10 and no seed bootstrap"]
