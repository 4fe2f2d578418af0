"""Many topics, each with a table of its own, in one pass through Spark.

A pass costs its planning, its offsets and its job whatever is in it, so a pass a topic makes many
topics dear: with 24 of them most of the time went there. Topics whose records only pass through
(no transformation, the same columns) are read together instead, and written by topic below the
first table's batch folder; each topic's folder is then renamed into its own table's batch folder,
and every table commits for itself. A crash at any point leaves files in batch folders, where the
sweeper knows them by their witness like any other.

Renaming is for file systems. In an object store it would copy, so there each table has its pass.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from pyspark.sql import Observation, functions

from penstock.errors import PenstockError
from penstock.pipeline.batch import BatchResult, PlannedRange, Timings
from penstock.pipeline.diagnosis import topics_made_again
from penstock.pipeline.read_range import read_ranges
from penstock.pipeline.table_batch import TableBatch, TableWork, counts, require_all
from penstock.pipeline.transformation import transform
from penstock.pipeline.write_batch import WriteOptions, WrittenFile, write_rows, written_files
from penstock.settings.sections import LakeSettings, TableSettings

TOPIC_COLUMN = "penstock_topic"
COMMITS_AT_ONCE = 8


def shared_groups(
    lake: LakeSettings, by_table: Mapping[str, Sequence[PlannedRange]], *, is_local: bool
) -> list[list[str]]:
    """Which tables can be written in one pass: those that differ in nothing but their topic. Pure.

    A group of one is no group: such a table has its own pass.
    """
    groups: list[tuple[TableSettings, list[str]]] = []
    for name in sorted(by_table):
        topics = {(one.partition.topic, one.topic_id) for one in by_table[name]}
        settings = lake.table_of(by_table[name][0].partition.topic)
        if not is_local or len(topics) != 1 or settings.transformation:
            continue
        alike = settings.model_copy(update={"table": ""})
        for known, names in groups:
            if known == alike:
                names.append(name)
                break
        else:
            groups.append((alike, [name]))
    return [names for _, names in groups if len(names) > 1]


@dataclass(frozen=True, slots=True)
class _Member:
    """One table of the pass."""

    work: TableWork
    batch: TableBatch

    @property
    def topic(self) -> str:
        return self.batch.planned[0].partition.topic

    @property
    def home(self) -> str:
        return f"{self.batch.folder}/topic-{self.batch.planned[0].topic_id}"


class SharedPass:
    """Tables that differ in nothing but their topic; written together, committed one by one."""

    def __init__(self, members: Sequence[tuple[TableWork, TableBatch]]) -> None:
        self._members = [_Member(work, batch) for work, batch in members]
        self._staged = f"{self._members[0].batch.folder}/shared"
        self._timings = Timings()
        self._records = self._decoded_bytes = 0

    def write(self) -> list[list[WrittenFile]]:
        """Everything up to the commits: each table's files, at their place. Raises for all."""
        first = self._members[0]
        for member in self._members:
            member.batch.begin()
        written = self._run(first.work)
        storage = first.work.table.storage
        for member in self._members:
            staged = f"{self._staged}/{TOPIC_COLUMN}={member.topic}"
            storage.move_folder(staged, member.work.table.storage, member.home)
        storage.delete_folder(self._staged)
        files = [written_files(one.work.table.storage, one.batch.folder) for one in self._members]
        require_all(storage.uri, [file for some in files for file in some], written)
        first.work.at_point("files-written")
        planned = [one for member in self._members for one in member.batch.planned]
        for wrong in topics_made_again(first.work.kafka, planned).values():
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

        with ThreadPoolExecutor(COMMITS_AT_ONCE, thread_name_prefix="penstock-commit") as pool:
            results = list(pool.map(commit, self._members, files))
        total = BatchResult()
        for result in results:
            total += result
        return replace(
            total,
            records=total.records + self._records,
            decoded_bytes=total.decoded_bytes + self._decoded_bytes,
            timings=replace(self._timings, commit_s=time.monotonic() - began),
        )

    def drop(self, error: Exception) -> None:
        for member in self._members:
            member.batch.drop(error)

    def _run(self, work: TableWork) -> int:
        """One pass for all; how many rows Spark says it wrote."""
        settings = work.settings
        began = time.monotonic()
        planned = [one for member in self._members for one in member.batch.planned]
        counted, landed = Observation(), Observation()
        raw = read_ranges(work.session, settings.kafka, planned, settings.spark.tasks)
        raw = raw.observe(counted, *counts()).withColumn(TOPIC_COLUMN, functions.col("topic"))
        read = time.monotonic()
        table = settings.lake.table_of(self._members[0].topic)
        kept = [*table.columns, TOPIC_COLUMN] if table.columns else []
        rows = transform(raw, table.model_copy(update={"columns": kept})).rows
        schema = rows.drop(TOPIC_COLUMN).schema.json()
        for member in self._members:
            member.work.table.open_for(schema, table.partition_by)
        prepared = time.monotonic()
        rows = rows.observe(landed, functions.count(functions.lit(1)).alias("rows"))
        options = WriteOptions(
            tasks=settings.spark.tasks,
            compression=settings.lake.compression,
            partition_by=(TOPIC_COLUMN, *table.partition_by),
        )
        write_rows(rows, work.table.storage, self._staged, options)
        self._timings = Timings(read - began, prepared - read, time.monotonic() - prepared)
        seen = counted.get
        self._records, self._decoded_bytes = int(seen["records"]), int(seen["bytes"] or 0)
        return int(landed.get["rows"])
