"""Joins small files into few large ones while consumers go on writing.

Rows are copied file by file with bounded memory, and one commit replaces the old files by the new
one. It changes no data and no partition's ledger entry, so consumers are not disturbed. The commit
passes only if every replaced file is still active: a DELETE, an OPTIMIZE or another compaction in
between refuses it, and the new file is dropped. Two compactions of one group exclude each other by
a ledger entry of their own.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet

from penstock.errors import PenstockError
from penstock.model import TopicPartition
from penstock.pipeline.copied_values import CopiedValues, columns_without_fractions
from penstock.pipeline.file_statistics import file_stats
from penstock.pipeline.file_survey import FileSurvey
from penstock.pipeline.join_plan import FINISHED, Join, JoinRules, joins_in, topic_folder
from penstock.pipeline.lake_commit import (
    FilesReplacedError,
    LakeTable,
    LedgerMove,
    StaleLedgerError,
)
from penstock.pipeline.log_entries import RemovedFile, encoded_path
from penstock.pipeline.orphans import COMPACTION
from penstock.pipeline.replaced_files import SeenFiles
from penstock.pipeline.table_files import ActiveFile
from penstock.pipeline.table_reading import TableReading
from penstock.pipeline.written_files import WrittenFile
from penstock.settings.sections import LakeSettings
from penstock.spark_worker.record_columns import ZSTD_LEVEL, parquet_codec

# A row group holds about this much decoded, and so does the memory.
ROW_GROUP_BYTES = 32 * 2**20
# Rows are sorted so much at a time, and then have smaller row groups, which readers skip.
SORTED_BYTES = 128 * 2**20
SORTED_ROW_GROUP_BYTES = 8 * 2**20
_ROWS_AT_ONCE_MAX = 100_000


@dataclass(frozen=True, slots=True)
class Compacted:
    """What one run did to a table."""

    files_before: int = 0
    files_after: int = 0
    bytes_rewritten: int = 0
    # How many new files were dropped because a file they join was replaced or deleted meanwhile.
    joins_refused: int = 0
    # Whether the run ended before everything was joined that could be.
    has_more: bool = False


class ProcessorClock:
    """The processor time of this process, from lap to lap."""

    def __init__(self, started_s: float | None = None) -> None:
        self._last_s = time.process_time() if started_s is None else started_s

    def lap_ms(self) -> int:
        now_s = time.process_time()
        spent_s, self._last_s = now_s - self._last_s, now_s
        return round(spent_s * 1000)


@dataclass(frozen=True, slots=True)
class CompactionTotals:
    """What compaction has done to a table so far, as the table's ledger keeps it."""

    joins: int = 0
    files: int = 0
    rewritten_bytes: int = 0
    processor_ms: int = 0
    last_unix_ms: int = 0


def totals_of(table: TableReading, group: str) -> CompactionTotals:
    names = _entries(group)
    stored = table.next_offsets(names)
    return CompactionTotals(*(stored[name] or 0 for name in names))


def _entries(group: str) -> list[str]:
    """The ledger's entries of a compaction, in the order of `CompactionTotals`.

    The first counts the joins. Each join is planned from it, so that two never pass together.
    """
    notes = ("files", "rewritten-bytes", "processor-ms", "last-unix-ms")
    return [f"{group}/{COMPACTION}/{name}" for name in ("0", *notes)]


def compact(
    table: LakeTable,
    lake: LakeSettings,
    rules: JoinRules,
    *,
    may_go_on: Callable[[], bool] = lambda: True,
    clock: ProcessorClock | None = None,
    survey: FileSurvey | None = None,
) -> Compacted:
    """Join what is to be joined now; one commit for each new file."""
    clock = clock or ProcessorClock()
    survey = survey or table.survey(rules)
    rewritten = replaced = joined = refused = 0
    has_more = not survey.is_whole
    joins = joins_in(survey.folders, rules)
    seen = survey.seen(joins)
    for join in joins:
        if not may_go_on():
            has_more = True
            break
        if _replace(table, lake, join, seen, clock):
            rewritten += join.size_bytes
            replaced += len(join.files)
            joined += 1
        else:
            refused += 1
    left = survey.files - replaced + joined
    return Compacted(survey.files, left, rewritten, refused, has_more)


def _replace(
    table: LakeTable,
    lake: LakeSettings,
    join: Join,
    seen: SeenFiles | None,
    clock: ProcessorClock,
) -> bool:
    """Join these files; False when one of them is no longer part of the table."""
    files, entries = join.files, _entries(lake.group)
    stored = table.next_offsets(entries)
    generation = stored[entries[0]]
    number = time.time_ns()
    said = "new" if generation is None else generation
    folder = f"data/{lake.group}/{COMPACTION}/{number}.{COMPACTION}.0.{said}"
    values = files[0].partition_values
    name = f"{FINISHED if join.is_finishing else 'part'}-{number}.parquet"
    path = "/".join([folder, topic_folder(files[0].path), *_folders(values), name])
    try:
        written = _join(table, lake, join, path)
    except FileNotFoundError:  # replaced and vacuumed while it was read
        table.storage.delete_folder(folder)
        return False
    except BaseException:
        # No commit names the folder yet. On a full disk, consumers need its space.
        table.storage.delete_folder(folder)
        raise
    more = (1, len(files), join.size_bytes, clock.lap_ms())
    counts = [(stored[name] or 0) + by for name, by in zip(entries, more, strict=False)]
    moves = [
        LedgerMove(TopicPartition(COMPACTION, 0), name, stored[name], value)
        for name, value in zip(entries, [*counts, number // 1_000_000], strict=True)
    ]
    removed = [
        RemovedFile(
            file.log_path or encoded_path(file.path),
            file.size_bytes,
            file.partition_values,
            number // 1_000_000,
        )
        for file in files
    ]
    try:
        table.commit(moves, [written], batch=folder, removed=removed, seen=seen)
    except FilesReplacedError:
        table.drop_uncommitted(folder)
        return False
    except PenstockError as error:
        # In an object store, a commit without an answer may still arrive and needs its file.
        if table.storage.is_local or isinstance(error, StaleLedgerError):
            table.drop_uncommitted(folder)
        raise
    return True


def _folders(values: Mapping[str, str | None]) -> list[str]:
    return [
        f"{quote(name)}={'__HIVE_DEFAULT_PARTITION__' if value is None else quote(value, safe='')}"
        for name, value in values.items()
    ]


def _join(table: LakeTable, lake: LakeSettings, join: Join, path: str) -> WrittenFile:
    files = join.files
    schema = _stored_schema(table, files[0].partition_values)
    copied, expected = CopiedValues(), 0
    sort_by = lake.sort_by(table.name) if join.is_last else ()
    with (
        table.storage.create_file(path) as stream,
        pyarrow.parquet.ParquetWriter(
            stream,
            schema,
            compression=parquet_codec(lake.compression),
            compression_level=ZSTD_LEVEL if lake.compression == "zstd" else None,
            use_dictionary=_dictionary_columns(table, files[-1], schema),
            write_statistics=columns_without_fractions(schema),
        ) as writer,
    ):
        groups = _RowGroups(writer, schema, sort_by)
        for file in files:
            found = 0
            for rows in _rows(table, file, schema):
                copied.add(rows)
                groups.add(rows)
                found += len(rows)
            expected += found if file.records is None else file.records
        groups.flush()
    stored = table.storage.file_at(path)
    with table.storage.open_file(path) as opened:
        footer = pyarrow.parquet.read_metadata(opened)
    if footer.num_rows != expected:
        raise AssertionError(f"{path} has {footer.num_rows} rows instead of {expected}")
    return WrittenFile(
        path=path,
        size_bytes=stored.size_bytes,
        modified_at_ms=stored.modified_at_ms,
        records=footer.num_rows,
        partition_values=files[0].partition_values,
        stats=file_stats(footer, copied=copied),
    )


class _RowGroups:
    """Collects rows until they make a row group, so that joined files do not keep small ones."""

    def __init__(self, writer: Any, schema: Any, sort_by: Sequence[str]) -> None:
        self._writer = writer
        self._order = [
            (name, "ascending")
            for name in sort_by
            if name in schema.names and not pa.types.is_nested(schema.field(name).type)
        ]
        self._group_bytes = SORTED_ROW_GROUP_BYTES if self._order else ROW_GROUP_BYTES
        self._held_bytes = SORTED_BYTES if self._order else ROW_GROUP_BYTES
        self._pending: list[Any] = []
        self._pending_bytes = 0

    def add(self, rows: Any) -> None:
        self._pending.append(rows)
        self._pending_bytes += rows.nbytes
        if self._pending_bytes >= self._held_bytes:
            self.flush()

    def flush(self) -> None:
        if not self._pending:
            return
        rows = pa.concat_tables(self._pending)
        if self._order:
            rows = rows.sort_by(self._order)
        bytes_per_row = max(1, self._pending_bytes // max(1, len(rows)))
        self._writer.write_table(rows, row_group_size=max(1, self._group_bytes // bytes_per_row))
        self._pending, self._pending_bytes = [], 0


def _dictionary_columns(table: LakeTable, file: ActiveFile, schema: Any) -> list[str]:
    """The columns that have a dictionary in a file that is joined: values there repeat."""
    with table.storage.open_file(file.path) as opened:
        footer = pyarrow.parquet.read_metadata(opened)
    if not footer.num_row_groups:
        return []
    group = footer.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    found = {one.path_in_schema for one in columns if "DICTIONARY" in str(one.encodings)}
    # Fields of structs and lists are named by where they are.
    return sorted(one for one in found if one.split(".")[0] in schema.names)


def _stored_schema(table: LakeTable, partition_values: Mapping[str, str | None]) -> Any:
    """The table's columns as they are stored in files. Other tools store the same types otherwise.

    deltalake writes texts as views, and Spark may write times as INT96.
    """
    columns = [field for field in table.arrow_schema() if field.name not in partition_values]
    return pa.schema(columns)


def _rows(table: LakeTable, file: ActiveFile, schema: Any) -> Iterator[Any]:
    with table.storage.open_file(file.path) as opened:
        # INT96 as Arrow reads it by default, in nanoseconds, ends in the year 2262.
        parquet = pyarrow.parquet.ParquetFile(opened, coerce_int96_timestamp_unit="us")
        groups = range(parquet.num_row_groups)
        held = sum(parquet.metadata.row_group(one).total_byte_size for one in groups)
        bytes_per_row = max(1, held // max(1, parquet.metadata.num_rows))
        at_once = max(1, min(_ROWS_AT_ONCE_MAX, ROW_GROUP_BYTES // bytes_per_row))
        # Without threads: a compaction takes no more than one core.
        for batch in parquet.iter_batches(batch_size=at_once, use_threads=False):
            rows = pa.Table.from_batches([batch])
            columns = [
                rows[field.name].cast(field.type)
                if field.name in rows.column_names
                else pa.nulls(len(rows), field.type)
                for field in schema
            ]
            yield pa.table(columns, schema=schema)
