"""Records that a test gives instead of Kafka, and the real pipeline run on them.

Everything after the reading is production's own: the function is found by its name, rows and dead
letters are written to Delta tables and committed, and a failure stops the partition it is in.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from penstock.errors import PenstockError
from penstock.kafka_io.administration import TopicLookup, TopicView
from penstock.kafka_io.offset_lookup import LogPosition, OffsetLookup
from penstock.model import OffsetRange, TopicPartition
from penstock.pipeline.batch import PlannedRange, Writer
from penstock.pipeline.carry import Pipeline
from penstock.pipeline.diagnosis import as_penstock_error
from penstock.pipeline.far_times import python_rows
from penstock.pipeline.record_source import RecordContent
from penstock.pipeline.storage import TableStorage
from penstock.pipeline.transformation import transform
from penstock.settings import Settings
from penstock.settings.sections import LakeSettings, SparkSettings, TableSettings

# As Spark's Kafka connector has it; a test compares the two.
RAW_SCHEMA = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int, headers array<struct<key: string, value: binary>>"
)
CREATE_TIME = 0  # how Kafka says that the producer set the timestamp
_DEAD_LETTERS = "dead_letters"
# One task: rows stay in the order of their offsets.
_SPARK = SparkSettings(master="local[2]", cores=1)


@dataclass(frozen=True, slots=True)
class GivenRecord:
    """A record as Kafka would have it."""

    partition: TopicPartition
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: datetime
    headers: tuple[tuple[str, bytes | None], ...] | None

    def as_row(self) -> tuple[Any, ...]:
        place = self.partition
        headers = None if self.headers is None else list(self.headers)
        return (
            *(self.key, self.value, place.topic, place.partition, self.offset),
            *(self.timestamp, CREATE_TIME, headers),
        )


class GivenRecords:
    """A `RecordSource` in memory: topics whose logs hold exactly these records."""

    def __init__(self, session: Any, records: Iterable[GivenRecord]) -> None:
        self._session = session
        self._records: dict[TopicPartition, list[GivenRecord]] = {}
        for one in sorted(records, key=lambda one: (one.partition, one.offset)):
            self._records.setdefault(one.partition, []).append(one)

    def look_up_topics(self, names: Iterable[str]) -> TopicLookup:
        known: dict[str, int] = {}
        for place in self._records:
            known[place.topic] = max(known.get(place.topic, 0), place.partition + 1)
        found = {
            name: TopicView(name, topic_id(name), known[name], 1, is_internal=False)
            for name in names
            if name in known
        }
        return TopicLookup(found, {})

    def look_up_offsets(
        self, partitions: Iterable[TopicPartition], position: LogPosition
    ) -> OffsetLookup:
        if position is LogPosition.START:
            return OffsetLookup({place: self._records[place][0].offset for place in partitions})
        return OffsetLookup({place: self._records[place][-1].offset + 1 for place in partitions})

    def read(self, planned: Sequence[PlannedRange], *, in_workers: bool = False) -> Any:
        del in_workers  # there is nothing to fetch
        rows = [
            record.as_row()
            for one in planned
            for record in self._records[one.partition]
            if one.range.start <= record.offset < one.range.end
        ]
        return self._session.createDataFrame(rows, RAW_SCHEMA)

    def content(self, one: OffsetRange) -> RecordContent:
        for record in self._records[one.partition]:
            if one.start <= record.offset < one.end:
                return RecordContent(record.key, record.value, record.timestamp, record.headers)
        return RecordContent()


def topic_id(topic: str) -> str:
    return f"test-{topic}"


class TrialRun:
    """One transformation, a lake of its own below `folder`, and the records of a test."""

    def __init__(
        self,
        session: Any,
        table: TableSettings,
        records: Sequence[GivenRecord],
        folder: Path,
    ) -> None:
        topics = {one.partition.topic for one in records}
        self._lake = LakeSettings(
            root=str(folder), tables=dict.fromkeys(topics, table), dead_letters=_DEAD_LETTERS
        )
        self._table = table
        self._session = session
        source = GivenRecords(session, records)
        settings = Settings(lake=self._lake, spark=_SPARK)
        self._pipeline = Pipeline(settings, session, source=source)
        self._ledger: dict[TopicPartition, int] = {}

    def schema(self) -> dict[str, str]:
        """The columns of the table. Runs the function on no records: what it raises is raised."""
        return type_names(schema_of_rows(self._session, self._table))

    def carry(
        self, ranges: Mapping[TopicPartition, tuple[int, int]]
    ) -> Mapping[TopicPartition, PenstockError]:
        """Carry the offsets (from, up to) of these partitions; the failures, by partition."""
        planned = [
            PlannedRange(
                OffsetRange(place, start, end), topic_id(place.topic), self._ledger.get(place)
            )
            for place, (start, end) in sorted(ranges.items())
        ]
        result = self._pipeline.carry(planned, writer=Writer(1, 1))
        self._ledger.update(result.carried)
        return result.failures

    def rows(self) -> list[dict[str, Any]]:
        return stored_rows(self._lake, self._table.table)

    def dead_letters(self) -> list[dict[str, Any]]:
        return stored_rows(self._lake, _DEAD_LETTERS)


def schema_of_rows(session: Any, table: TableSettings) -> Any:
    """Spark's schema of the table's rows. Runs the function on no records, and raises its errors.

    What fails here is no record's fault.
    """
    nothing = session.createDataFrame([], RAW_SCHEMA)
    try:
        # A Connect server looks at the columns only when it is asked for them.
        return transform(nothing, table).rows.schema
    except Exception as error:
        raise as_penstock_error(error, table.table) from error


def type_names(schema: Any) -> dict[str, str]:
    """Each column's type in Spark's words."""
    return {one.name: one.dataType.simpleString() for one in schema.fields}


def stored_rows(lake: LakeSettings, table: str) -> list[dict[str, Any]]:
    """The table's rows as its readers get them, by offset; none if there is no table."""
    storage = TableStorage(lake, table)
    try:
        opened = DeltaTable(storage.uri, storage_options=storage.options or None)
    except TableNotFoundError:
        return []
    found = python_rows(opened.to_pyarrow_table())
    place = ("topic", "partition", "offset")
    if found and all(name in found[0] for name in place):
        found.sort(key=lambda row: tuple(row[name] for name in place))
    return found
