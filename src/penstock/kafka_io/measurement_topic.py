"""Writes measurements to `<prefix>-monitor`, and reads the newest whole one from it.

The reader is what the controller and `penstock speeds` use. It goes back from the end of the topic
only as far as one whole measurement needs, then follows. What is not a measurement is counted and
passed over.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from typing import Any, NoReturn

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from penstock.errors import PenstockError
from penstock.kafka_io.client_properties import librdkafka_properties
from penstock.kafka_io.failures import as_penstock_error, kafka_failures
from penstock.kafka_io.producer import RecordProducer
from penstock.messages import (
    NewestMeasurement,
    PartAssembler,
    Refusal,
    WholeMeasurement,
    WriteSpeedMeasurement,
    decode,
    encode,
)
from penstock.settings.sections import KafkaSettings, TopicsSettings

_MESSAGE_BYTES_MAX = 1_048_588  # Kafka's own default; the codec stays below it
_DELIVERY_TIMEOUT_S = 5.0
_BACK_FIRST, _BACK_FACTOR = 16, 8
_POLL_S = 0.5
_BATCH = 100


def missing_topic_error(topic: str) -> PenstockError:
    return PenstockError(
        f"The control topic {topic} does not exist.", remedy="Run `penstock topics create`."
    )


class MeasurementPublisher:
    """A measurement that could not be written within seconds is dropped: a newer one follows."""

    def __init__(
        self,
        kafka: KafkaSettings,
        topics: TopicsSettings,
        *,
        on_change: Callable[[Exception | None], None] = lambda _: None,
    ) -> None:
        """`on_change` hears an error when writing begins to fail, and None when it works again."""
        self._topic = topics.names.monitor
        self._on_change = on_change
        self._is_failing = False
        self._producer = RecordProducer(
            kafka,
            **{
                "compression.type": "lz4",
                "message.max.bytes": _MESSAGE_BYTES_MAX,
                "delivery.timeout.ms": int(_DELIVERY_TIMEOUT_S * 1000),
            },
        )

    def publish(self, parts: Iterable[WriteSpeedMeasurement]) -> None:
        for part in parts:
            encoded = encode(part)
            self._producer.send(
                self._topic, 0, encoded.value, headers=encoded.headers, on_delivery=self._delivered
            )
        self._producer.poll()

    def _delivered(self, error: Exception | None, _: int) -> None:
        if (error is not None) != self._is_failing:
            self._is_failing = error is not None
            self._on_change(error)

    def close(self, timeout_s: float) -> int:
        """Wait for what is on its way; how many messages did not make it."""
        return self._producer.flush(timeout_s)


class MeasurementReader:
    def __init__(
        self,
        kafka: KafkaSettings,
        topics: TopicsSettings,
        *,
        on_refusal: Callable[[Refusal], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._kafka = kafka
        self._topic = topics.names.monitor
        self._on_refusal = on_refusal
        self._clock = clock
        self._wall_clock = wall_clock
        self._newest: NewestMeasurement | None = None
        self._assembler: PartAssembler[WriteSpeedMeasurement] = PartAssembler()
        self._is_following = False
        self._at_end = False
        with kafka_failures(kafka, "connecting"):
            self._consumer = Consumer(
                {
                    **librdkafka_properties(kafka),
                    # The library asks for a name; there is no group, nothing is committed.
                    "group.id": "penstock-measurement-reader",
                    "enable.auto.commit": False,
                    "enable.auto.offset.store": False,
                    "enable.partition.eof": True,
                    "auto.offset.reset": "earliest",
                    "isolation.level": "read_committed",
                }
            )

    def close(self) -> None:
        self._consumer.close()

    def newest(self, *, wait_s: float = 0.0) -> NewestMeasurement | None:
        """The newest whole measurement; waits up to `wait_s` for one newer than the last given.

        What was there before the first call is given without waiting.
        """
        deadline_s = self._clock() + wait_s
        if not self._is_following:
            self._begin()
            if self._newest is not None:
                return self._newest
        before = self._newest
        while True:
            self._read_on(max(0.0, min(_POLL_S, deadline_s - self._clock())))
            left_s = deadline_s - self._clock()
            if self._at_end and (self._newest is not before or left_s <= 0):
                return self._newest
            if left_s <= -self._kafka.answer_timeout:
                return self._newest  # a reader that cannot catch up still has an answer

    def _begin(self) -> None:
        """Find the newest whole measurement that is there already."""
        try:
            low, high = self._consumer.get_watermark_offsets(
                TopicPartition(self._topic, 0), timeout=self._kafka.answer_timeout
            )
        except KafkaException as raised:
            self._raise(raised.args[0])
        back = _BACK_FIRST
        while True:
            start = max(low, high - back)
            self._assembler = PartAssembler()
            self._consumer.assign([TopicPartition(self._topic, 0, start)])
            self._at_end = False
            deadline_s = self._clock() + self._kafka.answer_timeout
            while not self._at_end and self._clock() < deadline_s:
                self._read_on(_POLL_S)
            if self._newest is not None or start == low:
                break
            back *= _BACK_FACTOR
        self._is_following = True

    def _read_on(self, timeout_s: float) -> None:
        """Take in what is there, and note whether the end of the topic was reached."""
        with self._failures():
            messages = self._consumer.consume(_BATCH, timeout=timeout_s)
        for message in messages:
            error = message.error()
            if error is None:
                self._at_end = False
                self._take(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._at_end = True
            elif error.fatal() or not error.retriable():
                self._raise(error)

    def _take(self, message: Any) -> None:
        found = decode(message.value(), message.headers(), topic_role="monitor", mailbox=0)
        if isinstance(found, Refusal):
            self._on_refusal(found)
            return
        if not isinstance(found, WriteSpeedMeasurement):
            return
        parts = self._assembler.add(found)
        if parts is None:
            return
        whole = WholeMeasurement.from_parts(parts)
        age_s = whole.age_ms / 1000
        if not self._is_following:  # it was there before us: only wall clocks can tell since when
            age_s += max(0.0, self._wall_clock() - whole.published_at_unix_ms / 1000)
        self._newest = NewestMeasurement(whole, self._clock(), age_s)

    @contextmanager
    def _failures(self) -> Any:
        with kafka_failures(self._kafka, f"reading {self._topic}"):
            yield

    def _raise(self, error: KafkaError) -> NoReturn:
        if error.code() in {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION}:
            raise missing_topic_error(self._topic)
        raise as_penstock_error(error, self._kafka, f"reading {self._topic}")
