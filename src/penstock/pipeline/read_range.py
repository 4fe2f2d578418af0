"""Reads offset ranges into one DataFrame of raw records.

Partitions are assigned and every offset is named; only committed records are read, and a missing
record fails the batch. Kafka consumers are kept from batch to batch by the reader name, which is
made from the topics' ids: records fetched ahead from a topic that has since been made again are
never used. The consumers join no group.

Spark's connector reads. Where it cannot (a timestamp that overflows), Spark's Python workers do.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from deltalake import Schema
from pyspark.sql import functions
from pyspark.sql.types import StructType

from penstock.kafka_io.client_properties import java_properties, librdkafka_properties
from penstock.pipeline.batch import PlannedRange
from penstock.settings.sections import KafkaSettings
from penstock.spark_worker.record_columns import (
    RECORD_COLUMNS,
    TIMESTAMP_MS_MAX,
    TIMESTAMP_MS_MIN,
)
from penstock.spark_worker.task import reading_task_of
from penstock.spark_worker.work import RangeToRead, ReadWork, are_worth_cutting, divided


def read_ranges(
    session: Any, kafka: KafkaSettings, planned: Sequence[PlannedRange], tasks: int
) -> Any:
    """The records of the ranges, with the columns of `record_columns`."""
    reader = session.read.format("kafka")
    for name, value in read_options(kafka, planned, tasks).items():
        reader = reader.option(name, value)
    raw = reader.load()
    first, last = (
        functions.timestamp_micros(functions.lit(end_ms * 1000))
        for end_ms in (TIMESTAMP_MS_MIN, TIMESTAMP_MS_MAX)
    )
    time = functions.greatest(first, functions.least(last, functions.col("timestamp")))
    return raw.withColumn("timestamp", time)


def read_ranges_in_workers(
    session: Any, kafka: KafkaSettings, planned: Sequence[PlannedRange], tasks: int
) -> Any:
    """The same, read by Spark's Python workers."""
    shares = shares_of(planned, tasks)
    work = ReadWork(
        kafka=librdkafka_properties(kafka),
        reader_name=reader_name(planned),
        tasks=shares,
        silence_s_max=kafka.answer_timeout,
    )
    columns = Schema.from_arrow(pa.schema(list(RECORD_COLUMNS.items()))).to_json()
    numbers = session.range(0, len(shares), 1, max(1, len(shares)))
    return numbers.mapInArrow(reading_task_of(work), StructType.fromJson(json.loads(columns)))


def shares_of(
    planned: Sequence[PlannedRange], tasks: int, *, keeps_topics_whole: bool = False
) -> list[list[RangeToRead]]:
    """The ranges as each of the workers' tasks reads them."""
    ranges = [
        RangeToRead(one.partition.topic, one.partition.partition, one.range.start, one.range.end)
        for one in planned
        if len(one.range)
    ]
    return divided(ranges, tasks, keeps_topics_whole=keeps_topics_whole)


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
