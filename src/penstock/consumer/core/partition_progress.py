"""What the process knows of each partition it owns beyond its ownership. Pure.

Where the ledger stands, how far the log reaches, what an offset weighs, when it may be tried again,
and what was read since the last report. The ownership decides what is read; the books say how much.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from penstock.consumer.core.ranges import BYTES_PER_OFFSET_GUESS, Waiting
from penstock.messages import CycleMeasurement, FailedPartition, ReportedPartition, StopReason
from penstock.model import Epoch, TopicPartition

RETRY_FIRST_S = 0.5
RETRY_MAX_S = 15.0
# What a record costs in the log beyond its key and value, when the log's size is not known.
_RECORD_FRAMING_BYTES = 12.0
_FAILED_ROWS_MAX = 100


def retry_wait_s(failures: int) -> float:
    """Half a second, then twice as long each time, up to a bound."""
    return min(RETRY_MAX_S, RETRY_FIRST_S * 2.0 ** min(failures - 1, 10))


@dataclass(slots=True)
class PartitionProgress:
    """One partition. Not frozen: a page is written on."""

    topic_id: str
    ledger_offset: int | None
    # Where reading goes on behind a hole that retention left; None when there is none.
    hole_end: int | None = None
    end_offset: int | None = None
    log_bytes_per_offset: float | None = None
    last_batch_number: int = 0
    failures: int = 0
    not_before_s: float = 0.0
    # A batch ended without saying whether it was committed: the ledger must be read first.
    is_unsettled: bool = False
    offsets_read: int = 0
    log_bytes_read: float = 0.0


@dataclass(slots=True)
class ProgressTable:
    rows: dict[TopicPartition, PartitionProgress] = field(default_factory=dict)
    failed: dict[TopicPartition, FailedPartition] = field(default_factory=dict)
    # Of all records seen, for partitions whose log size is not known.
    decoded_bytes_per_offset: float | None = None
    batch_number: int = 0
    batches: int = 0
    records: int = 0
    decoded_bytes: int = 0
    log_bytes: float = 0.0
    read_s: float = 0.0
    transform_s: float = 0.0
    write_s: float = 0.0
    commit_s: float = 0.0

    def add(self, partition: TopicPartition, topic_id: str, ledger: int | None) -> None:
        self.rows[partition] = PartitionProgress(topic_id, ledger)
        self.failed.pop(partition, None)

    def keep_only(self, owned: Iterable[TopicPartition]) -> None:
        """Close the pages of what is no longer ours."""
        kept = set(owned)
        self.rows = {one: row for one, row in self.rows.items() if one in kept}

    def weight(self, partition: TopicPartition) -> float:
        """Log bytes an offset of this partition stands for."""
        measured = self.rows[partition].log_bytes_per_offset
        if measured is not None:
            return max(1.0, measured)
        if self.decoded_bytes_per_offset is not None:
            return max(1.0, self.decoded_bytes_per_offset + _RECORD_FRAMING_BYTES)
        return BYTES_PER_OFFSET_GUESS

    def waiting(
        self, readable: Mapping[TopicPartition, int], now_s: float
    ) -> dict[TopicPartition, Waiting]:
        """What can be read now: looked at, settled, and not waiting to be tried again."""
        found = {}
        for partition, next_offset in readable.items():
            row = self.rows.get(partition)
            if row is None or row.end_offset is None:
                continue
            if row.is_unsettled or row.not_before_s > now_s:
                continue
            start = max(next_offset, row.hole_end or 0)
            found[partition] = Waiting(
                start, max(start, row.end_offset), self.weight(partition), row.last_batch_number
            )
        return found

    def put_off(self, partition: TopicPartition, now_s: float, *, is_unsettled: bool) -> None:
        """It failed in a way that passes: try again later."""
        row = self.rows[partition]
        row.failures += 1
        row.not_before_s = now_s + retry_wait_s(row.failures)
        row.is_unsettled = row.is_unsettled or is_unsettled

    def settle(self, partition: TopicPartition, ledger: int | None) -> None:
        """The ledger was read again."""
        row = self.rows[partition]
        row.ledger_offset = ledger
        row.is_unsettled = False

    def carried(self, partition: TopicPartition, start: int, end: int) -> None:
        row = self.rows[partition]
        row.ledger_offset = end
        row.hole_end = None
        row.failures = 0
        row.not_before_s = 0.0
        row.offsets_read += end - start
        row.log_bytes_read += (end - start) * self.weight(partition)

    def note_failure(
        self, partition: TopicPartition, reason: StopReason, offset: int | None, detail: str
    ) -> None:
        """For the reports, until it is started again. Bounded: the log has the rest."""
        if len(self.failed) < _FAILED_ROWS_MAX or partition in self.failed:
            self.failed[partition] = FailedPartition(
                topic=partition.topic,
                partition=partition.partition,
                reason=reason,
                offset=offset,
                detail=one_line(detail),
            )

    def measured(
        self, epochs: Mapping[TopicPartition, Epoch], seconds: float
    ) -> dict[TopicPartition, ReportedPartition]:
        """What was read of each partition since the last report; the count begins anew."""
        rows = {}
        for partition, epoch in epochs.items():
            row = self.rows.get(partition)
            if row is None:
                continue
            rows[partition] = ReportedPartition(
                topic=partition.topic,
                partition=partition.partition,
                epoch=str(epoch),
                end_offset=row.end_offset,
                read_speed_log_bytes_per_s=row.log_bytes_read / seconds if seconds > 0 else None,
                records_per_s=row.offsets_read / seconds if seconds > 0 else None,
            )
            row.offsets_read, row.log_bytes_read = 0, 0.0
        return rows

    def behind(self, offsets: Mapping[TopicPartition, int | None]) -> tuple[int, int] | None:
        """Records and log bytes that wait, as of the last look; None when nothing was looked at."""
        records, log_bytes, known = 0, 0.0, False
        for partition, next_offset in offsets.items():
            row = self.rows.get(partition)
            if row is not None and row.end_offset is not None and next_offset is not None:
                waiting = max(0, row.end_offset - next_offset)
                records += waiting
                log_bytes += waiting * self.weight(partition)
                known = True
        return (records, round(log_bytes)) if known else None

    def cycle(self) -> CycleMeasurement:
        """What the batches since the last report did; the count begins anew."""
        measured = CycleMeasurement(
            batches=self.batches,
            records=self.records,
            decoded_bytes=self.decoded_bytes,
            log_bytes=round(self.log_bytes),
            read_ms=round(self.read_s * 1000),
            transform_ms=round(self.transform_s * 1000),
            write_ms=round(self.write_s * 1000),
            commit_ms=round(self.commit_s * 1000),
        )
        self.batches = self.records = self.decoded_bytes = 0
        self.log_bytes = self.read_s = self.transform_s = self.write_s = self.commit_s = 0.0
        return measured


def one_line(text: str) -> str:
    """What an error said, fit to travel: one line, printable, not too long."""
    return "".join(letter if letter.isprintable() else " " for letter in text)[:100]
