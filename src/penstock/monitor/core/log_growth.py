"""What was written between two looks at the brokers, told from what only seems so.

A look gives levels: how large each partition's log is on its leader, where it begins and ends. The
difference of two sizes is what was written, except where it lies: retention or compaction took
bytes away, another replica leads (its size differs), a size jumped. There the difference of end
offsets times the partition's mean log bytes per record stands in, and where not even that is known
the interval is unknown: no duration, no bytes, never a made-up zero.

Columns are partitions, as everywhere in this room. NaN means: not seen.
"""

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from penstock.monitor.core.filters import Row

# A mean over this many records is good enough to call a size difference implausible by it.
RECORDS_FOR_A_MEAN = 100.0
# A difference outside these multiples of what the records of the interval should weigh is
# implausible: below it compaction is at work, above it the size jumped.
PLAUSIBLE_LEAST = 0.5
PLAUSIBLE_MOST = 10.0
# Two looks closer together than this are one: bytes over next to no time are no speed.
INTERVAL_S_MIN = 0.001
# Records may really have become smaller or larger: after this many implausible intervals in
# sequence the sizes are believed again.
IMPLAUSIBLE_IN_SEQUENCE_MAX = 2.0


@dataclass(frozen=True, slots=True)
class Levels:
    """One look: size, start and end of each log, each with the (monotonic) time it was taken."""

    size_bytes: Row
    size_at_s: Row
    leader: Row
    start_offset: Row
    end_offset: Row
    offsets_at_s: Row

    @classmethod
    def unseen(cls, partitions: int) -> "Levels":
        return cls(*(np.full(partitions, np.nan) for _ in fields(cls)))

    def then(self, newer: "Levels") -> "Levels":
        """The newest known of everything."""
        sized, offset = ~np.isnan(newer.size_bytes), ~np.isnan(newer.end_offset)
        return Levels(
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
    """What the last look left to be wary of."""

    shortened: Row
    """1 where the log's start moved: sizes and offsets are not read at one instant, so the bytes
    may be missing from the next difference only."""
    records: Row
    """Records seen in the last interval: bytes may be seen one look after their offsets."""
    implausible: Row
    """How many intervals in sequence were implausible."""

    @classmethod
    def none(cls, partitions: int) -> "Suspicion":
        return cls(np.zeros(partitions), np.full(partitions, np.nan), np.zeros(partitions))


@dataclass(frozen=True, slots=True)
class Written:
    """What was written in one interval; a duration of 0 where nothing can be said."""

    bytes_duration_s: Row
    bytes_written: Row
    records_duration_s: Row
    records_written: Row
    measured: Row
    """1 where the bytes come from sizes: only those tell what a record weighs."""
    suspicion: Suspicion
    restarted: Row
    """1 where the end of the log went back: another log than before, or a truncated one."""


def written_by_sizes(
    before: Levels, now: Levels, mean_bytes: Row, mean_records: Row, suspicion: Suspicion
) -> Written:
    """By the leader's log size. `mean_bytes` is NaN while unknown; `mean_records` its base."""
    duration_s = now.size_at_s - before.size_at_s
    grown = now.size_bytes - before.size_bytes
    records_s, records, restarted = _records(before, now)
    shortened = now.start_offset > before.start_offset

    expected = records * mean_bytes
    idle = (records == 0) & (suspicion.records == 0)
    recently = records + np.nan_to_num(suspicion.records)
    # The two answers are of different moments: what is expected is scaled to the size's interval.
    expected_here = np.where(records_s > 0, expected * (duration_s / records_s), expected)
    implausible = (mean_records >= RECORDS_FOR_A_MEAN) & (
        (grown < PLAUSIBLE_LEAST * expected_here - mean_bytes)
        | (grown > PLAUSIBLE_MOST * (recently + 1) * mean_bytes)
    )
    implausible &= suspicion.implausible < IMPLAUSIBLE_IN_SEQUENCE_MAX

    measured = _is_interval(duration_s) & (grown >= 0) & (now.leader == before.leader)
    by_size = measured & ~shortened & (suspicion.shortened == 0) & ~restarted
    by_size &= ~implausible & ~(idle & (grown > 0))
    by_records = ~by_size & (records_s > 0) & (records >= 0) & (idle | ~np.isnan(expected))
    by_records &= ~np.isnan(now.size_bytes)  # an absent size is waited for, not guessed
    return Written(
        bytes_duration_s=np.select([by_size, by_records], [duration_s, records_s], 0.0),
        bytes_written=np.select(
            [by_size, by_records & ~idle, by_records], [grown, expected, 0.0], 0.0
        ),
        records_duration_s=np.where(records_s > 0, records_s, 0.0),
        records_written=np.where(records_s > 0, records, 0.0),
        measured=by_size.astype(np.float64),
        suspicion=Suspicion(
            shortened=shortened.astype(np.float64),
            records=np.where(np.isnan(records), suspicion.records, records),
            implausible=np.where(implausible, suspicion.implausible + 1, 0.0),
        ),
        restarted=restarted.astype(np.float64),
    )


def written_by_offsets(before: Levels, now: Levels, mean_bytes: Row) -> Written:
    """By the end offset alone, for clusters that do not tell log sizes."""
    records_s, records, restarted = _records(before, now)
    known = (records_s > 0) & ((records == 0) | ~np.isnan(mean_bytes))
    written = np.where(records == 0, 0.0, records * mean_bytes)
    return Written(
        bytes_duration_s=np.where(known, records_s, 0.0),
        bytes_written=np.where(known, written, 0.0),
        records_duration_s=np.where(records_s > 0, records_s, 0.0),
        records_written=np.where(records_s > 0, records, 0.0),
        measured=np.zeros(len(records)),
        suspicion=Suspicion.none(len(records)),
        restarted=restarted.astype(np.float64),
    )


def _records(before: Levels, now: Levels) -> tuple[Row, Row, npt.NDArray[np.bool_]]:
    """How long, how many, and whether the log went back (then the interval has no length)."""
    records = now.end_offset - before.end_offset
    duration_s = now.offsets_at_s - before.offsets_at_s
    restarted = records < 0
    usable = _is_interval(duration_s) & (records >= 0)
    return np.where(usable, duration_s, np.nan), np.where(restarted, np.nan, records), restarted


def _is_interval(duration_s: Row) -> npt.NDArray[np.bool_]:
    return (duration_s >= INTERVAL_S_MIN) & np.isfinite(duration_s)
