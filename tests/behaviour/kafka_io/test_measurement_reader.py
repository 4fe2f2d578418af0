"""How the reader of measurements waits; what it reads is tested on a real broker."""

from collections.abc import Sequence
from typing import Any

import pytest

from penstock.kafka_io import measurement_topic
from penstock.kafka_io.measurement_topic import MeasurementReader
from penstock.kafka_io.partition_reader import EndReached, KafkaRecord, Outcome
from penstock.messages import Refusal, RefusalCode, WriteSpeedMeasurement, encode
from penstock.model import OffsetRange, TopicPartition
from penstock.settings.sections import KafkaSettings, TopicsSettings

TOPIC = TopicPartition("data-engineering-monitor", 0)


def measurement(offset: int, group: str = "") -> KafkaRecord:
    message = WriteSpeedMeasurement(
        monitor_incarnation=1, sequence=offset + 1, published_at_unix_ms=0, age_ms=0, window_ms=1
    )
    encoded = encode(message, group=group)
    return KafkaRecord(TOPIC, offset, 0, None, encoded.value, encoded.headers)


class PlayedReader:
    """Gives outcomes at their times, on a clock that only its own waits move."""

    def __init__(self, *_: Any) -> None:
        self.now_s = 0.0
        self.reads = 0
        self.coming: list[tuple[float, Outcome]] = []

    def log_range(self, partition: TopicPartition) -> OffsetRange:
        return OffsetRange(partition, 0, 0)

    def assign(self, _: object) -> None:
        self.coming.append((0.0, EndReached(TOPIC, 0)))

    def read(self, timeout_s: float, *, count: int = 1) -> Sequence[Outcome]:
        self.reads += 1
        assert self.reads < 100, "it asks without waiting"
        until_s = self.now_s + timeout_s
        given = [one for at_s, one in self.coming if at_s <= until_s][:count]
        self.coming = self.coming[len(given) :]
        if len(given) < count:
            self.now_s = until_s
        return given


def test_the_reader_waits_for_the_end_instead_of_asking_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The end is told half a second after the record: the reader asks a few times, not all along.

    A wait of nothing does not move the clock, so a reader that does not wait asks for ever.
    """
    played = PlayedReader()
    monkeypatch.setattr(measurement_topic, "PartitionReader", lambda _: played)
    reader = MeasurementReader(KafkaSettings(), TopicsSettings(), clock=lambda: played.now_s)
    assert reader.newest(wait_s=0.5) is None
    played.reads = 0
    played.coming = [(0.9, measurement(0)), (1.3, EndReached(TOPIC, 1))]
    found = reader.newest(wait_s=0.5)
    assert found is not None
    assert found.sequence == 1
    assert played.reads <= 6


def test_a_measurement_of_another_group_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its monitor may measure other topics: the group would be made for their load."""
    played, refused = PlayedReader(), list[Refusal]()
    monkeypatch.setattr(measurement_topic, "PartitionReader", lambda _: played)
    reader = MeasurementReader(
        KafkaSettings(),
        TopicsSettings(),
        group="penstock",
        on_refusal=refused.append,
        clock=lambda: played.now_s,
    )
    played.coming = [
        (0.0, measurement(0, "penstock")),
        (0.0, measurement(1, "other")),
        (0.0, EndReached(TOPIC, 2)),
    ]
    found = reader.newest(wait_s=0.5)
    assert found is not None
    assert found.sequence == 1
    assert [one.code for one in refused] == [RefusalCode.OTHER_GROUP]
