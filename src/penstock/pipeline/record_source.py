"""Where a batch's records come from: Kafka, or the rows that a test gives (given_records.py)."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from penstock.errors import PenstockError
from penstock.kafka_io.administration import Administration, TopicLookup
from penstock.kafka_io.committed_records import committed_records
from penstock.kafka_io.offset_lookup import LogPosition, OffsetLookup
from penstock.model import OffsetRange, TopicPartition
from penstock.pipeline.batch import PlannedRange
from penstock.pipeline.read_range import read_ranges, read_ranges_in_workers
from penstock.settings import Settings
from penstock.spark_worker.record_columns import stored_time_ms


class RecordContent(NamedTuple):
    """What a dead letter keeps of its record."""

    key: bytes | None = None
    value: bytes | None = None
    timestamp: datetime | None = None
    headers: tuple[tuple[str, bytes | None], ...] | None = None


class RecordSource(Protocol):
    """What the pipeline asks about topics, and the records themselves."""

    def look_up_topics(self, names: Iterable[str]) -> TopicLookup: ...

    def look_up_offsets(
        self, partitions: Iterable[TopicPartition], position: LogPosition
    ) -> OffsetLookup: ...

    def read(self, planned: Sequence[PlannedRange], *, in_workers: bool = False) -> Any:
        """The records of the ranges as a DataFrame of the raw Kafka columns.

        `in_workers` reads with librdkafka in Spark's workers instead of Spark's connector.
        """
        ...

    def content(self, one: OffsetRange) -> RecordContent:
        """What the range's first record holds; None where it cannot be read."""
        ...


class KafkaSource(Administration):
    """The brokers answer, and Spark's Kafka connector reads."""

    def __init__(self, settings: Settings, session: Any) -> None:
        super().__init__(settings.kafka)
        self._session = session
        self._settings = settings

    def read(self, planned: Sequence[PlannedRange], *, in_workers: bool = False) -> Any:
        settings = self._settings
        read = read_ranges_in_workers if in_workers else read_ranges
        return read(self._session, settings.kafka, planned, settings.spark.tasks)

    def content(self, one: OffsetRange) -> RecordContent:
        try:
            for records in committed_records(self._settings.kafka, one):
                first = records[0]
                stored_s = stored_time_ms(first.timestamp_ms) / 1000
                timestamp = datetime.fromtimestamp(stored_s, UTC)
                return RecordContent(first.key, first.value, timestamp, first.headers or None)
        except PenstockError:
            pass  # the record is kept without them
        return RecordContent()
