"""The Parquet files of a batch, as a commit names them.

Every batch writes into a new folder of its own, so listing the folder finds exactly its files.
Row counts and column ranges come from the files' footers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow.parquet

from penstock.pipeline.file_statistics import file_stats
from penstock.pipeline.storage import StoredFile, TableStorage

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """One data file, ready to be named in a commit."""

    path: str
    size_bytes: int
    modified_at_ms: int
    records: int
    partition_values: Mapping[str, str | None]
    stats: str


def written_files(storage: TableStorage, folder: str) -> list[WrittenFile]:
    """The files in the batch's folder. Files without rows are deleted: no commit names them."""
    described = [describe_file(storage, file, folder) for file in storage.files_below(folder)]
    storage.delete_files(file.path for file in described if not file.records)
    return [file for file in described if file.records]


def describe_file(storage: TableStorage, file: StoredFile, folder: str) -> WrittenFile:
    """Read the file's footer; its partition values are the folders between it and `folder`."""
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
    """Read from the folders of a path such as `date=2026-01-31/part-0.parquet`."""
    values: dict[str, str | None] = {}
    for part in path.split("/")[:-1]:
        name, equals, value = part.partition("=")
        if not equals:
            continue
        values[unquote(name)] = None if value == _NO_VALUE else unquote(value)
    return values
