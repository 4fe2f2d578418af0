"""Reads a stretch of one partition once, from beginning to end."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing

from penstock.errors import UnreachableError
from penstock.kafka_io.partition_reader import (
    FailureKind,
    KafkaRecord,
    PartitionReader,
    ReadFailure,
)
from penstock.model import OffsetRange, TopicPartition
from penstock.settings.sections import KafkaSettings

_RECORDS_AT_ONCE = 10_000
# A read waits for all the records it may return; where offsets are missing, they never come.
_WAIT_S = 0.1
# How far back the newest record of a key is looked for before the whole partition is read.
_TAIL_OFFSETS = 200
# How many records of a key are looked at, from the newest: more that do not count are a flood.
_CANDIDATES_MAX = 100
_PROPERTIES = {
    "queued.max.messages.kbytes": 65_536,
    # The end of a partition is known by an empty fetch, for which nobody should wait long.
    "fetch.wait.max.ms": 50,
}


def committed_records(kafka: KafkaSettings, wanted: OffsetRange) -> Iterator[list[KafkaRecord]]:
    """Lists of records in the order of their offsets, all within `wanted`."""
    if not len(wanted):
        return
    with closing(PartitionReader(kafka, _PROPERTIES)) as reader:
        reader.assign({wanted.partition: wanted.start})
        heard_s = time.monotonic()
        while reader.positions[wanted.partition] < wanted.end:
            left = wanted.end - reader.positions[wanted.partition]
            outcomes = reader.read(_WAIT_S, count=min(_RECORDS_AT_ONCE, left))
            records = []
            for outcome in outcomes:
                if isinstance(outcome, ReadFailure):
                    if outcome.kind is not FailureKind.PASSING:
                        raise outcome.error
                    continue
                heard_s = time.monotonic()
                if isinstance(outcome, KafkaRecord) and outcome.offset < wanted.end:
                    records.append(outcome)
            if records:
                yield records
                heard_s = time.monotonic()  # what the caller did meanwhile is not Kafka's silence
            if time.monotonic() - heard_s > kafka.answer_timeout:
                raise UnreachableError(f"Kafka sent nothing more while reading {wanted}.")


def all_records(kafka: KafkaSettings, partition: TopicPartition) -> Iterator[KafkaRecord]:
    """Every record that is in the partition now."""
    with closing(PartitionReader(kafka)) as reader:
        now = reader.log_range(partition)
    for records in committed_records(kafka, now):
        yield from records


def newest_in_a_transaction(
    kafka: KafkaSettings,
    partition: TopicPartition,
    key: bytes,
    *,
    on_other: Callable[[int], None] = lambda _: None,
) -> bytes | None:
    """The value that was last written under the key, in a transaction; None if there is none.

    Controllers write in transactions only. Who may write to the topic, and under no transactional
    id, is not believed: `on_other` gets the offset of what they wrote since.
    """
    # Imported when it is used: the library behind it is slow to import.
    from penstock.kafka_io.stored_batches import StoredBatches  # noqa: PLC0415 -- slow

    with closing(PartitionReader(kafka)) as reader:
        now = reader.log_range(partition)
    tail = max(now.start, now.end - _TAIL_OFFSETS)
    with closing(StoredBatches(kafka, f"asking who wrote to {partition.topic}")) as stored:
        for start, end in ((tail, now.end), (now.start, tail)):
            found: deque[KafkaRecord] = deque(maxlen=_CANDIDATES_MAX)
            for records in committed_records(kafka, OffsetRange(partition, start, end)):
                found += [one for one in records if one.key == key and one.value is not None]
            for record in reversed(found):
                if stored.writer(partition, record.offset).is_transactional:
                    return record.value
                on_other(record.offset)
    return None
