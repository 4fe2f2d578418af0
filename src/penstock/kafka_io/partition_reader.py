"""Reads chosen partitions from chosen offsets: no consumer group, committed records only.

The one reader under the mailbox, the followed topics, the measurements and the checks. Nothing is
committed to Kafka and no group is joined, so any number of readers may read one partition.

A failure of one partition is returned beside the records, as an outcome of that partition: the
others go on. Only what concerns the whole client, such as a refused password, is raised.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from operator import methodcaller
from typing import Any, TypeAlias

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from penstock.errors import PenstockError
from penstock.kafka_io.client_properties import librdkafka_properties
from penstock.kafka_io.failures import LEADER_MOVES, MISSING, as_penstock_error, kafka_failures
from penstock.kafka_io.told_errors import ToldErrors
from penstock.model import OffsetRange, TopicPartition
from penstock.settings.sections import KafkaSettings

# How often a partition that was only just made is asked for again.
_ASK_AGAIN_S = 0.1
# The client reconnects and asks again by itself.
_PASSING = LEADER_MOVES | {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._RESOLVE,
}
_OFFSET_GONE = {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}

# Called through C: Python's own quick call of a method does not notice that the library returns a
# broken list beside the error it sets.
_HEADERS = methodcaller("headers")
Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class KafkaRecord:
    """One committed record as it was written; `timestamp_ms` is the broker's or the writer's."""

    partition: TopicPartition
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers

    @property
    def topic(self) -> str:
        return self.partition.topic


@dataclass(frozen=True, slots=True)
class EndReached:
    """All that is committed below `offset` has been read, markers of transactions included."""

    partition: TopicPartition
    offset: int


class FailureKind(StrEnum):
    PASSING = "passing"  # the client tries again by itself
    OFFSET_GONE = "offset_gone"  # retention removed it, or the topic was made again
    LASTING = "lasting"  # somebody has to do something


@dataclass(frozen=True, slots=True)
class ReadFailure:
    """Why a partition gives nothing now; without a partition it concerns all of them."""

    partition: TopicPartition | None
    kind: FailureKind
    error: PenstockError


Outcome: TypeAlias = KafkaRecord | EndReached | ReadFailure


class PartitionReader:
    """Used by one thread. `positions` may be read by others: the next offset of each partition."""

    def __init__(
        self,
        kafka: KafkaSettings,
        properties: Mapping[str, Any] | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`properties` are of the client, for what one use needs differently."""
        self._kafka = kafka
        self._told = ToldErrors(kafka)
        self._monotonic = monotonic
        self._partitions: dict[tuple[str, int], TopicPartition] = {}
        self.positions: dict[TopicPartition, int] = {}
        with kafka_failures(kafka, "connecting"):
            self._consumer = Consumer(
                {
                    **librdkafka_properties(kafka),
                    **self._told.properties,
                    # The library demands a group; none is joined.
                    "group.id": "penstock-reader",
                    "enable.auto.commit": False,
                    "enable.auto.offset.store": False,
                    "enable.partition.eof": True,
                    "auto.offset.reset": "error",
                    "isolation.level": "read_committed",
                    **(properties or {}),
                }
            )

    def close(self) -> None:
        self._consumer.close()

    def log_range(self, partition: TopicPartition, *, wait_s: float = 0.0) -> OffsetRange:
        """The offsets there are now. A partition just made is waited for, up to `wait_s`."""
        client = ClientPartition(partition.topic, partition.partition)
        deadline_s = self._monotonic() + wait_s
        doing = f"looking up the offsets of {partition}"

        def ask(timeout_s: float) -> tuple[int, int]:
            start, end = self._consumer.get_watermark_offsets(client, timeout=timeout_s)
            return int(start), int(end)

        with kafka_failures(self._kafka, doing):
            while True:
                try:
                    start, end = self._told.first_answer(ask, self._serve_callbacks, doing)
                except KafkaException as raised:
                    may_come = raised.args[0].code() in MISSING | LEADER_MOVES
                    if not may_come or self._monotonic() >= deadline_s:
                        raise
                    time.sleep(_ASK_AGAIN_S)  # brokers do not announce a new topic
                    # The client remembers that it did not know a topic, until it asks for metadata.
                    self._consumer.list_topics(timeout=self._kafka.answer_timeout)
                else:
                    return OffsetRange(partition, start, end)

    def partitions_of(self, topic: str) -> int:
        """How many partitions the topic has now."""
        doing = f"counting the partitions of {topic}"
        with kafka_failures(self._kafka, doing):
            listed = self._consumer.list_topics(topic, timeout=self._kafka.answer_timeout)
        found = listed.topics[topic]
        if found.error is not None:
            raise as_penstock_error(found.error, self._kafka, doing)
        return len(found.partitions)

    def _serve_callbacks(self) -> None:
        """Not while partitions are assigned: this would take a record."""
        if not self.positions:
            self._consumer.poll(0)

    def assign(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from these offsets on, and no others."""
        self._partitions = {(one.topic, one.partition): one for one in offsets}
        self.positions = dict(offsets)
        self._assign()

    def restart(self, partition: TopicPartition) -> None:
        """Read one partition again from the first record there is; the others go on."""
        self.positions[partition] = OFFSET_BEGINNING
        self._assign()  # a partition in error takes no seek

    def _assign(self) -> None:
        self._consumer.assign(
            [
                ClientPartition(one.topic, one.partition, position)
                for one, position in sorted(self.positions.items())
            ]
        )

    def read(self, timeout_s: float, *, count: int = 1) -> list[Outcome]:
        """Up to `count` outcomes, in order within a partition; fewer when the time has passed."""
        with kafka_failures(self._kafka, "reading"):
            messages = self._consumer.consume(count, timeout=timeout_s)
        return [self._outcome(message) for message in messages]

    def _outcome(self, message: Any) -> Outcome:
        partition = self._partitions.get((message.topic(), message.partition()))
        error = message.error()
        if error is not None:
            return self._without_record(partition, error, message.offset())
        if partition is None:
            raise PenstockError(f"Kafka sent a record of {message.topic()}, which is not assigned.")
        self.positions[partition] = message.offset() + 1
        return KafkaRecord(
            partition,
            message.offset(),
            message.timestamp()[1],
            message.key(),
            message.value(),
            _headers_of(message),
        )

    def _without_record(
        self, partition: TopicPartition | None, error: KafkaError, offset: int
    ) -> Outcome:
        code = error.code()
        if partition is not None and code == KafkaError._PARTITION_EOF:
            # Markers of transactions take offsets but are no records: only this passes them.
            self.positions[partition] = offset
            return EndReached(partition, offset)
        doing = "reading" if partition is None else f"reading {partition}"
        found = as_penstock_error(error, self._kafka, doing)
        if code in _PASSING or (error.retriable() and not error.fatal()):
            return ReadFailure(partition, FailureKind.PASSING, found)
        if partition is None:
            raise found
        kind = FailureKind.OFFSET_GONE if code in _OFFSET_GONE else FailureKind.LASTING
        return ReadFailure(partition, kind, found)


def _headers_of(message: Any) -> Headers:
    """The record's headers; none if a name is not UTF-8.

    In Kafka names are bytes. The library raises for such a name and gives none of the headers. No
    header that Penstock reads has one, and a record with one must not end its reader.
    """
    try:
        return tuple(_HEADERS(message) or ())
    except (SystemError, UnicodeDecodeError):
        return ()
