"""Offset ranges -> one DataFrame: explicit starts and ends, committed records only, headers kept.

Spark gets no say in what is read: partitions are assigned, offsets are named, and a record that
should be there and is not fails the batch. Kafka consumers inside Spark are kept from batch to
batch by a group id of our own, which carries the topics' ids: what was fetched ahead from a topic
that has since been made again is never used. They join no group.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from penstock.kafka_io.client_properties import java_properties
from penstock.pipeline.batch import PlannedRange
from penstock.settings.sections import KafkaSettings

# Below this many offsets, cutting a partition in two costs more than it brings.
_OFFSETS_WORTH_CUTTING = 20_000


def read_options(
    kafka: KafkaSettings, planned: Sequence[PlannedRange], tasks: int
) -> dict[str, str]:
    """The reader's options. A batch read must name exactly the partitions it is assigned."""
    assigned: dict[str, list[int]] = {}
    starts: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    for one in sorted(planned):
        topic, number = one.partition.topic, one.partition.partition
        assigned.setdefault(topic, []).append(number)
        starts.setdefault(topic, {})[str(number)] = one.range.start
        ends.setdefault(topic, {})[str(number)] = one.range.end
    options = {f"kafka.{name}": value for name, value in java_properties(kafka).items()}
    options |= {
        "kafka.group.id": _reader_name(planned),
        "kafka.isolation.level": "read_committed",
        "assign": json.dumps(assigned),
        "startingOffsets": json.dumps(starts),
        "endingOffsets": json.dumps(ends),
        "includeHeaders": "true",
        "failOnDataLoss": "true",
        # By itself Spark would wait two minutes for a record that is not there.
        "kafkaConsumer.pollTimeoutMs": str(round(kafka.answer_timeout * 1000)),
    }
    offsets = sum(len(one.range) for one in planned)
    if len(planned) < tasks and offsets >= _OFFSETS_WORTH_CUTTING:
        options["minPartitions"] = str(tasks)
    return options


def _reader_name(planned: Sequence[PlannedRange]) -> str:
    ids = sorted({one.topic_id for one in planned})
    return "penstock-reader-" + hashlib.sha256(" ".join(ids).encode()).hexdigest()[:16]


def read_ranges(
    session: Any, kafka: KafkaSettings, planned: Sequence[PlannedRange], tasks: int
) -> Any:
    """The records of the ranges as a DataFrame of the raw Kafka columns."""
    reader = session.read.format("kafka")
    for name, value in read_options(kafka, planned, tasks).items():
        reader = reader.option(name, value)
    return reader.load()
