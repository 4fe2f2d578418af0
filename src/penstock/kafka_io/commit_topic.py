"""Writes to `<prefix>-commit` and reads what is new in some of its partitions.

What was said before a reader began to follow a partition is of no use, so it begins at the end.
Messages that cannot be delivered soon are dropped: who waits for them does something else by then.
"""

from collections.abc import Callable

from penstock.kafka_io.partition_reader import (
    FailureKind,
    KafkaRecord,
    PartitionReader,
    ReadFailure,
)
from penstock.kafka_io.producer import RecordProducer
from penstock.messages import Message, Refusal, decode, encode, group_named
from penstock.messages.commits import BetweenConsumers
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings, TopicsSettings

_DELIVERY_TIMEOUT_S = 5.0
_MESSAGE_BYTES_MAX = 1_048_588  # Kafka's default; the codec stays below it
_MESSAGES_AT_ONCE = 500
# Not every broker knows of a topic that was only just made.
_NEW_TOPIC_S = 2.0


class CommitTopicWriter:
    """Any thread may send."""

    def __init__(
        self,
        kafka: KafkaSettings,
        topics: TopicsSettings,
        group: str,
        on_failure: Callable[[Exception], None],
    ) -> None:
        self._topic = topics.names.commit
        self._group = group
        self._on_failure = on_failure
        self._producer = RecordProducer(
            kafka,
            **{
                "linger.ms": 1,
                "compression.type": "lz4",
                "message.max.bytes": _MESSAGE_BYTES_MAX,
                "delivery.timeout.ms": int(_DELIVERY_TIMEOUT_S * 1000),
            },
        )

    def send(self, message: Message) -> None:
        """Raises ValueError if it is too large."""
        encoded = encode(message, group=self._group)
        self._producer.send(
            self._topic,
            message.mailbox,
            encoded.value,
            headers=encoded.headers,
            on_delivery=self._delivered,
        )
        self._producer.poll()

    def _delivered(self, error: Exception | None, _: int) -> None:
        if error is not None:
            self._on_failure(error)

    def poll(self) -> None:
        """Take what brokers have answered, and call `on_failure` with what was refused."""
        self._producer.poll()

    def flush(self, timeout_s: float) -> None:
        self._producer.flush(timeout_s)


class CommitTopicReader:
    """Used by one thread."""

    def __init__(
        self,
        kafka: KafkaSettings,
        topics: TopicsSettings,
        group: str,
        on_refusal: Callable[[Refusal], None] = lambda _: None,
    ) -> None:
        self._topic = topics.names.commit
        self._group = group
        self._on_refusal = on_refusal
        self._reader = PartitionReader(kafka)

    def close(self) -> None:
        self._reader.close()

    def follow(self, partition: int) -> None:
        """Read what is written to it from now on. Raises what Kafka says against it."""
        place = TopicPartition(self._topic, partition)
        if place not in self._reader.positions:
            end = self._reader.log_range(place, wait_s=_NEW_TOPIC_S).end
            self._reader.assign({**self._reader.positions, place: end})

    def read(self, timeout_s: float) -> list[BetweenConsumers]:
        """Wait for a message, up to `timeout_s`; all that are there."""
        outcomes = self._reader.read(timeout_s)
        if outcomes:  # a read of many would wait for all of them
            outcomes += self._reader.read(0.0, count=_MESSAGES_AT_ONCE)
        found = []
        for outcome in outcomes:
            if isinstance(outcome, KafkaRecord):
                message = self._message(outcome)
                found += [message] if message is not None else []
            elif isinstance(outcome, ReadFailure):
                self._failed(outcome)
        return found

    def _failed(self, failure: ReadFailure) -> None:
        if failure.kind is FailureKind.LASTING:
            raise failure.error
        if failure.kind is FailureKind.OFFSET_GONE and failure.partition is not None:
            self._follow_again(failure.partition)

    def _follow_again(self, place: TopicPartition) -> None:
        """It was made again, or we were away for longer than messages are kept."""
        end = self._reader.log_range(place).end
        self._reader.assign({**self._reader.positions, place: end})

    def _message(self, record: KafkaRecord) -> BetweenConsumers | None:
        # Elsewhere a message without a group is read, of old writers. There are none here.
        if group_named(record.headers) != self._group:
            return None
        found = decode(
            record.value,
            record.headers,
            group=self._group,
            topic_role="commit",
            mailbox=record.partition.partition,
        )
        if isinstance(found, Refusal):
            self._on_refusal(found)
            return None
        return found if isinstance(found, BetweenConsumers) else None
