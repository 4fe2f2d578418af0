"""How far each owned partition is: ledger, end of the log, retries, and work since the last report.

A partition has progress from the moment its ledger entry is read until it ends.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.consumer.core.inputs import StageTimes
from penstock.consumer.core.ranges import BYTES_PER_OFFSET_GUESS, Waiting
from penstock.consumer.core.settings import CoreSettings
from penstock.messages import CycleMeasurement, ReportedPartition, WaitsFor
from penstock.model import Epoch, TopicPartition
from penstock.model.changed import changed

# What a record costs in the log beyond its key and value, when the log's size is not known.
_RECORD_FRAMING_BYTES = 12.0


# What all partitions need is asked for again soon: nothing else tells that it is back.
_SHARED_LONGEST_MS = {WaitsFor.KAFKA: 1_000, WaitsFor.SPARK: 1_000, WaitsFor.LAKE: 2_000}


def retry_wait_ms(settings: CoreSettings, failures: int) -> int:
    """The first wait, then twice as long each time, up to the longest."""
    return min(settings.retry_longest_ms, settings.retry_first_ms << min(failures - 1, 20))


def next_retry(settings: CoreSettings, failures: int, shared: WaitsFor | None) -> tuple[int, int]:
    """One failure more: how many count now, and how long to wait.

    `shared` is what is away for all. Its absence says nothing about the partition: once its longest
    wait is reached, further failures do not count.
    """
    wait_ms = retry_wait_ms(settings, failures + 1)
    longest_ms = wait_ms if shared is None else _SHARED_LONGEST_MS[shared]
    return (failures + 1, wait_ms) if wait_ms <= longest_ms else (failures, longest_ms)


@dataclass(frozen=True)
class PartitionProgress:
    topic_id: str
    ledger_offset: int | None
    # Where reading goes on after a hole that retention left; None when there is none.
    hole_end: int | None = None
    end_offset: int | None = None
    # Of the leader that told the end last, or of the last commit.
    leader_epoch: int | None = None
    # Since when the log ends below the next offset; None when it does not.
    short_since_ms: int | None = None
    # Since when Kafka does not have the partition; None when it does.
    missing_since_ms: int | None = None
    log_bytes_per_offset: float | None = None
    last_batch_number: int = 0
    failures: int = 0
    not_before_ms: int = 0
    # What was away for all when it was put off last; None if the failure was its own.
    shared: WaitsFor | None = None
    # It is unknown whether the last batch was committed: the ledger must be read first.
    is_unsettled: bool = False
    # How much of it a batch may have, after one that was too large for Spark's memory.
    offsets_max: int | None = None
    offsets_read: int = 0
    log_bytes_read: float = 0.0

    def size_of_offset(self, decoded_bytes_per_offset: float | None) -> float:
        """Log bytes of one offset: as measured, else from decoded records, else a guess."""
        if self.log_bytes_per_offset is not None:
            return max(1.0, self.log_bytes_per_offset)
        if decoded_bytes_per_offset is not None:
            return max(1.0, decoded_bytes_per_offset + _RECORD_FRAMING_BYTES)
        return BYTES_PER_OFFSET_GUESS

    def put_off(
        self, settings: CoreSettings, now_ms: int, shared: WaitsFor | None = None
    ) -> "PartitionProgress":
        """A failure that passes: read the ledger later, and only then go on."""
        failures, wait_ms = next_retry(settings, self.failures, shared)
        return changed(
            self,
            failures=failures,
            not_before_ms=now_ms + wait_ms,
            shared=shared,
            is_unsettled=True,
        )

    def halved(self, offsets: int) -> "PartitionProgress":
        """A batch with so many offsets of it was too large."""
        return changed(self, offsets_max=max(1, offsets // 2))

    def _next_offsets_max(self, carried: int) -> int | None:
        """Grow slowly, so that few batches are too large again; no limit that does not bind."""
        if self.offsets_max is None or carried < self.offsets_max:
            return None
        return self.offsets_max + max(1, self.offsets_max // 8)

    def doubted(self, now_ms: int) -> "PartitionProgress":
        """It may not be the log it was: read the ledger now, and only then go on."""
        return changed(self, not_before_ms=max(self.not_before_ms, now_ms), is_unsettled=True)

    def settled(self, ledger_offset: int | None) -> "PartitionProgress":
        """The ledger was read again."""
        return changed(self, ledger_offset=ledger_offset, is_unsettled=False, missing_since_ms=None)

    def carried(self, start: int, end: int, size_bytes: float) -> "PartitionProgress":
        return changed(
            self,
            ledger_offset=end,
            hole_end=None,
            failures=0,
            not_before_ms=0,
            offsets_max=self._next_offsets_max(end - start),
            offsets_read=self.offsets_read + end - start,
            log_bytes_read=self.log_bytes_read + size_bytes,
        )


Progress = Mapping[TopicPartition, PartitionProgress]


def waiting(
    progress: Progress,
    readable: Mapping[TopicPartition, int],
    decoded_bytes_per_offset: float | None,
    now_ms: int,
) -> dict[TopicPartition, Waiting]:
    """What can be read now: its end is known, it is settled, and its retry is due."""
    found = {}
    for partition, next_offset in readable.items():
        row = progress[partition]
        if row.end_offset is None or row.is_unsettled or row.not_before_ms > now_ms:
            continue
        start = max(next_offset, row.hole_end or 0)
        size = row.size_of_offset(decoded_bytes_per_offset)
        end = max(start, row.end_offset)
        if row.offsets_max is not None:
            end = min(end, start + row.offsets_max)
        found[partition] = Waiting(start, end, size, row.last_batch_number)
    return found


def behind(
    progress: Progress,
    next_offsets: Mapping[TopicPartition, int],
    decoded_bytes_per_offset: float | None,
) -> tuple[int, int] | None:
    """Unread records and their log bytes, by the ends read last; None when no end is known.

    Of a log that ends below what was carried, the lost records count: it is not up to date.
    """
    records, log_bytes, is_known = 0, 0.0, False
    for partition, next_offset in next_offsets.items():
        row = progress[partition]
        if row.end_offset is not None:
            unread = abs(row.end_offset - next_offset)
            records += unread
            log_bytes += unread * row.size_of_offset(decoded_bytes_per_offset)
            is_known = True
    return (records, round(log_bytes)) if is_known else None


def reported(
    partition: TopicPartition,
    epoch: Epoch,
    row: PartitionProgress,
    seconds: float,
    next_offset: int | None = None,
) -> ReportedPartition:
    """How far a partition is, and how fast it was read since the last report."""
    return ReportedPartition(
        topic=partition.topic,
        partition=partition.partition,
        epoch=str(epoch),
        next_offset=next_offset,
        end_offset=row.end_offset,
        read_speed_log_bytes_per_s=row.log_bytes_read / seconds if seconds > 0 else None,
        records_per_s=row.offsets_read / seconds if seconds > 0 else None,
    )


@dataclass(frozen=True)
class WorkDone:
    """What the batches since the last report did."""

    batches: int = 0
    records: int = 0
    decoded_bytes: int = 0
    log_bytes: float = 0.0
    times: StageTimes = field(default_factory=StageTimes)

    def __add__(self, other: "WorkDone") -> "WorkDone":
        return WorkDone(
            self.batches + other.batches,
            self.records + other.records,
            self.decoded_bytes + other.decoded_bytes,
            self.log_bytes + other.log_bytes,
            self.times + other.times,
        )

    def measurement(self) -> CycleMeasurement:
        return CycleMeasurement(
            batches=self.batches,
            records=self.records,
            decoded_bytes=self.decoded_bytes,
            log_bytes=round(self.log_bytes),
            read_ms=round(self.times.read_s * 1000),
            transform_ms=round(self.times.transform_s * 1000),
            write_ms=round(self.times.write_s * 1000),
            commit_ms=round(self.times.commit_s * 1000),
        )
