"""Everything that is derived from the tables of one sweep, in one place: tables in, tables out.

Pages, texts and the terminal read a `Findings`; none of them computes a number of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from redline.analysis.comparable import N_COPY
from redline.analysis.evidence import evidence
from redline.analysis.grid import expected_trials, full_product, missing_trials
from redline.analysis.headline import headlines
from redline.analysis.hypotheses import Hypothesis, hypotheses
from redline.analysis.necessity import boundaries, deltas
from redline.analysis.optimum import optima
from redline.analysis.outcome import UNSTABLE, outcomes
from redline.analysis.sensitivity import as_table, measure, seed_differences
from redline.analysis.summary import cells
from redline.analysis.threshold import seed_thresholds, thresholds, tiers
from redline.analysis.verdict import Verdict, verdicts
from redline.config.analysis import Analysis
from redline.store.schema import Column


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
    (`summary`), `deltas` and `boundaries` (`necessity`), `thresholds`, `optima`, `sensitivities`.
    """

    analysis: Analysis
    trials: pl.DataFrame
    missing: pl.DataFrame
    cells: pl.DataFrame
    deltas: pl.DataFrame
    boundaries: pl.DataFrame
    thresholds: pl.DataFrame
    optima: pl.DataFrame
    sensitivities: pl.DataFrame
    verdicts: tuple[Verdict, ...]
    hypotheses: tuple[Hypothesis, ...]

    @property
    def n_expected(self) -> int:
        return int(self.cells["n_expected"].sum())

    @property
    def state(self) -> str:
        """How much of it is there."""
        done = self.n_expected - self.missing.height
        return f"{done} of {self.n_expected} trials have a result"

    @property
    def n_duplicate(self) -> int:
        """Exact copies of rows, which count once."""
        return int((self.trials[N_COPY] - 1).sum())

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """Name -> table, for files."""
        names = ("trials", "missing", "cells", "deltas", "boundaries", "thresholds", "optima")
        return {name: getattr(self, name) for name in (*names, "sensitivities")}


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
    paired = deltas(judged, analysis, planned)
    bounds = boundaries(paired, analysis)
    limits = thresholds(judged, analysis)
    sensitivity = measure(judged, planned, design.registered_lr)
    numbers = evidence(
        judged,
        seed_thresholds(judged, {UNSTABLE: tiers(analysis)[UNSTABLE]}),
        seed_differences(sensitivity),
        design.registered_lr,
        analysis,
    )
    return Findings(
        analysis=analysis,
        trials=judged,
        missing=missing_trials(expected, judged),
        cells=table,
        deltas=paired,
        boundaries=bounds,
        thresholds=limits,
        optima=optima(judged),
        sensitivities=as_table(sensitivity),
        verdicts=verdicts(table, paired, bounds, limits, analysis),
        hypotheses=hypotheses(numbers, analysis),
    )
