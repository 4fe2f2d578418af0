"""Which of several monitors publishes: the oldest that lives. The younger ones step aside.

A monitor that hears one with a lower incarnation publishes nothing, and goes on measuring. When the
older one is silent for some periods, it publishes. No monitor has to know how many there are, and
two that publish at the same moment agree as soon as they have heard each other.
"""

from dataclasses import dataclass

# A round may be late, so one period without a measurement is no silence. Three end well within
# `controller.speeds_stale`, which is at least two periods and by default ten.
SILENT_PERIODS = 3


@dataclass(slots=True)
class WhoPublishes:
    """What one monitor has heard of the others. Times are of its own monotonic clock."""

    incarnation: int
    period_s: float
    # The oldest one heard lately, and when.
    other: int | None = None
    _heard_s: float = 0.0

    def heard(self, incarnation: int, at_s: float) -> None:
        """Another monitor (or this one) has published."""
        if incarnation < self.incarnation and (self.other is None or incarnation <= self.other):
            self.other, self._heard_s = incarnation, at_s

    def is_mine(self, now_s: float) -> bool:
        """Whether this monitor publishes now."""
        if self.other is not None and now_s - self._heard_s >= SILENT_PERIODS * self.period_s:
            self.other = None
        return self.other is None
