"""What a simulated group has paid, and how soon what was written was visible."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

# Ages are counted in bins of this width.
AGE_BIN_S = 0.25
AGE_BINS = 2400


@dataclass(slots=True)
class Outcome:
    consumer_seconds: float = 0.0
    bound_consumer_seconds: float = 0.0
    moves: int = 0
    # Of consumers, in the time that counts.
    starts: int = 0
    ends: int = 0
    ages: NDArray[np.float64] = field(default_factory=lambda: np.zeros(AGE_BINS))
    consumers: list[int] = field(default_factory=list)
    written: list[float] = field(default_factory=list)
    # Of each second that counts: after how long nearly all that was written in it was visible.
    visible_after_s: list[float] = field(default_factory=list)
    # Of each second that counts: the age of the oldest record that was not yet visible.
    oldest_s: list[float] = field(default_factory=list)

    def share_within(self, freshness_s: float) -> float:
        """The share of all bytes that were visible within this time."""
        bins = int(freshness_s / AGE_BIN_S)
        return float(self.ages[:bins].sum() / max(1e-9, self.ages.sum()))

    def time_within(self, freshness_s: float) -> float:
        """The share of the seconds of which nearly all was visible within this time."""
        return _share_of(self.visible_after_s, freshness_s)

    def time_without_late(self, freshness_s: float) -> float:
        """The share of the seconds without any record, in any partition, older than this."""
        return _share_of(self.oldest_s, freshness_s)


def _share_of(ages_s: Sequence[float], most_s: float) -> float:
    return sum(age_s <= most_s for age_s in ages_s) / max(1, len(ages_s))
