"""Low-pass filters: from what was written in each interval to a speed that can be planned with.

A filter sees the intervals of all partitions at once, as two tables with one row a turn (oldest
first) and one column a partition: how long each interval was, and how much was written in it. An
interval of no length carries no knowledge and has no effect. A filter has no memory of its own, so
a speed depends on nothing but the window, and the same window gives the same speed.

Laws all of them keep, and tests/properties holds them to: never negative, never NaN where anything
is known, NaN (unknown) only where nothing is, within the range of the intervals, constant in gives
constant out. Which is the default, and why, is in docs/development/studies/monitor.md.
"""

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from penstock.settings.sections import MonitorSettings

Table: TypeAlias = npt.NDArray[np.float64]
Row: TypeAlias = npt.NDArray[np.float64]

# Blocks of this many intervals at the old end are compared with all that is newer: one finds the
# interval in which a step fell, the longer ones find a slow drift.
_BLOCKS = (1, 2, 4, 8)
# An interval is never exactly a period long; two of 0.99 s are meant by "the last two seconds".
_LENGTH_SLACK = 0.9
# For a normal distribution: the standard deviation over the median absolute deviation, and the
# standard deviation of a second difference over that of one value.
_DEVIATION_PER_MEDIAN = 1.4826
_SECOND_DIFFERENCE = 6.0**0.5


class SpeedFilter(Protocol):
    def speeds(self, duration_s: Table, amount: Table) -> Row:
        """One speed a partition, NaN where nothing is known."""
        ...


@dataclass(frozen=True, slots=True)
class PlainWindow:
    """Everything in the window, evenly: calm, and a whole window late after a step."""

    def speeds(self, duration_s: Table, amount: Table) -> Row:
        return _ratio(amount.sum(axis=0), duration_s.sum(axis=0))


@dataclass(frozen=True, slots=True)
class Exponential:
    """Newer intervals weigh more: the older by a time constant, the lighter by e."""

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
    """The longest recent stretch with no step in it: long while calm, short right after a step.

    Begins with the newest `shortest_s` and goes back, interval by interval, for as long as what is
    added agrees with what is newer. A difference is a step when it exceeds both `tolerance` (a part
    of the speed) and `noise` times what the noise of that partition would explain. The noise comes
    from second differences, which neither a step nor a steady ramp disturbs, and from their median,
    which a few outliers do not.
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
        turns = len(recent.elapsed_s) - 1
        enough = recent.elapsed_s >= self.shortest_s * _LENGTH_SLACK
        least = np.where(enough[-1], enough.argmax(axis=0), turns)
        kept = least.copy()
        for length in range(1, turns):
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
        """Whether the intervals rest..end tell of the same speed as the newer 0..rest."""
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
        # A side without any known interval compares as NaN: nothing speaks against it.
        differ: npt.NDArray[np.bool_] = np.abs(newer - older) > bound
        return ~differ


@dataclass(frozen=True, slots=True)
class _Recent:
    """Sums over the newest n intervals, at row n; `deviation` is a partition's noise."""

    elapsed_s: Table
    total: Table
    intervals: Table
    deviation: Row


def _from_zero(table: Table) -> Table:
    """Running sums with a row of zeros before them."""
    return np.concatenate([np.zeros((1, table.shape[1])), np.cumsum(table, axis=0)])


def _ratio(amount: Table, duration_s: Table) -> Table:
    unknown = np.full(amount.shape, np.nan)
    np.divide(amount, duration_s, out=unknown, where=duration_s > 0)
    return unknown


def _deviation(duration_s: Table, amount: Table) -> Row:
    """The standard deviation of one interval's speed, robustly; 0 where too little is known."""
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
