"""Follows a few partitions from given offsets, by plain assignment: no group, nothing committed.

Used by the controller for its mailbox and for the service topic, and by whoever waits for an answer
on the service topic. A partition whose offset is gone is followed from what is still there.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError
from confluent_kafka import TopicPartition as ClientPartition

from penstock.kafka_io.client_properties import librdkafka_properties
from penstock.kafka_io.failures import as_penstock_error, kafka_failures
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings

AT_THE_END = -1
_PASSING = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._RESOLVE,
    KafkaError._PARTITION_EOF,
}


@dataclass(frozen=True, slots=True)
class Followed:
    partition: TopicPartition
    offset: int
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class FollowedTopics:
    def __init__(self, kafka: KafkaSettings, since: Mapping[TopicPartition, int]) -> None:
        """`since` gives the first offset to read; AT_THE_END reads only what comes from now on."""
        self._kafka = kafka
        with kafka_failures(kafka, "connecting"):
            self._consumer = Consumer(
                {
                    **librdkafka_properties(kafka),
                    "group.id": "penstock-follower",  # joined by nobody
                    "enable.auto.commit": False,
                    "enable.auto.offset.store": False,
                    "auto.offset.reset": "error",
                    "isolation.level": "read_committed",
                    "fetch.wait.max.ms": 500,
                }
            )
        # Where each is followed from, also for whoever said "from the end": a place to return to.
        self.starts: dict[TopicPartition, int] = {}
        for partition, offset in sorted(since.items()):
            client = ClientPartition(partition.topic, partition.partition)
            with kafka_failures(kafka, f"opening {partition}"):
                low, high = self._consumer.get_watermark_offsets(
                    client, timeout=kafka.answer_timeout
                )
            begin = high if offset == AT_THE_END else min(max(offset, low), high)
            self.starts[partition] = begin
        self._consumer.assign(
            [ClientPartition(one.topic, one.partition, at) for one, at in self.starts.items()]
        )

    def read(self, timeout_s: float) -> Followed | None:
        """The next message; None when the time has passed or the broker is away."""
        message = self._consumer.poll(timeout_s)
        if message is None:
            return None
        error = message.error()
        if error is None:
            return Followed(
                TopicPartition(message.topic(), message.partition()),
                message.offset(),
                message.value(),
                tuple(message.headers() or ()),
            )
        if error.code() in {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}:
            where = ClientPartition(message.topic(), message.partition(), OFFSET_BEGINNING)
            self._consumer.seek(where)
            return None
        if error.code() in _PASSING or error.retriable():
            return None
        raise as_penstock_error(error, self._kafka, f"reading {message.topic()}")

    def close(self) -> None:
        self._consumer.close()
