"""On a real broker that cleans up twice a second: retention and compaction take bytes away."""

import math
import statistics
from collections.abc import Iterator
from itertools import pairwise

import pytest

from kit.kafka.measuring import Writer, fits, seen_in, watching, writing
from penstock.kafka_io.administration import Administration
from penstock.laboratory.broker import EmbeddedKafka
from penstock.laboratory.broker.properties import BrokerPlan
from penstock.model import TopicPartition
from penstock.model.broker_logs import LogName
from penstock.monitor.core.meter import MeasuredSpeeds

pytestmark = pytest.mark.broker
SEGMENT = str(2**20)


@pytest.fixture(scope="module")
def tidy_kafka(broker_jars: None) -> Iterator[EmbeddedKafka]:
    properties = {
        "log.retention.check.interval.ms": "400",
        "log.cleaner.backoff.ms": "300",
        "log.initial.task.delay.ms": "500",
    }
    with EmbeddedKafka(BrokerPlan(properties=properties)) as running:
        yield running


def test_retention_is_no_slow_down(tidy_kafka: EmbeddedKafka) -> None:
    """While segments are deleted the speed stays what is written."""
    administration = Administration(tidy_kafka.settings)
    settings = {"retention.bytes": SEGMENT, "segment.bytes": SEGMENT}
    administration.create_topic("short", partitions=1, settings=settings)
    name = ("short", 0)
    with (
        writing(tidy_kafka, name, bytes_per_s=1_000_000) as writer,
        watching(tidy_kafka, "short") as watcher,
    ):
        watcher.until(name)
        watcher.watch(3.0)
        watcher.until_right(writer, 6.0, lambda window: _wrong(writer, name, window))
    starts = administration.start_offsets([TopicPartition("short", 0)])
    assert starts[TopicPartition("short", 0)] > 0, "nothing was deleted: the test is void"


def test_compaction_is_no_slow_down(tidy_kafka: EmbeddedKafka) -> None:
    """While old values of the same keys are cleaned away the speed stays what is written."""
    administration = Administration(tidy_kafka.settings)
    settings = {
        "cleanup.policy": "compact",
        "segment.bytes": SEGMENT,
        "min.cleanable.dirty.ratio": "0.01",
    }
    administration.create_topic("compact", partitions=1, settings=settings)
    name = ("compact", 0)
    with (
        writing(tidy_kafka, name, bytes_per_s=1_000_000, keys=5) as writer,
        watching(tidy_kafka, "compact") as watcher,
    ):
        watcher.until(name)
        watcher.watch(3.0)
        sizes = []

        def wrong(window: list[MeasuredSpeeds]) -> object:
            sizes.append(_size(tidy_kafka, "compact"))
            return _wrong(writer, name, window)

        for _ in range(8):
            watcher.watch(1.0)
            sizes.append(_size(tidy_kafka, "compact"))
        watcher.until_right(writer, 6.0, wrong)
    fell = sum(after < before for before, after in pairwise(sizes))
    assert fell, "nothing was cleaned: the test is void"


def _wrong(writer: Writer, name: LogName, window: list[MeasuredSpeeds]) -> object:
    """The producer of a busy machine comes in bursts; the records it wrote are counted anyway.

    Sizes and offsets are read at two moments, so that a burst between them puts one round off.
    """
    produced = writer.payload_bytes_per_s(name)
    speeds = [one for speeds in window if (one := seen_in(speeds, name)) is not None]
    for one in speeds:
        assert one.records_per_s is not None
        if not fits(one.bytes_per_s, 1000 * one.records_per_s, within=0.5):
            return one
    middle = statistics.median(
        (one.bytes_per_s or 0.0) / (one.records_per_s or math.nan) for one in speeds
    )
    if not fits(middle, 1000, within=0.1):
        return speeds
    is_right = fits(speeds[-1].bytes_per_s, produced, within=0.2)
    return None if is_right else (speeds[-1], produced)


def _size(kafka: EmbeddedKafka, topic: str) -> int:
    directory = kafka.directory / "node-1" / "log" / f"{topic}-0"
    return sum(file.stat().st_size for file in directory.glob("*.log"))
