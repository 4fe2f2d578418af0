"""The way through a DataFrame: Spark reads, the transformation runs, Spark writes.

Every record takes this way whose table has a transformation, lies in an object store or gets
several topics; so does whatever the pass-through way cannot carry. Spark moves its files into the
batch's folder only when the whole job has succeeded.
"""

import time
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Observation, functions

from penstock.model import TopicPartition
from penstock.pipeline.batch import PlannedRange, Timings
from penstock.pipeline.dead_letters import (
    already_kept,
    dead_letter_folder,
    dead_letter_moves,
    ledger_of_dead_letters,
    put_up_fence,
    with_time_and_headers,
    with_topic_ids,
    without,
)
from penstock.pipeline.failures import TransformationFailedError
from penstock.pipeline.file_statistics import TEXT_CHARACTERS_MAX
from penstock.pipeline.lake_commit import LakeTable
from penstock.pipeline.record_source import RecordSource
from penstock.pipeline.run_batch import PendingDeadLetters, TableBatch, Written
from penstock.pipeline.transformation import Transformed, transform
from penstock.pipeline.written_files import written_files
from penstock.settings import Settings
from penstock.settings.sections import TableSettings
from penstock.spark_worker.record_columns import ROW_GROUP_BYTES, ZSTD_LEVEL

_WRITE_OPTIONS = {
    # No empty marker file, and files appear only when the job is complete.
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    # Values mostly differ from one another, so a dictionary for them gains nothing.
    "parquet.enable.dictionary#value": "false",
    "parquet.enable.dictionary#offset": "false",
    "parquet.block.size": str(ROW_GROUP_BYTES),
    "parquet.compression.codec.zstd.level": str(ZSTD_LEVEL),
    # The footer would leave out a range of more than 4 kB; this many bytes of a text are used.
    "parquet.statistics.truncate.length": str(4 * TEXT_CHARACTERS_MAX),
}


@dataclass(frozen=True, slots=True)
class _Pass:
    """Topics that share the table and its settings: read, transformed and written together."""

    settings: TableSettings
    planned: Sequence[PlannedRange]
    folder: str
    transformed: Transformed
    counted: Observation
    # Dead letters of an earlier batch that never committed its table: left out of this one.
    kept: Sequence[tuple[str, int, int]]
    dead_letter_ledger: dict[TopicPartition, int | None]


class DataFrameWriter:
    def __init__(
        self,
        settings: Settings,
        session: Any,
        source: RecordSource,
        dead_letters: LakeTable,
        at_point: Callable[[str], None],
        *,
        reads_in_workers: bool = False,
        has_kept: AbstractSet[TopicPartition] = frozenset(),
        is_calm: bool = False,
    ) -> None:
        """Of the partitions in `has_kept`, dead letters may be kept already that are to come.

        `is_calm`: one file for each table (and partition folder), not one for each task.
        """
        self._is_calm = is_calm
        self._reads_in_workers = reads_in_workers
        self._has_kept = has_kept
        self._settings = settings
        self._session = session
        self._source = source
        self._dead_letters = dead_letters
        self._at_point = at_point
        self._passes: dict[str, list[_Pass]] = {}

    def prepare(self, table: TableBatch) -> Timings:
        """Apply the transformations (nothing runs yet) and add the columns they give."""
        timings = Timings()
        self._passes[table.folder] = passes = []
        for number, (settings, planned) in enumerate(self._by_settings(table.planned)):
            folder = table.folder_for(planned, number)
            began = time.monotonic()
            kept: list[tuple[str, int, int]] = []
            ledger: dict[TopicPartition, int | None] = {}
            letters, group = self._dead_letters, self._settings.lake.group
            if settings.transformation:
                put_up_fence(letters, group, planned, folder)
            if settings.transformation or self._has_kept & {one.partition for one in planned}:
                ledger = ledger_of_dead_letters(letters, group, planned)
                kept = already_kept(letters, planned, ledger)
            counted = Observation()
            raw = self._raw(planned, kept).observe(counted, *_counts())
            read = time.monotonic()
            transformed = transform(raw, settings)
            table.table.open_for(transformed.rows.schema.json(), settings.partition_by)
            passes.append(_Pass(settings, planned, folder, transformed, counted, kept, ledger))
            timings += Timings(read_s=read - began, transform_s=time.monotonic() - read)
        return timings

    def write(self, tables: Sequence[TableBatch]) -> list[Written]:
        return [self._write_table(table) for table in tables]

    def _write_table(self, table: TableBatch) -> Written:
        rows = records = decoded_bytes = dead_letters = 0
        for one in self._passes[table.folder]:
            landed = Observation()
            counting = functions.count(functions.lit(1)).alias("rows")
            observed = one.transformed.rows.observe(landed, counting)
            self._run(observed, table.table, one.folder, one.settings.partition_by)
            rows += int(_observed(landed).get("rows", 0))
            counted = _observed(one.counted) or self._count(one)
            records += int(counted["records"]) + len(one.kept)
            decoded_bytes += int(counted["bytes"] or 0)
            marked = self._marked(one)
            if marked:
                self._write_dead_letters(table, one, marked)
            dead_letters += marked
        files = written_files(table.table.storage, table.folder)
        return Written(files, rows, records, decoded_bytes, dead_letters)

    def _count(self, one: _Pass) -> dict[str, Any]:
        """Count the records in a pass of their own."""
        (row,) = self._raw(one.planned, one.kept).agg(*_counts()).collect()
        return dict(row.asDict())

    def _marked(self, one: _Pass) -> int:
        """How many records the transformation marked undecodable."""
        if one.transformed.undecodable is None:
            return 0
        observed = _observed(one.transformed.undecodable)
        if observed:
            return int(observed["undecodable"])
        letters = transform(self._raw(one.planned, one.kept), one.settings).dead_letters
        return 0 if letters is None else int(letters.count())

    def _write_dead_letters(self, table: TableBatch, one: _Pass, marked: int) -> None:
        """A second pass over the same ranges, for the records marked undecodable."""
        letters, group = self._dead_letters, self._settings.lake.group
        rows = transform(self._raw(one.planned, one.kept), one.settings).dead_letters
        rows = with_topic_ids(rows, one.planned)
        rows = with_time_and_headers(rows, self._raw(one.planned, one.kept))
        letters.open_for(rows.schema.json(), ())
        first = one.planned[0]
        folder = dead_letter_folder(table.folder, first, one.dead_letter_ledger[first.partition])
        moves = dead_letter_moves(group, one.planned, one.dead_letter_ledger)
        pending = PendingDeadLetters(letters, folder, moves, [])
        table.dead_letters.append(pending)
        self._run(rows, letters, folder, ())
        pending.files.extend(written_files(letters.storage, folder))
        found = sum(file.records for file in pending.files)
        if found != marked:
            raise TransformationFailedError(
                f"The transformation {one.settings.transformation} marked {marked} records "
                f"undecodable in its first pass, and {found} in its second.",
                remedy="A transformation must give the same rows for the same records.",
            )
        self._at_point("dead-letters-written")

    def _by_settings(
        self, planned: Sequence[PlannedRange]
    ) -> list[tuple[TableSettings, list[PlannedRange]]]:
        parts: list[tuple[TableSettings, list[PlannedRange]]] = []
        for one in planned:
            settings = self._settings.lake.table_of(one.partition.topic)
            for known, some in parts:
                if known == settings:
                    some.append(one)
                    break
            else:
                parts.append((settings, [one]))
        return parts

    def _raw(self, planned: Sequence[PlannedRange], kept: Sequence[tuple[str, int, int]]) -> Any:
        raw = self._source.read(planned, in_workers=self._reads_in_workers)
        return without(self._session, raw, kept)

    def _run(self, rows: Any, table: LakeTable, folder: str, partition_by: Sequence[str]) -> None:
        """Run the rows through Spark into the folder."""
        # A transformation still runs in all tasks: only what it gives is brought together.
        few = rows.repartition(1) if self._is_calm else rows.coalesce(self._settings.spark.tasks)
        writer = few.write
        writer = writer.option("compression", self._settings.lake.compression)
        for name, value in _WRITE_OPTIONS.items():
            writer = writer.option(name, value)
        if partition_by:
            writer = writer.partitionBy(*partition_by)
        writer.parquet(table.storage.spark_uri(folder))


def _observed(observation: Observation) -> dict[str, Any]:
    """What was counted while rows flowed; empty when Spark left that part of the plan out.

    It does so when it knows that nothing can come of it: a transformation that marks every record
    undecodable, or keeps none.
    """
    try:
        return dict(observation.get)
    except Exception:  # noqa: BLE001 -- Spark in this process cannot convert an empty answer
        return {}


def _counts() -> list[Any]:
    """Records and their bytes, counted while they flow."""
    sizes = [
        functions.coalesce(functions.octet_length(name), functions.lit(0))
        for name in ("key", "value")
    ]
    return [
        functions.count(functions.lit(1)).alias("records"),
        functions.sum((sizes[0] + sizes[1]).cast("long")).alias("bytes"),
    ]
