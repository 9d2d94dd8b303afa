"""How many seeds would decide: power of a one-sided t test from the spread that was seen.

The spread of a few seeds is itself uncertain, so the upper 80 % limit of its sd is used: the answer
is then too large rather than too small four times in five (protocol section 9).
"""

from bisect import bisect_left
from math import isnan, sqrt

from scipy import special

from redline.analysis.intervals import ALPHA, MIN_SEEDS

POWER = 0.8
SD_LEVEL = 0.8
MAX_SEEDS = 500


def seeds_needed(mean: float, sd: float, n: int, bound: float, alpha: float = ALPHA) -> int | None:
    """Seeds for 80 % power to show that a mean lies beyond `bound`, on the side where it was seen.

    None if more than 500, or if there is no spread to reckon with.
    """
    if n < 2 or sd <= 0:
        return None
    # The spread is too small with probability .8 if chi-squared came out this low.
    high_sd = sd * sqrt((n - 1) / float(special.chdtri(n - 1, SD_LEVEL)))
    gap = abs(mean - bound) / high_sd

    def power(seeds: int) -> float:
        critical = float(special.stdtrit(seeds - 1, 1 - alpha))
        found = 1 - float(special.nctdtr(seeds - 1, gap * sqrt(seeds), critical))
        # Far out the routine gives up with NaN: there the power is 1.
        return 1.0 if isnan(found) else found

    seeds = bisect_left(range(MAX_SEEDS + 1), POWER, lo=MIN_SEEDS, key=power)
    return seeds if seeds <= MAX_SEEDS else None


def in_words(seeds: int | None) -> str:
    """The number of seeds that would decide."""
    return f"about {seeds} seeds" if seeds else f"more than {MAX_SEEDS} seeds"
