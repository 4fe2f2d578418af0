"""Finds the record that no way carries, keeps it as a dead letter, and carries the others.

A range that fails as a whole is tried in parts: half as many offsets after a failure, twice as many
after a success. A single record that fails goes to the dead letters with its reason, if it is at
fault itself: both Kafka clients say so, or a record next to it can be written. Otherwise the
failure is the table's or the machine's, and the partition is put off.
"""

from collections.abc import Callable
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
from penstock.pipeline.failures import RecordUnreadableError, UnforeseenError
from penstock.pipeline.lake_commit import LakeTable
from penstock.pipeline.record_source import RecordSource
from penstock.pipeline.run_batch import PendingDeadLetters, TableBatch
from penstock.pipeline.written_files import written_files

# Failures that may be those of a single record.
OF_ONE_RECORD = (RecordUnreadableError, UnforeseenError)
# After so long the rest of the range is left to the next batch: other partitions wait meanwhile.
# No setting: the next batch goes on where this one stopped, so nothing depends on the figure.
NARROWING_S_MAX = 10.0
REASON_CHARACTERS_MAX = 2_000

_LETTER = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("reason", pa.string()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic_id", pa.string()),
    ]
)


@dataclass(slots=True)
class Narrowing:
    """`carry` runs one range by all ways, `is_written` tries it without a commit."""

    kafka: RecordSource
    clock: Callable[[], float]
    carry: Callable[[PlannedRange], BatchResult]
    is_written: Callable[[PlannedRange], bool]
    keep: Callable[[PlannedRange, PenstockError], None]
    # How many offsets to try next, of partitions whose range is not done yet.
    sizes: dict[TopicPartition, int] = field(default_factory=dict)

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
        if not isinstance(failure, UnforeseenError):
            return False
        place, offset = one.partition, one.range.start
        starts = self.kafka.look_up_offsets([place], LogPosition.START).offsets
        ends = self.kafka.look_up_offsets([place], LogPosition.STABLE_END).offsets
        if place not in starts or place not in ends:
            return False
        others = {offset - 1, offset + 1, ends[place] - 1} - {offset}
        return any(
            self.is_written(
                replace(one, range=OffsetRange(place, other, other + 1), ledger_offset=None)
            )
            for other in sorted(others)
            if starts[place] <= other < ends[place]
        )


def add_dead_letter(
    letters: LakeTable,
    group: str,
    table: TableBatch,
    reason: str,
    content: tuple[bytes | None, bytes | None],
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
        "key": content[0],
        "value": content[1],
        "topic_id": one.topic_id,
    }
    with letters.storage.create_file(f"{folder}/part-0.parquet") as stream:
        pyarrow.parquet.write_table(
            pa.Table.from_pylist([row], schema=_LETTER), stream, compression="zstd"
        )
    pending.files.extend(written_files(letters.storage, folder))
