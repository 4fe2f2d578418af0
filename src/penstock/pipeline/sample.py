"""Chooses a few real records of a topic: the newest or the oldest ones of some partitions.

Offsets are not records: transactions and compaction leave offsets without one. So the records are
looked for, and the ranges made from where they are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.kafka_io.committed_records import committed_records
from penstock.kafka_io.offset_lookup import LogPosition
from penstock.model import OffsetRange, TopicPartition
from penstock.pipeline.batch import PlannedRange
from penstock.pipeline.record_source import RecordSource
from penstock.settings.sections import KafkaSettings

# Each partition is looked at by a reader of its own, which takes a part of a second.
PARTITIONS_MAX = 8
# How far a log is searched for records before fewer are taken.
OFFSETS_SEARCHED_MAX = 100_000


@dataclass(frozen=True, slots=True)
class Sample:
    """Ranges that begin and end with a record, and where the records are."""

    planned: tuple[PlannedRange, ...]
    offsets: Mapping[TopicPartition, Sequence[int]]

    @property
    def records(self) -> int:
        return sum(len(some) for some in self.offsets.values())

    def part_of(self, place: TopicPartition, start: int, end: int) -> PlannedRange:
        (one,) = (one for one in self.planned if one.partition == place)
        return replace(one, range=OffsetRange(place, start, end))


def sample_of(
    kafka: KafkaSettings, source: RecordSource, topic: str, *, count: int, is_oldest: bool = False
) -> Sample:
    """At most `count` records, the same number of each partition as far as they go."""
    found = source.look_up_topics([topic])
    for error in found.failures.values():
        raise error
    view = found.topics[topic]
    logs = _logs(source, [TopicPartition(topic, number) for number in range(view.partitions)])
    chosen = logs[: min(PARTITIONS_MAX, count)]
    offsets: dict[TopicPartition, Sequence[int]] = {}
    for number, log in enumerate(chosen):
        left = count - sum(len(some) for some in offsets.values())
        share = -(-left // (len(chosen) - number))
        some = _oldest(kafka, log, share) if is_oldest else _newest(kafka, log, share)
        if some:
            offsets[log.partition] = some
    planned = tuple(
        PlannedRange(OffsetRange(place, some[0], some[-1] + 1), view.topic_id)
        for place, some in offsets.items()
    )
    return Sample(planned, offsets)


def _logs(source: RecordSource, places: Sequence[TopicPartition]) -> list[OffsetRange]:
    """The logs that have offsets and can be read, the longest first."""
    starts = source.look_up_offsets(places, LogPosition.START).offsets
    ends = source.look_up_offsets(places, LogPosition.STABLE_END).offsets
    logs = [
        OffsetRange(place, starts[place], ends[place])
        for place in places
        if place in starts and ends.get(place, 0) > starts[place]
    ]
    return sorted(logs, key=lambda log: (-len(log), log.partition))


def _newest(kafka: KafkaSettings, log: OffsetRange, count: int) -> list[int]:
    """Looked for in ever longer stretches at the end of the log."""
    length, offsets = count, list[int]()
    while len(offsets) < count:
        start = max(log.start, log.end - length)
        stretch = OffsetRange(log.partition, start, log.end)
        offsets = [one.offset for some in committed_records(kafka, stretch) for one in some]
        if start == log.start or length >= OFFSETS_SEARCHED_MAX:
            break
        length *= 4
    return offsets[-count:]


def _oldest(kafka: KafkaSettings, log: OffsetRange, count: int) -> list[int]:
    end = min(log.end, log.start + OFFSETS_SEARCHED_MAX)
    offsets: list[int] = []
    for some in committed_records(kafka, OffsetRange(log.partition, log.start, end)):
        offsets += [one.offset for one in some]
        if len(offsets) >= count:
            break
    return offsets[:count]


def first_failing(offsets: Sequence[int], fails: Callable[[int, int], bool]) -> int | None:
    """The first record that makes a range fail, by halving; None if none does so alone."""
    low, high = 0, len(offsets)
    while high - low > 1:
        middle = (low + high) // 2
        if fails(offsets[low], offsets[middle - 1] + 1):
            high = middle
        else:
            low = middle
    return offsets[low] if fails(offsets[low], offsets[low] + 1) else None
