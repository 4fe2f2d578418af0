"""Keeps the growth of each log for at most the last 30 seconds, for all partitions.

Two tables of intervals (bytes, records), one row per round and one column per partition: 5,000
partitions for 30 s at one round a second take 5 MB. Rows leave by their age on the clock that the
caller gives, so that a pause of the process does not stretch the window.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from penstock.monitor.core.filters import Row, SpeedFilter, Table
from penstock.monitor.core.log_growth import LogGrowth

# An interval counts for the mean only if its two durations are of this order: when sizes return a
# round before offsets after a silence, one interval holds seconds of bytes and minutes of records.
_DURATIONS_RATIO_MAX = 5.0


@dataclass(slots=True)
class Window:
    """Not frozen: it is the meter's memory, used by one thread."""

    length_s: float
    partitions: int = 0
    _begun_at_s: list[float] = field(default_factory=list)
    _bytes_s: list[Row] = field(default_factory=list)
    _bytes: list[Row] = field(default_factory=list)
    _records_s: list[Row] = field(default_factory=list)
    _records: list[Row] = field(default_factory=list)
    _by_size: list[Row] = field(default_factory=list)

    def add(self, begun_at_s: float, ended_at_s: float, growth: LogGrowth) -> None:
        """Add one round, and drop what is now too old."""
        self._begun_at_s.append(begun_at_s)
        self._bytes_s.append(growth.bytes_duration_s)
        self._bytes.append(growth.bytes_written)
        self._records_s.append(growth.records_duration_s)
        self._records.append(growth.records_written)
        self._by_size.append(growth.by_size)
        self.forget_before(ended_at_s - self.length_s)

    def forget_before(self, moment_s: float) -> None:
        """An interval is as old as its beginning. The newest stays, even if it was a long one."""
        gone = 0
        while gone < len(self._begun_at_s) - 1 and self._begun_at_s[gone] < moment_s:
            gone += 1
        for rows in self._tables():
            del rows[:gone]
        del self._begun_at_s[:gone]

    def _tables(self) -> tuple[list[Row], ...]:
        return self._bytes_s, self._bytes, self._records_s, self._records, self._by_size

    def rearrange(self, columns: npt.NDArray[np.intp]) -> None:
        """New column i is old column columns[i]; -1 is a new partition, without a past."""
        self.partitions = len(columns)
        known = columns >= 0
        for table in self._tables():
            for number, row in enumerate(table):
                moved = np.zeros(len(columns))
                moved[known] = row[columns[known]]
                table[number] = moved

    def _table(self, rows: list[Row]) -> Table:
        return np.array(rows) if rows else np.zeros((0, self.partitions))

    def bytes_per_s(self, speed_filter: SpeedFilter) -> Row:
        return speed_filter.speeds(self._table(self._bytes_s), self._table(self._bytes))

    def records_per_s(self, speed_filter: SpeedFilter) -> Row:
        return speed_filter.speeds(self._table(self._records_s), self._table(self._records))

    def newest_bytes_per_s(self) -> Row:
        """The raw speed: that of the newest known interval."""
        speed = np.full(self.partitions, np.nan)
        for duration_s, written in zip(self._bytes_s, self._bytes, strict=True):
            known = duration_s > 0
            speed[known] = written[known] / duration_s[known]
        return speed

    def mean_bytes_per_record(self) -> tuple[Row, Row]:
        """The mean and its number of records, over intervals whose bytes come from sizes.

        Sizes and offsets are not read at the same moments, so bytes per second are divided by
        records per second: bytes by records would be wrong by the difference of the two times.
        """
        bytes_s, records_s = self._table(self._bytes_s), self._table(self._records_s)
        both = (self._table(self._by_size) > 0) & (bytes_s > 0) & (records_s > 0)
        both &= (bytes_s < _DURATIONS_RATIO_MAX * records_s) & (
            records_s < _DURATIONS_RATIO_MAX * bytes_s
        )
        records = np.where(both, self._table(self._records), 0.0).sum(axis=0)
        written = np.where(both, self._table(self._bytes), 0.0).sum(axis=0)
        weight = written * _sum_where(both, records_s)
        base = records * _sum_where(both, bytes_s)
        unknown = np.full(self.partitions, np.nan)
        known = (weight > 0) & (base > 0)  # a size may grow before the offsets do
        return np.divide(weight, base, out=unknown, where=known), records


def _sum_where(which: npt.NDArray[np.bool_], table: Table) -> Row:
    total: Row = np.where(which, table, 0.0).sum(axis=0)
    return total
