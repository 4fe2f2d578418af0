"""What was written to each log between two samples.

A sample holds the size of each log on its leader, and the offsets at which it begins and ends. What
was written is the difference of two sizes, except after retention, compaction or a change of the
leader (another replica has another size). Then the difference of end offsets times the partition's
mean log bytes per record is used. Where that is unknown too, the interval is unknown: it has no
duration and no bytes. It is never zero by default.

Each array has one column per partition, as in the whole package. NaN means unknown.
"""

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from penstock.monitor.core.filters import Row

# With a mean over at least this many records, a size difference can be called implausible.
RECORDS_FOR_A_MEAN = 100.0
# A size difference outside these multiples of what the new records should weigh is implausible:
# below the first, compaction removed bytes; above the second, the size jumped.
PLAUSIBLE_LEAST = 0.5
PLAUSIBLE_MOST = 10.0
# Two samples closer together than this count as one: their time difference is too inexact.
INTERVAL_S_MIN = 0.001
# Records may really have become smaller or larger: after this many implausible intervals in
# sequence, sizes are believed again.
IMPLAUSIBLE_IN_SEQUENCE_MAX = 2.0


@dataclass(frozen=True, slots=True)
class LogSample:
    """Size, start and end of each log, with the monotonic times at which they were read."""

    size_bytes: Row
    size_at_s: Row
    leader: Row
    start_offset: Row
    end_offset: Row
    offsets_at_s: Row

    @classmethod
    def unknown(cls, partitions: int) -> "LogSample":
        return cls(*(np.full(partitions, np.nan) for _ in fields(cls)))

    def updated(self, newer: "LogSample") -> "LogSample":
        """The newest known value of everything."""
        sized, offset = ~np.isnan(newer.size_bytes), ~np.isnan(newer.end_offset)
        return LogSample(
            size_bytes=np.where(sized, newer.size_bytes, self.size_bytes),
            size_at_s=np.where(sized, newer.size_at_s, self.size_at_s),
            leader=np.where(sized, newer.leader, self.leader),
            start_offset=np.where(
                np.isnan(newer.start_offset), self.start_offset, newer.start_offset
            ),
            end_offset=np.where(offset, newer.end_offset, self.end_offset),
            offsets_at_s=np.where(offset, newer.offsets_at_s, self.offsets_at_s),
        )


@dataclass(frozen=True, slots=True)
class Suspicion:
    """What the last interval showed that makes the next size difference doubtful."""

    shortened: Row
    """1 where the log's start moved: sizes and offsets are not read at the same moment, so the
    removed bytes may be missing only from the next difference."""
    records: Row
    """Records of the last interval: their bytes may appear one sample after their offsets."""
    implausible: Row
    """How many intervals in sequence were implausible."""

    @classmethod
    def none(cls, partitions: int) -> "Suspicion":
        return cls(np.zeros(partitions), np.full(partitions, np.nan), np.zeros(partitions))


@dataclass(frozen=True, slots=True)
class LogGrowth:
    """What was written in one interval; a duration of 0 where that is unknown."""

    bytes_duration_s: Row
    bytes_written: Row
    records_duration_s: Row
    records_written: Row
    by_size: Row
    """1 where the bytes come from sizes: only those show what a record weighs."""
    suspicion: Suspicion
    restarted: Row
    """1 where the end of the log went back: the topic was made again, or the log was truncated."""


def growth_by_sizes(
    before: LogSample, now: LogSample, mean_bytes: Row, mean_records: Row, suspicion: Suspicion
) -> LogGrowth:
    """From the leader's log size. `mean_bytes` is the mean over `mean_records` records, or NaN."""
    duration_s = now.size_at_s - before.size_at_s
    grown = now.size_bytes - before.size_bytes
    records_s, records, restarted = _new_records(before, now)
    shortened = now.start_offset > before.start_offset

    expected = records * mean_bytes
    idle = (records == 0) & (suspicion.records == 0)
    recently = records + np.nan_to_num(suspicion.records)
    # Sizes and offsets are of different moments: the expectation is scaled to the size's interval.
    expected_here = np.where(records_s > 0, expected * (duration_s / records_s), expected)
    implausible = (mean_records >= RECORDS_FOR_A_MEAN) & (
        (grown < PLAUSIBLE_LEAST * expected_here - mean_bytes)
        | (grown > PLAUSIBLE_MOST * (recently + 1) * mean_bytes)
    )
    implausible &= suspicion.implausible < IMPLAUSIBLE_IN_SEQUENCE_MAX

    by_size = _is_interval(duration_s) & (grown >= 0) & (now.leader == before.leader)
    by_size &= ~shortened & (suspicion.shortened == 0) & ~restarted
    by_size &= ~implausible & ~(idle & (grown > 0))
    by_records = ~by_size & (records_s > 0) & (records >= 0) & (idle | ~np.isnan(expected))
    by_records &= ~np.isnan(now.size_bytes)  # a missing size is waited for, not guessed
    return LogGrowth(
        bytes_duration_s=np.select([by_size, by_records], [duration_s, records_s], 0.0),
        bytes_written=np.select(
            [by_size, by_records & ~idle, by_records], [grown, expected, 0.0], 0.0
        ),
        records_duration_s=np.where(records_s > 0, records_s, 0.0),
        records_written=np.where(records_s > 0, records, 0.0),
        by_size=by_size.astype(np.float64),
        suspicion=Suspicion(
            shortened=shortened.astype(np.float64),
            records=np.where(np.isnan(records), suspicion.records, records),
            implausible=np.where(implausible, suspicion.implausible + 1, 0.0),
        ),
        restarted=restarted.astype(np.float64),
    )


def growth_by_offsets(before: LogSample, now: LogSample, mean_bytes: Row) -> LogGrowth:
    """From the end offset alone, for clusters that refuse to report log sizes."""
    records_s, records, restarted = _new_records(before, now)
    known = (records_s > 0) & ((records == 0) | ~np.isnan(mean_bytes))
    written = np.where(records == 0, 0.0, records * mean_bytes)
    return LogGrowth(
        bytes_duration_s=np.where(known, records_s, 0.0),
        bytes_written=np.where(known, written, 0.0),
        records_duration_s=np.where(records_s > 0, records_s, 0.0),
        records_written=np.where(records_s > 0, records, 0.0),
        by_size=np.zeros(len(records)),
        suspicion=Suspicion.none(len(records)),
        restarted=restarted.astype(np.float64),
    )


def _new_records(before: LogSample, now: LogSample) -> tuple[Row, Row, npt.NDArray[np.bool_]]:
    """Return the seconds of the interval, its records, and whether the log went back.

    If the log went back, seconds and records are not a number.
    """
    records = now.end_offset - before.end_offset
    duration_s = now.offsets_at_s - before.offsets_at_s
    restarted = records < 0
    usable = _is_interval(duration_s) & (records >= 0)
    return np.where(usable, duration_s, np.nan), np.where(restarted, np.nan, records), restarted


def _is_interval(duration_s: Row) -> npt.NDArray[np.bool_]:
    return (duration_s >= INTERVAL_S_MIN) & np.isfinite(duration_s)
