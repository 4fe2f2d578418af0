"""Records that only pass through: from Kafka into files inside Spark's Python workers, in one job.

Where no transformation is asked for, a DataFrame would be made only to be taken apart again. So
Spark's workers read the ranges with librdkafka and write Parquet with Arrow (`spark_worker`), for
all tables of the batch at once: every topic's files lie in its own table's batch folder, and each
table commits for itself. Files are taken from the tasks' answers, not from the folders: what a
failed attempt of a task left there is named by nobody, and the sweeper finds it.

Workers write to the lake's folder themselves, so this is for lakes on a file system that they see.
"""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DateType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from penstock.errors import PenstockError
from penstock.kafka_io.client_properties import librdkafka_properties
from penstock.pipeline.batch import BatchResult, PlannedRange, Timings
from penstock.pipeline.diagnosis import topics_made_again
from penstock.pipeline.straight_session import StraightSession
from penstock.pipeline.table_batch import TableBatch, TableWork, require_all
from penstock.pipeline.write_batch import WrittenFile, describe_file
from penstock.settings.sections import LakeSettings, TableSettings
from penstock.spark_worker.task import task_of
from penstock.spark_worker.work import (
    DATE_COLUMN,
    RangeToRead,
    StraightWork,
    TableToWrite,
    WrittenPart,
    divided,
)
from penstock.transformations import RAW_COLUMNS

COMMITS_AT_ONCE = 8
_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
_TYPES = {
    "key": BinaryType(),
    "value": BinaryType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "timestampType": IntegerType(),
    "headers": ArrayType(_HEADER),
    DATE_COLUMN: DateType(),
}


def straight_tables(
    lake: LakeSettings, by_table: Mapping[str, Sequence[PlannedRange]], *, is_local: bool
) -> list[str]:
    """The tables whose records only pass through, each from one topic. Pure."""
    return [
        name
        for name in sorted(by_table)
        if is_local
        and len({(one.partition.topic, one.topic_id) for one in by_table[name]}) == 1
        and _passes_through(lake.table_of(by_table[name][0].partition.topic))
    ]


def _passes_through(table: TableSettings) -> bool:
    is_known = set(table.columns) <= set(_TYPES)
    return not table.transformation and is_known and table.partition_by in ([], [DATE_COLUMN])


def columns_of(table: TableSettings) -> list[str]:
    """The table's columns in order, as the way through a DataFrame would give them."""
    dated = [DATE_COLUMN] if table.partition_by else []
    return list(table.columns) or [*RAW_COLUMNS, *dated]


@dataclass(frozen=True, slots=True)
class _Member:
    """One table of the pass."""

    work: TableWork
    batch: TableBatch

    @property
    def topic(self) -> str:
        return self.batch.planned[0].partition.topic

    @property
    def table(self) -> TableSettings:
        return self.work.settings.lake.table_of(self.topic)

    @property
    def home(self) -> str:
        return f"{self.batch.folder}/topic-{self.batch.planned[0].topic_id}"

    def files(self, parts: Sequence[WrittenPart]) -> list[WrittenFile]:
        storage = self.work.table.storage
        names = [Path(one.path).relative_to(storage.uri) for one in parts if one.records]
        stored = [storage.file_at(name.as_posix()) for name in sorted(names)]
        return [describe_file(storage, one, self.batch.folder) for one in stored]


class StraightPass:
    """Tables written together and committed one by one."""

    def __init__(
        self, session: StraightSession, members: Sequence[tuple[TableWork, TableBatch]]
    ) -> None:
        self._session = session
        self._members = [_Member(work, batch) for work, batch in members]
        self._parts: list[WrittenPart] = []
        self._timings = Timings()

    def write(self) -> list[list[WrittenFile]]:
        """Everything up to the commits: each table's files, at their place. Raises for all."""
        began = time.monotonic()
        for member in self._members:
            member.batch.begin()
            columns = [StructField(name, _TYPES[name]) for name in columns_of(member.table)]
            member.work.table.open_for(StructType(columns).json(), member.table.partition_by)
        prepared = time.monotonic()
        self._parts = self._run()
        by_topic: dict[str, list[WrittenPart]] = {}
        for one in self._parts:
            by_topic.setdefault(one.topic, []).append(one)
        files = [member.files(by_topic.get(member.topic, ())) for member in self._members]
        first = self._members[0].work
        written = sum(one.records for one in self._parts)
        require_all(first.table.storage.uri, [one for some in files for one in some], written)
        self._timings = Timings(read_s=prepared - began, write_s=time.monotonic() - prepared)
        first.at_point("files-written")
        planned = [one for member in self._members for one in member.batch.planned]
        for wrong in topics_made_again(first.kafka, planned).values():
            raise wrong
        return files

    def commit(
        self,
        files: Sequence[list[WrittenFile]],
        otherwise: Callable[[TableBatch, Exception], BatchResult],
    ) -> BatchResult:
        """Every table for itself, side by side; what fails for one is `otherwise`'s."""
        began = time.monotonic()

        def commit(member: _Member, some: list[WrittenFile]) -> BatchResult:
            try:
                return member.batch.commit(some)
            except PenstockError as error:
                return otherwise(member.batch, error)

        if len(self._members) == 1:
            results = [commit(self._members[0], files[0])]
        else:
            with ThreadPoolExecutor(COMMITS_AT_ONCE, thread_name_prefix="penstock-commit") as pool:
                results = list(pool.map(commit, self._members, files))
        total = BatchResult()
        for result in results:
            total += result
        return replace(
            total,
            records=total.records + sum(one.records for one in self._parts),
            decoded_bytes=total.decoded_bytes + sum(one.decoded_bytes for one in self._parts),
            timings=replace(self._timings, commit_s=time.monotonic() - began),
        )

    def drop(self, error: Exception) -> None:
        for member in self._members:
            member.batch.drop(error)

    def _run(self) -> list[WrittenPart]:
        """One job for all; the answers of its tasks."""
        first = self._members[0].work
        settings = first.settings
        planned = [one for member in self._members for one in member.batch.planned]
        ranges = [
            RangeToRead(
                one.partition.topic, one.partition.partition, one.range.start, one.range.end
            )
            for one in planned
            if len(one.range)
        ]
        tasks = divided(ranges, settings.spark.tasks)
        if not tasks:
            return []
        work = StraightWork(
            kafka=librdkafka_properties(settings.kafka),
            readers_name=_readers_name(planned),
            tasks=tasks,
            tables={
                one.topic: TableToWrite(
                    folder=str(Path(one.work.table.storage.uri) / one.home),
                    columns=columns_of(one.table),
                    is_dated=bool(one.table.partition_by),
                )
                for one in self._members
            },
            compression=settings.lake.compression,
            silence_s_max=settings.kafka.answer_timeout,
        )
        return self._session.run(task_of(work), len(tasks))


def _readers_name(planned: Sequence[PlannedRange]) -> str:
    """Readers fetch ahead: those of a topic that was made again since must not be used again."""
    ids = sorted({one.topic_id for one in planned})
    return hashlib.sha256(" ".join(ids).encode()).hexdigest()[:16]
