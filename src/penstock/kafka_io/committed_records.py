"""Reads one partition from one offset to another with a plain client: committed records only.

For checks and comparisons, not for carrying: it joins no group and commits nothing.
"""

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as ClientPartition

from penstock.errors import UnreachableError
from penstock.kafka_io.client_properties import librdkafka_properties
from penstock.kafka_io.failures import as_penstock_error, kafka_failures
from penstock.model import OffsetRange
from penstock.settings.sections import KafkaSettings

_AT_ONCE = 10_000
# `consume` waits for all it was asked for: where offsets are missing, that is for ever.
_WAIT_S = 0.1


@dataclass(frozen=True, slots=True)
class CommittedRecord:
    offset: int
    key: bytes | None
    value: bytes | None


def committed_records(kafka: KafkaSettings, wanted: OffsetRange) -> Iterator[list[CommittedRecord]]:
    """Runs of records in order of their offsets; the last one ends below `wanted.end`."""
    if not len(wanted):
        return
    place = wanted.partition
    properties = librdkafka_properties(kafka) | {
        "group.id": "penstock-reader",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",
        "queued.max.messages.kbytes": 65_536,
        # The end of a partition is told by an empty fetch, for which nobody should wait long.
        "fetch.wait.max.ms": 50,
    }
    with kafka_failures(kafka, f"reading {wanted}"), closing(Consumer(properties)) as consumer:
        consumer.assign([ClientPartition(place.topic, place.partition, wanted.start)])
        heard = time.monotonic()
        left = len(wanted)
        while True:
            messages = consumer.consume(min(_AT_ONCE, left), timeout=_WAIT_S)
            if messages:
                heard = time.monotonic()
            elif time.monotonic() - heard > kafka.answer_timeout:
                raise UnreachableError(f"Kafka sent nothing more while reading {wanted}.")
            records, is_done = [], False
            for message in messages:
                error = message.error()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise as_penstock_error(error, kafka, f"reading {wanted}")
                if message.offset() >= wanted.end or error is not None:
                    is_done = is_done or message.offset() >= wanted.end
                    continue
                records.append(CommittedRecord(message.offset(), message.key(), message.value()))
            if records:
                left = max(1, wanted.end - 1 - records[-1].offset)
                yield records
            if is_done or (records and records[-1].offset == wanted.end - 1):
                return
