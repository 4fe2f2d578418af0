"""Low-pass filters: from what was written in each interval to a speed that plans can use.

A filter gets the intervals of all partitions at once, as two tables with one row per round (oldest
first) and one column per partition: how long each interval was, and how much was written in it. An
interval without duration is unknown and has no effect. A filter has no memory: the same window
always gives the same speed.

Each filter keeps these laws, which tests/properties checks: a speed is never negative; it is NaN
(unknown) only where every interval is unknown; it lies within the range of the intervals; constant
input gives constant output. docs/development/studies/monitor.md says which filter is the
default, and why.
"""

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from penstock.settings.sections import MonitorSettings

Table: TypeAlias = npt.NDArray[np.float64]
Row: TypeAlias = npt.NDArray[np.float64]

# The oldest 1, 2, 4 and 8 intervals are compared with all newer ones: a single interval shows a
# step, the longer blocks show a slow drift.
_BLOCKS = (1, 2, 4, 8)
# Intervals are never exactly one period long: two of 0.99 s count as two seconds.
_LENGTH_SLACK = 0.9
# For a normal distribution: the standard deviation over the median absolute deviation, and the
# standard deviation of a second difference over that of one value.
_DEVIATION_PER_MEDIAN = 1.4826
_SECOND_DIFFERENCE = 6.0**0.5


class SpeedFilter(Protocol):
    def speeds(self, duration_s: Table, amount: Table) -> Row:
        """One speed per partition, NaN where all intervals are unknown."""
        ...


@dataclass(frozen=True, slots=True)
class PlainWindow:
    """The mean of the window: smooth, but a whole window late after a step."""

    def speeds(self, duration_s: Table, amount: Table) -> Row:
        return _ratio(amount.sum(axis=0), duration_s.sum(axis=0))


@dataclass(frozen=True, slots=True)
class Exponential:
    """Newer intervals weigh more: the weight falls by a factor of e per time constant."""

    time_constant_s: float

    def speeds(self, duration_s: Table, amount: Table) -> Row:
        starts_ago_s = np.cumsum(duration_s[::-1], axis=0)[::-1]
        ends_ago_s = starts_ago_s - duration_s
        weight = np.exp(-ends_ago_s / self.time_constant_s)
        weight -= np.exp(-starts_ago_s / self.time_constant_s)
        speed = np.nan_to_num(_ratio(amount, duration_s))
        return _ratio((weight * speed).sum(axis=0), weight.sum(axis=0))


@dataclass(frozen=True, slots=True)
class StepAdapting:
    """The mean of the longest recent stretch without a step.

    It begins with the newest `shortest_s` and goes back, interval by interval, while the older ones
    agree with the newer. A difference is a step when it exceeds both `tolerance` (a part of the
    speed) and `noise` times the partition's noise. The noise is estimated from the median of second
    differences: a step or a steady ramp does not change it, nor do a few outliers.
    """

    shortest_s: float
    tolerance: float
    noise: float

    def speeds(self, duration_s: Table, amount: Table) -> Row:
        if not duration_s.size:
            return np.full(duration_s.shape[1], np.nan)
        duration_s, amount = duration_s[::-1], amount[::-1]
        recent = _Recent(
            elapsed_s=_from_zero(duration_s),
            total=_from_zero(amount),
            intervals=_from_zero((duration_s > 0).astype(np.float64)),
            deviation=_deviation(duration_s, amount),
        )
        kept = self._stretch(recent)
        columns = np.arange(duration_s.shape[1])
        return _ratio(recent.total[kept, columns], recent.elapsed_s[kept, columns])

    def _stretch(self, recent: "_Recent") -> npt.NDArray[np.intp]:
        """How many of the newest intervals belong to the stretch, for each partition."""
        rounds = len(recent.elapsed_s) - 1
        enough = recent.elapsed_s >= self.shortest_s * _LENGTH_SLACK
        least = np.where(enough[-1], enough.argmax(axis=0), rounds)
        kept = least.copy()
        for length in range(1, rounds):
            grows = kept == length
            if not grows.any():
                continue
            for block in _BLOCKS:
                rest = length + 1 - block
                if rest < 1:
                    break
                grows &= (rest < least) | self._agree(recent, rest, length + 1)
            kept[grows] = length + 1
        return kept

    def _agree(self, recent: "_Recent", rest: int, end: int) -> npt.NDArray[np.bool_]:
        """Whether the intervals rest..end have the same speed as the newer 0..rest."""
        newer_s = recent.elapsed_s[rest]
        older_s = recent.elapsed_s[end] - newer_s
        newer = _ratio(recent.total[rest], newer_s)
        older = _ratio(recent.total[end] - recent.total[rest], older_s)
        newer_count = recent.intervals[rest]
        older_count = recent.intervals[end] - newer_count
        spread = np.sqrt(1 / np.maximum(newer_count, 1) + 1 / np.maximum(older_count, 1))
        bound = np.maximum(
            self.tolerance * np.fmax(newer, older), self.noise * recent.deviation * spread
        )
        # A side without any known interval is NaN, which differs from nothing.
        differ: npt.NDArray[np.bool_] = np.abs(newer - older) > bound
        return ~differ


@dataclass(frozen=True, slots=True)
class _Recent:
    """Row n holds sums over the newest n intervals; `deviation` is a partition's noise."""

    elapsed_s: Table
    total: Table
    intervals: Table
    deviation: Row


def _from_zero(table: Table) -> Table:
    """Running sums, with a row of zeros first."""
    return np.concatenate([np.zeros((1, table.shape[1])), np.cumsum(table, axis=0)])


def _ratio(amount: Table, duration_s: Table) -> Table:
    unknown = np.full(amount.shape, np.nan)
    np.divide(amount, duration_s, out=unknown, where=duration_s > 0)
    return unknown


def _deviation(duration_s: Table, amount: Table) -> Row:
    """A robust standard deviation of one interval's speed; 0 where too little is known."""
    speed = _ratio(amount, duration_s)
    if len(speed) < 3:
        return np.zeros(speed.shape[1])
    second = np.abs(speed[2:] - 2 * speed[1:-1] + speed[:-2])
    counted = np.sum(~np.isnan(second), axis=0)
    second.sort(axis=0)  # NaN goes last
    middle = np.maximum(counted - 1, 0) // 2
    median: Row = np.nan_to_num(second[middle, np.arange(second.shape[1])])
    return median * (_DEVIATION_PER_MEDIAN / _SECOND_DIFFERENCE)


def filter_from_settings(monitor: MonitorSettings) -> SpeedFilter:
    if monitor.filter == "window":
        return PlainWindow()
    if monitor.filter == "exponential":
        return Exponential(monitor.filter_time_constant)
    return StepAdapting(
        monitor.filter_shortest, tolerance=monitor.filter_tolerance, noise=monitor.filter_noise
    )
