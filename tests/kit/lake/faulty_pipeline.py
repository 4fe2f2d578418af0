"""A pipeline whose writers fail where a test says so. Real Delta tables, no Spark."""

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from deltalake import DeltaTable, Schema

from penstock.kafka_io.administration import TopicLookup, TopicView
from penstock.kafka_io.offset_lookup import LogPosition, OffsetLookup
from penstock.model import OffsetRange, TopicPartition
from penstock.pipeline import (
    BatchResult,
    Pipeline,
    PlannedRange,
    Writer,
)
from penstock.pipeline.batch import Timings
from penstock.pipeline.record_source import RecordContent
from penstock.pipeline.run_batch import TableBatch, Written
from penstock.pipeline.ways import Way
from penstock.pipeline.written_files import written_files
from penstock.settings import Settings
from penstock.settings.sections import LakeSettings, SparkSettings

COLUMNS = pa.schema([("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())])
RECORDS = 10
WRITTEN_AT = datetime(2026, 11, 17, 1, 2, 3, tzinfo=UTC)
# What goes wrong while a record is made into files; None when nothing does.
Wrong = Callable[[TopicPartition, int, Way], BaseException | None]


class Panic(BaseException):
    """What native code raises when it panics: no Exception."""


class _Source:
    """Every partition has ten records."""

    def look_up_topics(self, names: Iterable[str]) -> TopicLookup:
        return TopicLookup({n: TopicView(n, "id", 3, 1, is_internal=False) for n in names}, {})

    def look_up_offsets(
        self, partitions: Iterable[TopicPartition], position: LogPosition
    ) -> OffsetLookup:
        at = 0 if position is LogPosition.START else RECORDS
        return OffsetLookup(dict.fromkeys(partitions, at))

    def read(self, planned: Sequence[PlannedRange], *, in_workers: bool = False) -> Any:
        raise NotImplementedError

    def content(self, one: OffsetRange) -> RecordContent:
        return RecordContent(b"k", b"%d" % one.start, WRITTEN_AT, (("trace", b"7"),))


class _Files:
    """Writes the offsets of the ranges into Parquet, or fails."""

    def __init__(self, wrong: Wrong, way: Way, there: Collection[int]) -> None:
        self._wrong = wrong
        self._way = way
        self._there = there

    def prepare(self, table: TableBatch) -> Timings:
        table.table.open_for(Schema.from_arrow(COLUMNS).to_json(), ())
        return Timings()

    def write(self, tables: Sequence[TableBatch]) -> list[Written]:
        return [self._write(table) for table in tables]

    def _write(self, table: TableBatch) -> Written:
        rows = []
        for one in table.planned:
            for offset in range(one.range.start, one.range.end):
                if offset not in self._there:
                    continue
                wrong = self._wrong(one.partition, offset, self._way)
                if wrong is not None:
                    raise wrong
                rows.append((one.partition.topic, one.partition.partition, offset))
        folder = f"{table.folder}/topic-id"
        columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
        with table.table.storage.create_file(f"{folder}/part-0.parquet") as stream:
            pa.parquet.write_table(pa.table(columns, schema=COLUMNS), stream)
        files = written_files(table.table.storage, table.folder)
        return Written(files, len(rows), len(rows))


class Carried:
    """A pipeline over the given fault, and what is in its lake."""

    def __init__(
        self,
        root: Path,
        wrong: Wrong,
        there: Collection[int] = range(RECORDS),
        workers_retry: str = "10m",
        **options: Any,
    ) -> None:
        """Offsets that are not `there` have no record: transaction markers, compaction."""
        self.settings = Settings(
            lake=LakeSettings(root=str(root), group="g"),
            spark=SparkSettings.model_validate({"workers_retry": workers_retry}),
        )
        self.pipeline = Pipeline(self.settings, None, source=_Source(), **options)
        self.ways: list[Way] = []
        self.pipeline._writer = self._writer  # type: ignore[method-assign] # stands for Spark
        self._wrong = wrong
        self._there = there

    def _writer(self, way: Way) -> Any:
        self.ways.append(way)
        return _Files(self._wrong, way, self._there)

    def carry(self, *places: TopicPartition, to: int = RECORDS, most: int = RECORDS) -> BatchResult:
        """From the ledger up to an offset, and only so many offsets of each partition."""
        ledger = self.pipeline.next_offsets(dict.fromkeys(places, "id"))
        starts = {one: ledger[one] or 0 for one in places}
        planned = [
            PlannedRange(
                OffsetRange(one, starts[one], min(to, starts[one] + most)), "id", ledger[one]
            )
            for one in places
        ]
        return self.pipeline.carry(planned, writer=Writer(1, 1))

    def rows(self, table: str) -> list[dict[str, Any]]:
        path = Path(self.settings.lake.root) / table
        found = DeltaTable(path).to_pyarrow_table().to_pylist() if path.exists() else []
        return sorted(found, key=lambda row: (row["topic"], row["partition"], row["offset"]))

    def offsets(self, place: TopicPartition) -> list[int]:
        rows = self.rows(place.topic)
        return [row["offset"] for row in rows if row["partition"] == place.partition]

    def letters(self) -> list[dict[str, Any]]:
        return self.rows("g_dead_letters")


ORDERS = [TopicPartition("orders", number) for number in range(3)]
OTHERS = TopicPartition("others", 0)


def fails_at(
    place: TopicPartition, *offsets: int, kind: type[BaseException] = OverflowError
) -> Wrong:
    def wrong(partition: TopicPartition, offset: int, _: Way) -> BaseException | None:
        is_bad = partition == place and offset in offsets
        return kind("nobody foresaw this") if is_bad else None

    return wrong
