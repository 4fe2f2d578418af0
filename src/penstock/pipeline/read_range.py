"""Reads offset ranges with Spark's Kafka connector into one DataFrame of raw records.

Partitions are assigned and every offset is named; only committed records are read, and a missing
record fails the batch. Spark keeps its Kafka consumers from batch to batch by the reader name,
which is made from the topics' ids: records fetched ahead from a topic that has since been made
again are never used. The consumers join no group.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from penstock.kafka_io.client_properties import java_properties
from penstock.pipeline.batch import PlannedRange
from penstock.settings.sections import KafkaSettings
from penstock.spark_worker.work import are_worth_cutting


def read_ranges(
    session: Any, kafka: KafkaSettings, planned: Sequence[PlannedRange], tasks: int
) -> Any:
    """The records of the ranges, with the columns of `record_columns`."""
    reader = session.read.format("kafka")
    for name, value in read_options(kafka, planned, tasks).items():
        reader = reader.option(name, value)
    return reader.load()


def read_options(
    kafka: KafkaSettings, planned: Sequence[PlannedRange], tasks: int
) -> dict[str, str]:
    """The connector's options; they name exactly the assigned partitions."""
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
        "kafka.group.id": f"penstock-reader-{reader_name(planned)}",
        "kafka.isolation.level": "read_committed",
        "assign": json.dumps(assigned),
        "startingOffsets": json.dumps(starts),
        "endingOffsets": json.dumps(ends),
        "includeHeaders": "true",
        "failOnDataLoss": "true",
        # By default Spark waits two minutes for a record that is not there.
        "kafkaConsumer.pollTimeoutMs": str(round(kafka.answer_timeout * 1000)),
    }
    if are_worth_cutting(len(planned), sum(len(one.range) for one in planned), tasks):
        options["minPartitions"] = str(tasks)
    return options


def reader_name(planned: Sequence[PlannedRange]) -> str:
    """Readers fetch ahead, so topics with other ids need another reader."""
    ids = sorted({one.topic_id for one in planned})
    return hashlib.sha256(" ".join(ids).encode()).hexdigest()[:16]
