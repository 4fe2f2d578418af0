"""Joins small files into few large ones while consumers go on writing.

Rows are copied file by file with bounded memory, and one commit replaces the old files by the new
one. It changes no data and no partition's ledger entry, so consumers are not disturbed. The commit
passes only if every replaced file is still active: a DELETE, an OPTIMIZE or another compaction in
between refuses it, and the new file is dropped. Two compactions of one group exclude each other by
a ledger entry of their own.
"""

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet
from deltalake.transaction import RemoveAction

from penstock.errors import PenstockError
from penstock.model import TopicPartition
from penstock.pipeline.copied_values import CopiedValues, columns_without_fractions
from penstock.pipeline.file_statistics import file_stats
from penstock.pipeline.lake_commit import (
    FilesReplacedError,
    LakeTable,
    LedgerMove,
    StaleLedgerError,
)
from penstock.pipeline.orphans import COMPACTION
from penstock.pipeline.table_files import ActiveFile
from penstock.pipeline.written_files import WrittenFile
from penstock.settings.sections import LakeSettings
from penstock.spark_worker.record_columns import parquet_codec

_BUFFER_BYTES = 64 * 2**20
_ROWS_AT_ONCE_MAX = 100_000
FILES_WORTH_IT = 2
# Within this share of the wanted size a file is left alone: rewriting it would gain little.
_LARGE_ENOUGH = 0.75


@dataclass(frozen=True, slots=True)
class Compacted:
    """What one run did to a table."""

    files_before: int = 0
    files_after: int = 0
    bytes_rewritten: int = 0
    # How many new files were dropped because a file they join was replaced or deleted meanwhile.
    joins_refused: int = 0


def bins_of(files: Sequence[ActiveFile], file_size: int) -> list[list[ActiveFile]]:
    """Which files become one. Only files of one partition of the table, and one topic. Pure."""
    small = [file for file in files if file.size_bytes < file_size * _LARGE_ENOUGH]
    bins: list[list[ActiveFile]] = []
    by_kind = sorted(small, key=lambda file: (_kind(file), file.modified_at_ms, file.path))
    for _, group in itertools.groupby(by_kind, key=_kind):
        filling: list[ActiveFile] = []
        for file in group:
            if filling and sum(one.size_bytes for one in filling) + file.size_bytes > file_size:
                bins.append(filling)
                filling = []
            filling.append(file)
        bins.append(filling)
    return [some for some in bins if len(some) >= FILES_WORTH_IT]


def _kind(file: ActiveFile) -> tuple[str, str]:
    values = sorted((name, value or "") for name, value in file.partition_values.items())
    return topic_folder(file.path), repr(values)


def topic_folder(path: str) -> str:
    """The part of a path that says of which topic its rows are; kept when files are joined."""
    parts = path.split("/")
    return next((part for part in parts if part.startswith(("topic-", "mixed"))), "mixed")


def compact(table: LakeTable, lake: LakeSettings, file_size: int) -> Compacted:
    """Join small files until none is left to join; one commit for each new file."""
    files = table.active()
    rewritten = replaced = joined = refused = 0
    for some in bins_of(files, file_size):
        if _replace(table, lake, some):
            rewritten += sum(file.size_bytes for file in some)
            replaced += len(some)
            joined += 1
        else:
            refused += 1
    return Compacted(len(files), len(files) - replaced + joined, rewritten, refused)


def _replace(table: LakeTable, lake: LakeSettings, files: Sequence[ActiveFile]) -> bool:
    """Join these files; False when one of them is no longer part of the table."""
    entry = f"{lake.group}/{COMPACTION}/0"
    generation = table.next_offsets([entry])[entry]
    number = time.time_ns()
    said = "new" if generation is None else generation
    folder = f"data/{lake.group}/{COMPACTION}/{number}.{COMPACTION}.0.{said}"
    values = files[0].partition_values
    path = "/".join(
        [folder, topic_folder(files[0].path), *_folders(values), f"part-{number}.parquet"]
    )
    try:
        written = _join(table, files, path, parquet_codec(lake.compression))
    except FileNotFoundError:  # replaced and vacuumed while it was read
        table.storage.delete_folder(folder)
        return False
    except BaseException:
        # No commit names the folder yet. On a full disk, consumers need its space.
        table.storage.delete_folder(folder)
        raise
    moves = [
        LedgerMove(TopicPartition(COMPACTION, 0), entry, generation, (generation or 0) + 1),
    ]
    removed = [
        RemoveAction(
            file.path,
            False,
            number // 1_000_000,
            file.size_bytes,
            dict(file.partition_values),
        )
        for file in files
    ]
    try:
        table.commit(moves, [written], batch=folder, removed=removed, changes_data=False)
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


def _join(table: LakeTable, files: Sequence[ActiveFile], path: str, codec: str) -> WrittenFile:
    schema = _stored_schema(table, files[0].partition_values)
    copied, expected = CopiedValues(), 0
    with (
        table.storage.create_file(path) as stream,
        pyarrow.parquet.ParquetWriter(
            stream,
            schema,
            compression=codec,
            write_statistics=columns_without_fractions(schema),
        ) as writer,
    ):
        for file in files:
            found = 0
            for rows in _rows(table, file, schema):
                copied.add(rows)
                writer.write_table(rows)
                found += len(rows)
            expected += found if file.records is None else file.records
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
        at_once = max(1, min(_ROWS_AT_ONCE_MAX, _BUFFER_BYTES // bytes_per_row))
        for batch in parquet.iter_batches(batch_size=at_once):
            rows = pa.Table.from_batches([batch])
            columns = [
                rows[field.name].cast(field.type)
                if field.name in rows.column_names
                else pa.nulls(len(rows), field.type)
                for field in schema
            ]
            yield pa.table(columns, schema=schema)
