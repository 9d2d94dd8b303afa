"""What the analysis will call failed, degraded and needed: fixed in the study before it runs."""

from itertools import pairwise
from typing import Self

from pydantic import Field, PositiveFloat, model_validator

from redline.config.trial import Frozen

SAME_LR = 0.03
"""Rates whose logarithms (base 10) differ by no more are the same (protocol, section 4)."""


class Analysis(Frozen):
    """Margins and thresholds, in nats. Part of the study's digest, never of a trial's identity.

    `loss_threshold` is what steps to threshold count to; None is the corpus's bigram loss.
    """

    delta: tuple[PositiveFloat, ...] = Field(min_length=1)
    failed_margin: PositiveFloat
    m_nec: PositiveFloat
    m_eq: PositiveFloat
    loss_threshold: PositiveFloat | None = None

    @model_validator(mode="after")
    def _values_fit_together(self) -> Self:
        if any(lower >= upper for lower, upper in pairwise(self.delta)):
            raise ValueError(f"analysis.delta = {list(self.delta)} must ascend")
        if self.m_eq > self.m_nec:
            raise ValueError(
                f"analysis.m_eq = {self.m_eq} lies above m_nec = {self.m_nec}: one benefit would "
                "be negligible and needed at once"
            )
        return self
