"""A few records as they are in Kafka, for people who look: read without Spark."""

from datetime import UTC, datetime
from typing import Any

from penstock.kafka_io.committed_records import committed_records
from penstock.kafka_io.partition_reader import KafkaRecord
from penstock.pipeline.record_source import KafkaSource
from penstock.pipeline.sample import sample_of
from penstock.pipeline.trial import TopicTrial
from penstock.settings import Settings

_RAW_TYPES = {
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<key:string,value:binary>>",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
}


def raw_records(
    settings: Settings, topic: str, *, count: int, is_oldest: bool = False
) -> TopicTrial:
    """At most `count`, with a column for each part of a record."""
    kafka = settings.kafka
    source = KafkaSource(settings, session=None)
    sample = sample_of(kafka, source, topic, count=count, is_oldest=is_oldest)
    rows = [
        _raw_row(record)
        for planned in sample.planned
        for some in committed_records(kafka, planned.range)
        for record in some
        if record.offset in sample.offsets[planned.partition]
    ]
    return TopicTrial(topic, len(rows), len(sample.planned), _RAW_TYPES, change=None, rows=rows)


def _raw_row(record: KafkaRecord) -> dict[str, Any]:
    return {
        "key": record.key,
        "value": record.value,
        "headers": [{"key": key, "value": value} for key, value in record.headers] or None,
        "topic": record.topic,
        "partition": record.partition.partition,
        "offset": record.offset,
        "timestamp": _time_of(record.timestamp_ms),
    }


def _time_of(time_ms: int) -> datetime | str:
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):  # a producer may set any time
        return f"{time_ms} ms after 1970"
