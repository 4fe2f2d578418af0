"""How large the next batch is, when it may begin, and how much this consumer can carry.

The size of a batch follows the measured speed, so that it takes about the time that the settings
ask for: short while the consumer keeps up, longer while it is behind, because long batches cost
less per byte. Only full batches show the capacity: a consumer with little to do is as fast as its
load.
"""

import math
from dataclasses import dataclass

from penstock.model.changed import changed

FIRST_BUDGET_BYTES = 8.0 * 2**20
BUDGET_BYTES_MIN = 2.0**20
_CHANGE_MAX = 4.0
_CHANGE_MIN = 0.25
# A batch that was not full says little about time, unless it took far too long.
_FAR_TOO_LONG = 2.0
# Two batches show the fixed cost only if their sizes differ by more than this.
_TELLING_DIFFERENCE = 0.2
_FIXED_SHARE_MAX = 0.9
_BATCHES_REMEMBERED = 20
_ALIKE_SHARE = 0.5
_FULL_BATCHES_NEEDED = 2
# A second full batch that is so many times as quick as the first one shows that the consumer, or
# what it shares, still warms up.
_WARMING_UP = 1.25
# More, because one that was quick by chance says more than is true.
PARTIAL_BATCHES_NEEDED = 5


@dataclass(frozen=True)
class PaceLimits:
    batch_bytes: int
    batch_time_s: float
    backlog_batch_time_s: float


@dataclass(frozen=True)
class Pace:
    """The size of the next batch.

    Every batch has a fixed cost (`fixed_s`), learned from batches of different sizes. On a busy
    machine it can exceed the time a batch should take: then a batch may take twice its fixed cost,
    because ever smaller batches would carry ever less.
    """

    limits: PaceLimits
    budget_bytes: float = FIRST_BUDGET_BYTES
    full_in_a_row: int = 0
    fixed_s: float = 0.5
    # Size and time of the last full batch.
    last_full: tuple[float, float] | None = None
    # The first batch warms Spark up; its time says nothing about the next.
    is_warm: bool = False

    def after(self, *, planned_bytes: float, seconds: float, was_full: bool) -> "Pace":
        """The pace after one more batch."""
        full = self.full_in_a_row + 1 if was_full else 0
        if not self.is_warm or seconds <= 0 or planned_bytes <= 0:
            return changed(self, is_warm=True, full_in_a_row=full)
        limits = self.limits
        wanted_s = limits.batch_time_s if full <= 1 else limits.backlog_batch_time_s
        if was_full:
            return self._after_full(planned_bytes, seconds, wanted_s, full)
        if seconds > _FAR_TOO_LONG * max(wanted_s, 2 * self.fixed_s):
            smaller = min(self.budget_bytes, planned_bytes) * max(_CHANGE_MIN, wanted_s / seconds)
            return changed(self, budget_bytes=self._bounded(smaller), full_in_a_row=0)
        return changed(self, full_in_a_row=0)

    def _after_full(self, size: float, seconds: float, wanted_s: float, full: int) -> "Pace":
        fixed_s = self.fixed_s
        if self.last_full is not None and abs(size / self.last_full[0] - 1) > _TELLING_DIFFERENCE:
            slope = (seconds - self.last_full[1]) / (size - self.last_full[0])
            fixed_s = (fixed_s + min(seconds, max(0.0, seconds - slope * size))) / 2
        fixed_s = min(fixed_s, _FIXED_SHARE_MAX * seconds)
        s_per_byte = (seconds - fixed_s) / size
        budget = (max(wanted_s, 2 * fixed_s) - fixed_s) / s_per_byte
        budget = min(_CHANGE_MAX * size, max(_CHANGE_MIN * size, budget))
        return changed(
            self,
            budget_bytes=self._bounded(budget),
            full_in_a_row=full,
            fixed_s=fixed_s,
            last_full=(size, seconds),
        )

    def _bounded(self, budget_bytes: float) -> float:
        return min(float(self.limits.batch_bytes), max(BUDGET_BYTES_MIN, budget_bytes))


@dataclass(frozen=True)
class Allowance:
    """Bytes that a consumer of limited capacity may read now; unused ones are saved for a while."""

    capacity_bytes_per_s: float
    saved_bytes: float = 0.0
    at_ms: int | None = None
    saved_s_max: float = 2.0

    @property
    def is_limited(self) -> bool:
        return self.capacity_bytes_per_s > 0

    def at(self, now_ms: int) -> "Allowance":
        if not self.is_limited:
            return self
        if self.at_ms is None:  # one second's worth to begin with
            return changed(self, saved_bytes=self.capacity_bytes_per_s, at_ms=now_ms)
        most = self.capacity_bytes_per_s * self.saved_s_max
        passed_s = max(0, now_ms - self.at_ms) / 1000
        saved = min(most, self.saved_bytes + passed_s * self.capacity_bytes_per_s)
        return changed(self, saved_bytes=saved, at_ms=now_ms)

    def without(self, taken_bytes: float) -> "Allowance":
        """May go below zero: one record can be larger than everything saved."""
        return (
            changed(self, saved_bytes=self.saved_bytes - taken_bytes) if self.is_limited else self
        )

    def limit(self, budget_bytes: float) -> float:
        return min(budget_bytes, self.saved_bytes) if self.is_limited else budget_bytes

    def wait_ms(self, wanted_bytes: float) -> int:
        """How long until `wanted_bytes` may be read."""
        if not self.is_limited or self.saved_bytes >= wanted_bytes:
            return 0
        return math.ceil((wanted_bytes - self.saved_bytes) / self.capacity_bytes_per_s * 1000)


@dataclass(frozen=True)
class CapacityEstimate:
    """Log bytes a second over the last full batches, the pauses between them included.

    Batches that are not full show only that the capacity is not lower than what they carried in
    their own time: most of a small batch's time is its fixed cost.
    """

    full: tuple[tuple[float, float], ...] = ()
    # Since the last full one.
    partial: tuple[tuple[float, float], ...] = ()

    def after(self, log_bytes: float, seconds: float, *, was_full: bool) -> "CapacityEstimate":
        if seconds <= 0 or log_bytes <= 0:
            return self
        if was_full:
            newest = (log_bytes, seconds)
            # Much smaller ones show their fixed cost.
            like = [one for one in self.full if one[0] >= _ALIKE_SHARE * log_bytes]
            if len(like) == 1 and _speed((newest,)) > _WARMING_UP * _speed((like[0],)):
                like = []
            return CapacityEstimate((*like, newest)[-_BATCHES_REMEMBERED:])
        partial = (*self.partial, (log_bytes, seconds))[-_BATCHES_REMEMBERED:]
        later = CapacityEstimate(self.full, partial)
        known, least = self.log_bytes_per_s, later.at_least_log_bytes_per_s
        # What the full ones showed is disproved: something slowed them down.
        return CapacityEstimate((), partial) if known and least and least > known else later

    @property
    def log_bytes_per_s(self) -> float | None:
        return _speed(self.full) if len(self.full) >= _FULL_BATCHES_NEEDED else None

    @property
    def at_least_log_bytes_per_s(self) -> float | None:
        return _speed(self.partial) if len(self.partial) >= PARTIAL_BATCHES_NEEDED else None


def _speed(batches: tuple[tuple[float, float], ...]) -> float:
    return sum(size for size, _ in batches) / sum(seconds for _, seconds in batches)
