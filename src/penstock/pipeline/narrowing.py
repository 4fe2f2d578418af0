"""Finds the record that no way carries, keeps it as a dead letter, and carries the others.

A range that fails as a whole is tried in parts: half as many offsets after a failure, twice as many
after a success. A single record that fails goes to the dead letters with its reason, if it is at
fault itself: both Kafka clients say so, the nearest other records can be written, or the partition
has no other and it fails again and again. Otherwise the failure is the table's or the machine's,
and the partition is put off.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.parquet

from penstock.errors import PenstockError
from penstock.kafka_io.offset_lookup import LogPosition
from penstock.model import OffsetRange, TopicPartition
from penstock.pipeline.batch import BatchResult, PlannedRange
from penstock.pipeline.dead_letters import (
    LETTERS_SCHEMA,
    already_kept,
    dead_letter_folder,
    dead_letter_moves,
    ledger_of_dead_letters,
    put_up_fence,
)
from penstock.pipeline.failures import RecordUnreadableError, SparkMemoryError, UnforeseenError
from penstock.pipeline.lake_commit import LakeTable
from penstock.pipeline.record_source import RecordContent, RecordSource
from penstock.pipeline.run_batch import PendingDeadLetters, TableBatch
from penstock.pipeline.written_files import written_files
from penstock.spark_worker.record_columns import RECORD_COLUMNS

# Failures that may be those of a single record.
OF_ONE_RECORD = (RecordUnreadableError, UnforeseenError)
# After so long the rest of the range is left to the next batch: other partitions wait meanwhile.
# No setting: the next batch goes on where this one stopped, so nothing depends on the figure.
NARROWING_S_MAX = 10.0
REASON_CHARACTERS_MAX = 2_000
# So many tries of other records that fail show that the record is not at fault.
OTHERS_FAILED_MAX = 3
# How often a record is tried that is the only one of its partition: nothing shows what is at fault.
ALONE_TRIED_MAX = 5

_LETTER = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("reason", pa.string()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic_id", pa.string()),
        ("timestamp", RECORD_COLUMNS["timestamp"]),
        ("headers", RECORD_COLUMNS["headers"]),
    ]
)


@dataclass(slots=True)
class Narrowing:
    """`carry` runs one range by all ways.

    `write` tries a range without a commit: how many records it has, None if they cannot be written.
    """

    kafka: RecordSource
    clock: Callable[[], float]
    carry: Callable[[PlannedRange], BatchResult]
    write: Callable[[PlannedRange], int | None]
    keep: Callable[[PlannedRange, PenstockError], None]
    # How many offsets to try next, of partitions whose range is not done yet.
    sizes: dict[TopicPartition, int] = field(default_factory=dict)
    # The offset of a record that is alone in its partition, and how often it failed.
    alone: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)

    def run(self, one: PlannedRange) -> BatchResult:
        """Carry the range in parts. What is left of it is planned again."""
        place, began_s = one.partition, self.clock()
        size = self.sizes.pop(place, 0) or max(1, len(one.range) // 2)
        result, left = BatchResult(), one
        while len(left.range):
            end = min(left.range.start + size, one.range.end)
            part = replace(left, range=OffsetRange(place, left.range.start, end))
            done = self.carry(part)
            failure = done.failures.get(place)
            if failure is not None and len(part.range) > 1 and isinstance(failure, OF_ONE_RECORD):
                size = len(part.range) // 2
                continue
            if failure is not None:
                if not self._is_its_own(part, failure):
                    return result + done
                self.keep(part, failure)
                done = BatchResult(carried={place: end}, records=1, dead_letters=1)
            elif place not in done.carried:
                return result + done
            else:
                size *= 2
            result += done
            left = replace(left, range=OffsetRange(place, end, one.range.end), ledger_offset=end)
            if len(left.range) and self.clock() - began_s > NARROWING_S_MAX:
                self.sizes[place] = size
                break
        return result

    def _is_its_own(self, one: PlannedRange, failure: PenstockError) -> bool:
        if isinstance(failure, RecordUnreadableError):
            return True
        if not isinstance(failure, (UnforeseenError, SparkMemoryError)):
            return False
        place, offset = one.partition, one.range.start
        starts = self.kafka.look_up_offsets([place], LogPosition.START).offsets
        ends = self.kafka.look_up_offsets([place], LogPosition.STABLE_END).offsets
        if place not in starts or place not in ends:
            return False
        failed = 0
        for start, end in _others(offset, starts[place], ends[place]):
            other = replace(one, range=OffsetRange(place, start, end), ledger_offset=None)
            records = self.write(other)
            if records:
                return True
            failed += records is None
            if failed == OTHERS_FAILED_MAX:
                return False
        return not failed and self._has_failed_often(one)

    def _has_failed_often(self, one: PlannedRange) -> bool:
        offset, tried = self.alone.pop(one.partition, (one.range.start, 0))
        tried = tried + 1 if offset == one.range.start else 1
        if tried < ALONE_TRIED_MAX:
            self.alone[one.partition] = (one.range.start, tried)
        return tried >= ALONE_TRIED_MAX


def _others(offset: int, log_start: int, log_end: int) -> Iterator[tuple[int, int]]:
    """Ranges around an offset, the next ones first and ever longer ones, up to the whole log.

    Transaction markers and compaction leave offsets without a record.
    """
    low, high, length = offset, offset + 1, 1
    while low > log_start or high < log_end:
        before, after = max(log_start, low - length), min(log_end, high + length)
        if before < low:
            yield before, low
        if high < after:
            yield high, after
        if length == 1 and after < log_end:
            yield log_end - 1, log_end
        low, high, length = before, after, 2 * length


def add_dead_letter(
    letters: LakeTable,
    group: str,
    table: TableBatch,
    reason: str,
    content: RecordContent,
) -> None:
    """Write the dead letter of a batch of one record; it is committed with the batch."""
    (one,) = table.planned
    put_up_fence(letters, group, table.planned, table.folder)
    ledger = ledger_of_dead_letters(letters, group, table.planned)
    if already_kept(letters, table.planned, ledger):
        return  # by a batch that never committed its table
    letters.open_for(LETTERS_SCHEMA, ())
    folder = dead_letter_folder(table.folder, one, ledger[one.partition])
    pending = PendingDeadLetters(
        letters, folder, dead_letter_moves(group, table.planned, ledger), []
    )
    table.dead_letters.append(pending)
    row = {
        "topic": one.partition.topic,
        "partition": one.partition.partition,
        "offset": one.range.start,
        "reason": reason[:REASON_CHARACTERS_MAX],
        "key": content.key,
        "value": content.value,
        "topic_id": one.topic_id,
        "timestamp": content.timestamp,
        "headers": content.headers
        and [{"key": name, "value": value} for name, value in content.headers],
    }
    with letters.storage.create_file(f"{folder}/part-0.parquet") as stream:
        pyarrow.parquet.write_table(
            pa.Table.from_pylist([row], schema=_LETTER), stream, compression="zstd"
        )
    pending.files.extend(written_files(letters.storage, folder))
