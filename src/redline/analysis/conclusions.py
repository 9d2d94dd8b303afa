"""What follows from judged trials: the part of the analysis that a changed assumption repeats."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from redline.analysis.evidence import evidence
from redline.analysis.hypotheses import Hypothesis, hypotheses
from redline.analysis.necessity import boundaries, deltas
from redline.analysis.outcome import UNSTABLE
from redline.analysis.posterior import SIGMA_SCALE
from redline.analysis.sensitivity import as_table, measure, seed_differences
from redline.analysis.threshold import seed_thresholds, thresholds
from redline.config.analysis import Analysis


@dataclass(frozen=True)
class Conclusions:
    """`deltas` and `boundaries` (`necessity`), `thresholds`, `sensitivities`, and H1 to H3."""

    deltas: pl.DataFrame
    boundaries: pl.DataFrame
    thresholds: pl.DataFrame
    sensitivities: pl.DataFrame
    hypotheses: tuple[Hypothesis, ...]


def conclude(
    judged: pl.DataFrame,
    planned: pl.DataFrame,
    registered_lr: Sequence[float] | None,
    analysis: Analysis,
    flags: Mapping[str, pl.Expr],
    scale: float = 1.0,
) -> Conclusions:
    """From `outcome.outcomes` and `grid.expected_trials`.

    `flags` say what counts as unstable in each tier (`threshold.tiers`), `unstable` among them;
    `scale` is a factor of the prior scales of the spread between seeds.
    """
    paired = deltas(judged, analysis, planned)
    sensitivity = measure(judged, planned, registered_lr)
    numbers = evidence(
        judged,
        seed_thresholds(judged, {UNSTABLE: flags[UNSTABLE]}),
        seed_differences(sensitivity),
        registered_lr,
        analysis,
    )
    return Conclusions(
        deltas=paired,
        boundaries=boundaries(paired, analysis),
        thresholds=thresholds(judged, flags, scale * SIGMA_SCALE),
        sensitivities=as_table(sensitivity),
        hypotheses=hypotheses(numbers, analysis, scale),
    )
