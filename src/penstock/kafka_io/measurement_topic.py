"""Writes measurements to the monitor topic, and reads the newest complete one from it.

The controller and `penstock speeds` use the reader. It goes back from the end of the topic only as
far as one complete measurement needs, then follows. Messages that are no measurement are reported
to `on_refusal` and skipped.
"""

import time
from collections.abc import Callable, Iterable

from penstock.kafka_io.failures import TopicMissingError
from penstock.kafka_io.partition_reader import (
    EndReached,
    FailureKind,
    KafkaRecord,
    PartitionReader,
    ReadFailure,
)
from penstock.kafka_io.producer import RecordProducer
from penstock.messages import (
    PartAssembler,
    Refusal,
    WholeMeasurement,
    WriteSpeedMeasurement,
    decode,
    encode,
)
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings, TopicsSettings

_MESSAGE_BYTES_MAX = 1_048_588  # Kafka's default; the codec stays below it
# A measurement that could not be written by then is dropped: newer ones have followed.
_DELIVERY_TIMEOUT_S = 5.0
# How many messages before the end the search for a complete measurement begins, and how many
# times further back it goes each time none is found.
_MESSAGES_BACK_FIRST, _MESSAGES_BACK_FACTOR = 16, 8
_WAIT_S = 0.5
_MESSAGES_AT_ONCE = 100


def monitor_topic_missing(topic: str) -> TopicMissingError:
    return TopicMissingError(
        f"The control topic {topic} does not exist.", remedy="Run `penstock topics create`."
    )


class MeasurementPublisher:
    def __init__(
        self,
        kafka: KafkaSettings,
        topics: TopicsSettings,
        *,
        group: str = "",
        on_change: Callable[[Exception | None], None] = lambda _: None,
    ) -> None:
        """`on_change` gets an error when writing begins to fail, and None when it works again."""
        self._topic = topics.names.monitor
        self._group = group
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
            encoded = encode(part, group=self._group)
            self._producer.send(
                self._topic, 0, encoded.value, headers=encoded.headers, on_delivery=self._delivered
            )
        self._producer.poll()

    def _delivered(self, error: Exception | None, _: int) -> None:
        if (error is not None) != self._is_failing:
            self._is_failing = error is not None
            self._on_change(error)

    def close(self, timeout_s: float) -> int:
        """Wait for what is under way; returns how many messages were not delivered."""
        return self._producer.flush(timeout_s)


class MeasurementReader:
    def __init__(
        self,
        kafka: KafkaSettings,
        topics: TopicsSettings,
        *,
        group: str = "",
        on_refusal: Callable[[Refusal], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._kafka = kafka
        self._partition = TopicPartition(topics.names.monitor, 0)
        self._group = group
        self._on_refusal = on_refusal
        self._clock = clock
        self._wall_clock = wall_clock
        self._newest: WholeMeasurement | None = None
        self._assembler: PartAssembler[WriteSpeedMeasurement] = PartAssembler()
        self._is_following = False
        self._at_end = False
        self._reader = PartitionReader(kafka)

    def close(self) -> None:
        self._reader.close()

    def newest(self, *, wait_s: float = 0.0) -> WholeMeasurement | None:
        """The newest complete measurement; waits up to `wait_s` for one newer than the last given.

        The first call returns at once if the topic already holds one.
        """
        deadline_s = self._clock() + wait_s
        if not self._is_following:
            self._begin()
            if self._newest is not None:
                return self._newest
        before = self._newest
        while True:
            # The client reports the end up to 0.5 s after the last record. Asking for it again and
            # again without waiting would take a core until then.
            left_s = max(0.0, deadline_s - self._clock())
            self._read_on(min(_WAIT_S, left_s) if self._at_end else _WAIT_S)
            left_s = deadline_s - self._clock()
            if self._at_end and (self._newest is not before or left_s <= 0):
                return self._newest
            if left_s <= -self._kafka.answer_timeout:
                return self._newest  # a reader that cannot catch up still has an answer

    def _begin(self) -> None:
        """Find the newest complete measurement that the topic already holds."""
        try:
            log = self._reader.log_range(self._partition)
        except TopicMissingError as error:
            raise monitor_topic_missing(self._partition.topic) from error
        back = _MESSAGES_BACK_FIRST
        while True:
            start = max(log.start, log.end - back)
            self._assembler = PartAssembler()
            self._reader.assign({self._partition: start})
            self._at_end = False
            deadline_s = self._clock() + self._kafka.answer_timeout
            while not self._at_end and self._clock() < deadline_s:
                self._read_on(_WAIT_S)
            if self._newest is not None or start == log.start:
                break
            back *= _MESSAGES_BACK_FACTOR
        self._is_following = True

    def _read_on(self, timeout_s: float) -> None:
        """Wait for the next outcome and take in what is there; note whether the end is reached."""
        outcomes = self._reader.read(timeout_s)
        if outcomes:  # a read of many would wait for all of them
            outcomes += self._reader.read(0.0, count=_MESSAGES_AT_ONCE)
        for outcome in outcomes:
            self._at_end = isinstance(outcome, EndReached)
            if isinstance(outcome, KafkaRecord):
                self._take(outcome)
            elif isinstance(outcome, ReadFailure):
                self._failed(outcome)

    def _failed(self, failure: ReadFailure) -> None:
        """Raise what the caller should know: also that the brokers are away."""
        if failure.kind is FailureKind.OFFSET_GONE:
            self._reader.restart(self._partition)
        elif isinstance(failure.error, TopicMissingError):
            raise monitor_topic_missing(self._partition.topic) from failure.error
        else:
            raise failure.error

    def _take(self, record: KafkaRecord) -> None:
        found = decode(
            record.value, record.headers, group=self._group, topic_role="monitor", mailbox=0
        )
        if isinstance(found, Refusal):
            self._on_refusal(found)
            return
        if not isinstance(found, WriteSpeedMeasurement):
            return
        parts = self._assembler.add(found)
        if parts is None:
            return
        unread_s = 0.0
        if not self._is_following:
            # It was published before this reader began: only the wall clocks can say how long ago.
            unread_s = max(0.0, self._wall_clock() - parts[0].published_at_unix_ms / 1000)
        self._newest = WholeMeasurement.from_parts(
            parts, read_at_s=self._clock(), unread_s=unread_s
        )
