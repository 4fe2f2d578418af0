"""What one consumer carries of a topic, tried on real records before a group starts.

The pipeline carries some of the newest records into a corner of the lake that is removed again: a
few to warm up, a small batch, and a larger one. The two sizes tell the fixed cost of a batch from
the cost of each byte, and both together what a consumer carries in the batches of a backlog.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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

# Log bytes of the three batches. The last is large enough to tell the cost of a byte, and carried
# within a few seconds.
BATCHES_BYTES = (200e3, 2e6, 16e6)
# A topic with less than this shows only the fixed cost of a batch.
BYTES_MIN = 1e6
# The largest topics are tried, and none is begun after this time.
TOPICS_MAX = 10
SECONDS_MAX = 20.0
# What two batches tell is not believed beyond so many times what the larger one carried.
_GAIN_MAX = 10.0
_WRITER = Writer(1, 1)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What one consumer carries of a topic; None where it was not found out, with the reason."""

    topic: str
    bytes_per_s: float | None
    explanation: str


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
    began_s = time.monotonic()
    try:
        for topic in chosen:
            if time.monotonic() - began_s > SECONDS_MAX:
                return
            on_progress(f"timing batches of {topic}")
            try:
                yield _calibrate(settings, session, topic, by_topic[topic])
            except PenstockError as error:
                yield Calibration(topic, None, f"{topic} was not timed: {error.message}")
    finally:
        session.stop()


def _calibrate(
    settings: Settings, session: Any, topic: str, sizes: Mapping[TopicPartition, int]
) -> Calibration:
    source = KafkaSource(settings, session)
    found = source.look_up_topics([topic])
    for error in found.failures.values():
        raise error
    logs = _logs(source, sizes)
    per_offset = sum(sizes[p] for p in logs) / max(1, sum(len(log) for log in logs.values()))
    timed = []
    with corner(settings.lake) as lake:
        pipeline = Pipeline(settings.model_copy(update={"lake": lake}), session)
        try:
            for ranges in cut(logs, [size / max(1.0, per_offset) for size in BATCHES_BYTES]):
                began_s = time.monotonic()
                planned = [
                    PlannedRange(one, found.topics[topic].topic_id, ledger)
                    for one, ledger in ranges
                ]
                for failure in pipeline.carry(planned, writer=_WRITER).failures.values():
                    raise failure
                offsets = sum(len(one) for one, _ in ranges)
                if offsets:
                    timed.append(TimedBatch(offsets * per_offset, time.monotonic() - began_s))
        finally:
            pipeline.close()
    if len(timed) < len(BATCHES_BYTES):
        return Calibration(topic, None, f"{topic} was not timed: it has too few records")
    speed = carried_in_a_backlog(timed[-2], timed[-1], settings.consumer.backlog_batch_time)
    return Calibration(
        topic,
        speed,
        f"one consumer carries about {speed_text(speed)} of {topic}: "
        f"{timed[-1].log_bytes / 1e6:.1f} MB of its log took {timed[-1].seconds:.1f} s",
    )


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


def cut(
    logs: Mapping[TopicPartition, OffsetRange], offsets: list[float]
) -> Iterator[list[tuple[OffsetRange, int | None]]]:
    """The newest offsets as batches that follow each other, about so many offsets in each.

    Beside each range is where the ledger is before it. A short log gives each batch its share.
    """
    places: dict[TopicPartition, tuple[int, int | None]] = {}
    for partition, log in logs.items():
        wanted = sum(offsets) * len(log) / sum(len(one) for one in logs.values())
        places[partition] = (max(log.start, log.end - int(wanted)), None)
    for number, wanted_in_all in enumerate(offsets):
        left = sum(offsets[number:])
        ranges: list[tuple[OffsetRange, int | None]] = []
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
