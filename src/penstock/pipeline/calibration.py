"""What one consumer carries of a topic, tried on real records before a group starts.

The pipeline carries some of the newest records into a corner of the lake that is removed again: a
few to warm up, a small batch, and a larger one. The two sizes tell the fixed cost of a batch from
the cost of each byte, and both together what a consumer carries in the batches of a backlog.

Somebody waits for the start, so each batch is only as large as fits into the time that is left, by
what the one before it took. Where no larger batch fits because the topic is slow, what was timed is
a lower bound.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any, TypeAlias

from penstock.errors import PenstockError
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.log_sizes import LogSizeReader
from penstock.kafka_io.offset_lookup import LogPosition
from penstock.model import OffsetRange, TopicPartition
from penstock.model.sentences import speed_text
from penstock.pipeline.batch import PlannedRange, Writer
from penstock.pipeline.carry import Pipeline
from penstock.pipeline.record_source import KafkaSource, RecordSource
from penstock.pipeline.trial import corner
from penstock.settings import Settings

# Log bytes of the three batches. The last is large enough to tell the cost of a byte.
BATCHES_BYTES = (200e3, 2e6, 16e6)
# The last is carried within so many seconds, also where a transformation is slow.
LAST_SECONDS_MAX = 5.0
# How much larger than the one before it a batch must be to tell more. The first one warms up, so
# the second tells more also where it is smaller, and is quicker than the first one shows.
_GROWTH_MIN_OF_LAST = 2.0
_GROWTH_MIN_OF_SECOND = 0.25
_SHARE_OF_TIME_OF_SECOND = 0.5
# Two batches tell the fixed cost from the cost of a byte if the smaller one was warm.
_NOT_THE_LAST = 2
# A topic with less than this shows only the fixed cost of a batch.
BYTES_MIN = 1e6
# The largest topics are tried, within this time. Only the first batch of a topic, of which nothing
# is known, may take longer.
TOPICS_MAX = 10
SECONDS_MAX = 20.0
# Where no larger batch fitted, the topic was slow if its batches took this long in all, or the last
# one so long after another that warmed up. Else it was late: a small batch shows its fixed cost,
# and may be a hundred times slower than its bytes.
_SLOW_IN_ALL_S = SECONDS_MAX / 2
_SLOW_LAST_S = LAST_SECONDS_MAX / _GROWTH_MIN_OF_LAST
# What two batches tell is not believed beyond so many times what the larger one carried.
_GAIN_MAX = 10.0
_WRITER = Writer(1, 1)

# Beside each range is where the ledger is before it.
BatchRanges: TypeAlias = list[tuple[OffsetRange, int | None]]


@dataclass(frozen=True, slots=True)
class Calibration:
    """What one consumer carries of a topic; None where it was not found out, with the reason.

    `is_at_least` says that it was too slow for a large batch: it carries that much or more.
    """

    topic: str
    bytes_per_s: float | None
    explanation: str
    is_at_least: bool = False


@dataclass(frozen=True, slots=True)
class TimedBatch:
    log_bytes: float
    seconds: float


def calibrated(
    settings: Settings,
    open_session: Callable[[], Any],
    includes: Callable[[str], bool],
    on_progress: Callable[[str], None] = lambda _: None,
) -> Iterator[Calibration]:
    """The largest topics, as far as the time lasts. Spark is started only if one has records."""
    names = filter(includes, Administration(settings.kafka).cluster().partition_counts)
    with LogSizeReader(settings.kafka) as reader:
        sizes = reader.read_bytes(list(names))
    by_topic: dict[str, dict[TopicPartition, int]] = {}
    for partition, size in sizes.items():
        by_topic.setdefault(partition.topic, {})[partition] = size
    totals = {topic: sum(logs.values()) for topic, logs in by_topic.items()}
    large = [topic for topic, total in totals.items() if total >= BYTES_MIN]
    chosen = sorted(large, key=lambda topic: (-totals[topic], topic))[:TOPICS_MAX]
    if not chosen:
        return
    on_progress("starting Spark")
    session = open_session()
    until_s = time.monotonic() + SECONDS_MAX
    try:
        for topic in chosen:
            if time.monotonic() > until_s:
                return
            on_progress(f"timing batches of {topic}")
            try:
                yield _calibrate(settings, session, topic, by_topic[topic], until_s)
            except PenstockError as error:
                yield Calibration(topic, None, f"{topic} was not timed: {error.message}")
    finally:
        session.stop()


def _calibrate(
    settings: Settings,
    session: Any,
    topic: str,
    sizes: Mapping[TopicPartition, int],
    until_s: float,
) -> Calibration:
    source = KafkaSource(settings, session)
    found = source.look_up_topics([topic])
    for error in found.failures.values():
        raise error
    logs = _logs(source, sizes)
    per_offset = sum(sizes[p] for p in logs) / max(1, sum(len(log) for log in logs.values()))
    with corner(settings.lake) as lake:
        pipeline = Pipeline(settings.model_copy(update={"lake": lake}), session)

        def carry(ranges: BatchRanges) -> None:
            topic_id = found.topics[topic].topic_id
            planned = [PlannedRange(one, topic_id, ledger) for one, ledger in ranges]
            for failure in pipeline.carry(planned, writer=_WRITER).failures.values():
                raise failure

        try:
            batches = list(cut(logs, [size / max(1.0, per_offset) for size in BATCHES_BYTES]))
            timed = timed_batches(batches, per_offset, carry, until_s=until_s)
        finally:
            pipeline.close()
    return calibration_of(
        topic, timed, settings.consumer.backlog_batch_time, has_enough=all(batches)
    )


def timed_batches(
    batches: Sequence[BatchRanges],
    bytes_per_offset: float,
    carry: Callable[[BatchRanges], None],
    *,
    until_s: float,
    clock: Callable[[], float] = time.monotonic,
) -> list[TimedBatch]:
    """Carry one after the other, each as far as it fits into the time that is left.

    Where little of the last one fitted, what is left of it is carried too: the fixed cost of a
    batch makes a small one look slower than its bytes are.
    """
    timed: list[TimedBatch] = []
    ended: dict[TopicPartition, int] = {}
    for number, batch in enumerate(chain(batches, repeat(batches[-1]))):
        began_s = clock()
        whole = continued(batch, ended)
        fitting = wanted = _log_bytes(whole, bytes_per_offset)
        if timed:
            left_s = until_s - began_s
            is_second = number == 1
            fitting = fitting_bytes(
                timed[-1],
                wanted,
                _SHARE_OF_TIME_OF_SECOND * left_s if is_second else min(left_s, LAST_SECONDS_MAX),
                _GROWTH_MIN_OF_SECOND if is_second else _GROWTH_MIN_OF_LAST,
            )
        ranges = shortened(whole, fitting / wanted) if wanted else []
        if not ranges:
            break
        carry(ranges)
        ended |= {one.partition: one.end for one, _ in ranges}
        timed.append(TimedBatch(_log_bytes(ranges, bytes_per_offset), clock() - began_s))
    return timed


def fitting_bytes(
    before: TimedBatch, wanted_bytes: float, most_s: float, growth_min: float
) -> float:
    """How much of a batch is carried in that time, by the one before it; 0 for too little."""
    speed = before.log_bytes / max(before.seconds, 1e-3)
    fitting = min(wanted_bytes, most_s * speed)
    return fitting if fitting >= growth_min * before.log_bytes else 0.0


def continued(ranges: BatchRanges, ended: Mapping[TopicPartition, int]) -> BatchRanges:
    """From where the batch before it has ended, which may have been shortened."""
    return [
        (
            OffsetRange(one.partition, ended.get(one.partition, one.start), one.end),
            ended.get(one.partition),
        )
        for one, _ in ranges
        if ended.get(one.partition) != one.end
    ]


def shortened(ranges: BatchRanges, share: float) -> BatchRanges:
    """The oldest offsets of each, so that they follow the batch before it."""
    if share >= 1:
        return ranges
    return [
        (OffsetRange(one.partition, one.start, one.start + length), ledger)
        for one, ledger in ranges
        if (length := int(len(one) * share))
    ]


def calibration_of(
    topic: str, timed: Sequence[TimedBatch], batch_time_s: float, *, has_enough: bool
) -> Calibration:
    """What the batches tell, of which the last ones may be missing."""
    if not timed or not has_enough:
        return Calibration(topic, None, f"{topic} was not timed: it has too few records")
    last = timed[-1]
    took = f"{last.log_bytes / 1e6:.1f} MB of its log took {last.seconds:.1f} s"
    if len(timed) > _NOT_THE_LAST:
        speed = carried_in_a_backlog(timed[-2], last, batch_time_s)
        text = f"one consumer carries about {speed_text(speed)} of {topic}: {took}"
        return Calibration(topic, speed, text)
    if not _was_slow(timed):
        why = "there was no time for a large batch"
        return Calibration(topic, None, f"{topic} was not timed: {why}")
    # The fixed cost of the batch, and of the first one what warms up, is in it.
    speed = last.log_bytes / max(last.seconds, 1e-3)
    text = f"one consumer carries at least {speed_text(speed)} of {topic}: {took}"
    return Calibration(topic, speed, f"{text}; no larger batch was timed", is_at_least=True)


def _was_slow(timed: Sequence[TimedBatch]) -> bool:
    """Whether the topic itself left no time for a larger batch, and not those before it."""
    has_slow_last = len(timed) > 1 and timed[-1].seconds >= _SLOW_LAST_S
    return has_slow_last or sum(one.seconds for one in timed) >= _SLOW_IN_ALL_S


def _log_bytes(ranges: BatchRanges, bytes_per_offset: float) -> float:
    return sum(len(one) for one, _ in ranges) * bytes_per_offset


def _logs(
    source: RecordSource, sizes: Mapping[TopicPartition, int]
) -> dict[TopicPartition, OffsetRange]:
    """The logs that hold offsets and can be read."""
    places = sorted(sizes)
    starts = source.look_up_offsets(places, LogPosition.START).offsets
    ends = source.look_up_offsets(places, LogPosition.STABLE_END).offsets
    return {
        place: OffsetRange(place, starts[place], ends[place])
        for place in places
        if place in starts and ends.get(place, 0) > starts[place]
    }


def cut(logs: Mapping[TopicPartition, OffsetRange], offsets: list[float]) -> Iterator[BatchRanges]:
    """The newest offsets as batches that follow each other, about so many offsets in each.

    A short log gives each batch its share.
    """
    places: dict[TopicPartition, tuple[int, int | None]] = {}
    for partition, log in logs.items():
        wanted = sum(offsets) * len(log) / sum(len(one) for one in logs.values())
        places[partition] = (max(log.start, log.end - int(wanted)), None)
    for number, wanted_in_all in enumerate(offsets):
        left = sum(offsets[number:])
        ranges: BatchRanges = []
        for partition, (start, ledger) in places.items():
            rest = logs[partition].end - start
            length = max(1, int(rest * wanted_in_all / left)) if rest else 0
            if length:
                ranges.append((OffsetRange(partition, start, start + length), ledger))
                places[partition] = (start + length, start + length)
        yield ranges


def carried_in_a_backlog(small: TimedBatch, large: TimedBatch, batch_time_s: float) -> float:
    """Log bytes a second in batches as long as those of a backlog.

    With the cost of a byte and the fixed cost of a batch, where the two batches tell them apart.
    """
    shown = large.log_bytes / max(large.seconds, 1e-3)
    more_bytes, more_s = large.log_bytes - small.log_bytes, large.seconds - small.seconds
    if more_bytes <= 0 or more_s <= 0:
        return shown
    s_per_byte = more_s / more_bytes
    fixed_s = max(0.0, small.seconds - s_per_byte * small.log_bytes)
    length_s = max(batch_time_s, 2 * fixed_s)
    return min(_GAIN_MAX * shown, (length_s - fixed_s) / s_per_byte / length_s)
