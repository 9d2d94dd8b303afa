"""Everything that is derived from the tables of one sweep, in one place: tables in, tables out.

Pages, texts and the terminal read a `Findings`; none of them computes a number of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from redline.analysis.comparable import CONTROL, N_COPY, short_names
from redline.analysis.conclusions import conclude
from redline.analysis.grid import expected_trials, full_product, missing_trials
from redline.analysis.headline import headlines
from redline.analysis.hypotheses import Hypothesis, as_table
from redline.analysis.mechanism import mechanism
from redline.analysis.optimum import optima
from redline.analysis.outcome import UNSTABLE, outcomes
from redline.analysis.robustness import robustness
from redline.analysis.steps import restricted_means, steps_to_threshold, survival_curves
from redline.analysis.summary import cells
from redline.analysis.threshold import tiers
from redline.analysis.verdict import Verdict, verdicts
from redline.config.analysis import Analysis
from redline.store.schema import Column

MAX_ROBUST = 5000
"""Trials in the table of robustness, which repeats the analysis once for each seed and LR."""


@dataclass(frozen=True)
class Measured:
    """What was measured: the tables of the store, or the rows of another tool and empty tables."""

    trials: pl.DataFrame
    series: pl.DataFrame
    probes: pl.DataFrame


@dataclass(frozen=True)
class Design:
    """What was to be measured: a row a trial, and the peak LRs of the axis if a study fixed one.

    A sweep of another tool has no plan (`is_whole` is false): every combination of its arms, rates
    and seeds is expected.
    """

    trials: pl.DataFrame
    registered_lr: Sequence[float] | None
    is_whole: bool = True


@dataclass(frozen=True)
class Findings:
    """The results of one sweep; each frame is described where it is made.

    `trials` (one row a finished trial, `outcome` and `headline`), `missing` (`grid`), `cells`
    (`summary`), `deltas` and `boundaries` (`necessity`), `thresholds`, `optima`, `sensitivities`,
    `steps` and `survival` (`steps`), `mechanism`, `hypotheses`.
    """

    analysis: Analysis
    registered_lr: Sequence[float] | None
    planned: pl.DataFrame
    trials: pl.DataFrame
    missing: pl.DataFrame
    cells: pl.DataFrame
    deltas: pl.DataFrame
    boundaries: pl.DataFrame
    thresholds: pl.DataFrame
    optima: pl.DataFrame
    sensitivities: pl.DataFrame
    steps: pl.DataFrame
    survival: pl.DataFrame
    mechanism: pl.DataFrame
    verdicts: tuple[Verdict, ...]
    hypotheses: tuple[Hypothesis, ...]

    @property
    def n_expected(self) -> int:
        return int(self.cells["n_expected"].sum())

    @property
    def controls(self) -> list[str]:
        """The settings in their order, the base first."""
        names = short_names(self.cells[CONTROL])
        controls = self.cells[CONTROL].unique(maintain_order=True).to_list()
        return sorted(controls, key=lambda control: names[control] not in ("", "base"))

    @property
    def base_hypotheses(self) -> list[Hypothesis]:
        """H1 to H3 of the first setting, the one that the others are changes of."""
        return [found for found in self.hypotheses if found.control in self.controls[:1]]

    @property
    def state(self) -> str:
        """How much of it is there."""
        done = self.n_expected - self.missing.height
        return f"{done} of {self.n_expected} trials have a result"

    @property
    def n_duplicate(self) -> int:
        """Exact copies of rows, which count once."""
        return int((self.trials[N_COPY] - 1).sum())

    @cached_property
    def robustness(self) -> pl.DataFrame:
        """How the verdict moves with an assumption; made when it is first asked for.

        Settings in their order, the base first, until they hold `MAX_ROBUST` trials.
        """
        sizes = dict(self.trials.group_by(CONTROL).len().iter_rows())
        first, total = list[str](), 0
        for control in self.controls:
            total += sizes.get(control, 0)
            if first and total > MAX_ROBUST:
                break
            first.append(control)
        here = pl.col(CONTROL).is_in(first)
        trials, planned = self.trials.filter(here), self.planned.filter(here)
        return robustness(trials, planned, self.registered_lr, self.analysis)

    @property
    def result_tables(self) -> dict[str, pl.DataFrame]:
        """Name -> table of everything but the repeated analyses."""
        first = ("trials", "missing", "cells", "deltas", "boundaries", "thresholds", "optima")
        more = ("sensitivities", "steps", "survival", "mechanism")
        return {name: getattr(self, name) for name in (*first, *more)} | {
            "hypotheses": as_table(self.hypotheses)
        }

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """Name -> table, for files."""
        return self.result_tables | {"robustness": self.robustness}


def find(measured: Measured, design: Design, analysis: Analysis) -> Findings:
    """Analyse one sweep.

    Raises:
        UserError: rows that cannot be compared; see `outcome.outcomes`.
    """
    judged = outcomes(
        measured.trials, measured.series, measured.probes, analysis, design.registered_lr
    ).join(
        headlines(measured.trials.unique(Column.TRIAL_ID), measured.probes),
        on=Column.TRIAL_ID,
        how="left",
        maintain_order="left",
    )
    planned = expected_trials(design.trials, judged)
    expected = planned if design.is_whole else full_product(planned)
    table = cells(judged, expected, analysis)
    flags = tiers(analysis)
    steps = steps_to_threshold(judged, measured.series, analysis)
    found = conclude(judged, planned, design.registered_lr, analysis, flags)
    return Findings(
        analysis=analysis,
        registered_lr=design.registered_lr,
        planned=planned,
        trials=judged,
        missing=missing_trials(expected, judged),
        cells=table,
        deltas=found.deltas,
        boundaries=found.boundaries,
        thresholds=found.thresholds,
        optima=optima(judged),
        sensitivities=found.sensitivities,
        steps=restricted_means(steps),
        survival=survival_curves(steps),
        mechanism=mechanism(judged, flags[UNSTABLE]),
        verdicts=verdicts(table, found.deltas, found.boundaries, found.thresholds, analysis),
        hypotheses=found.hypotheses,
    )
