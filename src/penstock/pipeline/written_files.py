"""Rows -> Parquet files in a folder of the batch's own, and what the driver needs to know of them.

The folder is new for every batch, so listing it shows exactly this batch's files: no second Spark
job, no channel from the tasks. Row counts and column ranges come from the files' footers. Spark
moves a task's files into the folder only when the whole job has succeeded.
"""

import datetime as dt
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet

from penstock.pipeline.storage import StoredFile, TableStorage

_IN_LIST = re.compile(r"\.(list|key_value|array|bag)\b")
_WITHOUT_RANGE = {"BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY", "BOOLEAN"}
_TEXT_MAX = 32  # characters; a longer text would have to be cut, and its upper end raised
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_WRITE_OPTIONS = {
    # No empty marker file, and files appear only when the job is whole.
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
    # Values are mostly unlike one another: trying a dictionary for them costs and brings nothing.
    "parquet.enable.dictionary#value": "false",
    "parquet.enable.dictionary#offset": "false",
    # A task holds one row group in memory. At 128 MiB, Parquet's own choice, two tasks and the
    # readers do not fit into a heap of 1 GB; compaction makes larger ones for those who read.
    "parquet.block.size": str(16 * 2**20),
    # As pyarrow has it; Spark would take level 3, which is slower on records that compress badly.
    "parquet.compression.codec.zstd.level": "1",
}


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """One data file, ready to be named in a commit."""

    path: str
    size_bytes: int
    modified_at_ms: int
    records: int
    partition_values: Mapping[str, str | None]
    stats: str


def write_rows(rows: Any, storage: TableStorage, folder: str, options: "WriteOptions") -> None:
    """Run the batch through Spark into the folder."""
    writer = rows.coalesce(options.tasks).write.option("compression", options.compression)
    for name, value in _WRITE_OPTIONS.items():
        writer = writer.option(name, value)
    if options.partition_by:
        writer = writer.partitionBy(*options.partition_by)
    writer.parquet(storage.spark_uri(folder))


@dataclass(frozen=True, slots=True)
class WriteOptions:
    tasks: int
    compression: str
    partition_by: Sequence[str] = ()


def written_files(storage: TableStorage, folder: str) -> list[WrittenFile]:
    """What lies in the batch's folder. Files without rows are removed: nothing would name them."""
    described = [describe_file(storage, file, folder) for file in storage.files_below(folder)]
    storage.delete_files(file.path for file in described if not file.records)
    return [file for file in described if file.records]


def describe_file(storage: TableStorage, file: StoredFile, folder: str) -> WrittenFile:
    with storage.open_file(file.path) as opened:
        footer = pyarrow.parquet.read_metadata(opened)
    inside = file.path.removeprefix(folder).strip("/")
    return WrittenFile(
        path=file.path,
        size_bytes=file.size_bytes,
        modified_at_ms=file.modified_at_ms,
        records=footer.num_rows,
        partition_values=partition_values(inside),
        stats=file_stats(footer),
    )


def partition_values(path: str) -> dict[str, str | None]:
    """What the folders of a path say: `date=2026-01-31/part-0.parquet`."""
    values: dict[str, str | None] = {}
    for part in path.split("/")[:-1]:
        name, equals, value = part.partition("=")
        if not equals:
            continue
        values[unquote(name)] = None if value == _NO_VALUE else unquote(value)
    return values


def file_stats(footer: Any) -> str:
    """The record count and, if every column that has a range tells it, the ranges.

    All or none: deltalake's reader takes a column without a range beside others that have one for a
    column that no filter can match, and would hide its rows.
    """
    stats: dict[str, Any] = {"numRecords": footer.num_rows}
    ranges = _ranges(footer)
    if ranges:
        stats["minValues"] = {name: _said(one.least, up=False) for name, one in ranges.items()}
        stats["maxValues"] = {name: _said(one.most, up=True) for name, one in ranges.items()}
        stats["nullCount"] = {name: one.nulls for name, one in ranges.items()}
    return json.dumps(stats, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class _Range:
    least: Any
    most: Any
    nulls: int


def _ranges(footer: Any) -> dict[str, _Range] | None:
    """Column -> its range; None when one of them is not known."""
    found: dict[str, _Range] = {}
    for index in range(footer.num_columns):
        column = footer.schema.column(index)
        if column.path != column.name:
            if _IN_LIST.search(column.path):
                continue  # lists and maps have no range
            return None
        if column.physical_type in _WITHOUT_RANGE and column.logical_type.type == "NONE":
            continue
        groups = [footer.row_group(group).column(index) for group in range(footer.num_row_groups)]
        stats = [group.statistics for group in groups]
        if not stats or not all(one is not None and one.has_min_max for one in stats):
            return None
        if not all(one.has_null_count and _has_order(one.min, one.max) for one in stats):
            return None
        found[column.name] = _Range(
            min(one.min for one in stats),
            max(one.max for one in stats),
            sum(one.null_count for one in stats),
        )
    return found


def _has_order(least: Any, most: Any) -> bool:
    """Whether the two can be written down as a range without loss."""
    if isinstance(least, str):
        return max(len(least), len(most)) <= _TEXT_MAX
    return isinstance(least, (int, dt.datetime)) and not isinstance(least, bool)


def _said(value: Any, *, up: bool) -> Any:
    """A time is written in milliseconds, rounded outwards so that the range holds every row."""
    if not isinstance(value, dt.datetime):
        return value
    utc = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
    below = utc.replace(microsecond=utc.microsecond // 1000 * 1000)
    if up and below != utc:
        below += dt.timedelta(milliseconds=1)
    return below.isoformat(timespec="milliseconds") + "Z"
