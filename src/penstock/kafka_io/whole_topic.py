"""Reads a topic from its beginning to its present end, once: for reports and checks afterwards."""

from collections.abc import Iterator
from dataclasses import dataclass

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError
from confluent_kafka import TopicPartition as ClientPartition

from penstock.kafka_io.client_properties import librdkafka_properties
from penstock.kafka_io.failures import as_penstock_error, kafka_failures
from penstock.settings.sections import KafkaSettings


@dataclass(frozen=True, slots=True)
class Kept:
    """A message with the broker's time."""

    at_ms: int
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def read_partition(kafka: KafkaSettings, topic: str, partition: int) -> Iterator[Kept]:
    with kafka_failures(kafka, f"reading {topic}"):
        consumer = Consumer(
            {
                **librdkafka_properties(kafka),
                "group.id": "penstock-reader",  # joined by nobody
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
    consumer.assign([ClientPartition(topic, partition, OFFSET_BEGINNING)])
    try:
        while True:
            message = consumer.poll(kafka.answer_timeout)
            if message is None:
                return
            error = message.error()
            if error is None:
                _, at_ms = message.timestamp()
                yield Kept(at_ms, message.value(), tuple(message.headers() or ()))
            elif error.code() == KafkaError._PARTITION_EOF:
                return
            else:
                raise as_penstock_error(error, kafka, f"reading {topic}")
    finally:
        consumer.close()
