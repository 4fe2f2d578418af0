"""The files of a table, on a local disk or in an object store.

A root such as `/data/lake` or `s3://bucket/lake` is translated for each library: Spark (which
calls it `s3a`), deltalake, and pyarrow for listing files and reading their footers. The options
are deltalake's; pyarrow uses deltalake's store, so that one set of options serves both. Spark has
its own under `spark.options`.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow.fs
from deltalake.fs import DeltaStorageHandler

from penstock.settings.sections import LakeSettings

_SPARK_SCHEMES = {"s3": "s3a", "gs": "gs", "az": "abfss"}


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file below a table's root, with its path from there."""

    path: str
    size_bytes: int
    modified_at_ms: int


@dataclass(frozen=True, slots=True)
class FileMark:
    """By what a file is known again. One that was removed and made again has another mark."""

    size_bytes: int
    modified_at_ns: int
    # 0 in an object store.
    inode: int = 0

    def is_same_file(self, other: "FileMark | None") -> bool:
        """Whether it is this file, although somebody may have touched it."""
        return other is not None and (self.size_bytes, self.inode) == (
            other.size_bytes,
            other.inode,
        )


class TableStorage:
    """The files of one table."""

    def __init__(self, lake: LakeSettings, table: str) -> None:
        scheme, separator, rest = lake.root.partition("://")
        self.is_local = not separator or scheme == "file"
        self.options = dict(lake.storage_options)
        if self.is_local:
            folder = Path(rest if separator else lake.root).expanduser().absolute() / table
            self.uri = str(folder)
            self._folder = folder
        else:
            self.uri = f"{lake.root.rstrip('/')}/{table}"
        self._remote: Any = None

    def spark_uri(self, path: str) -> str:
        """The address under which Spark writes `path`."""
        if self.is_local:
            # Not `as_uri`: Hadoop does not decode a path, and would make a folder named `%20`.
            return f"file://{self._folder / path}"
        scheme, _, rest = self.uri.partition("://")
        return f"{_SPARK_SCHEMES.get(scheme, scheme)}://{rest}/{path}"

    @property
    def file_system(self) -> Any:
        """The table's root as a pyarrow file system."""
        if self._remote is None:
            self._remote = (
                pyarrow.fs.SubTreeFileSystem(self.uri, pyarrow.fs.LocalFileSystem())
                if self.is_local
                else pyarrow.fs.PyFileSystem(DeltaStorageHandler(self.uri, self.options))
            )
        return self._remote

    def files_below(self, path: str) -> list[StoredFile]:
        """Every Parquet file below a folder, by name, without hidden ones (`_...`, `.x`)."""
        found = self._local_files(path) if self.is_local else self._remote_files(path)
        return sorted(
            (
                file
                for file in found
                if file.path.endswith(".parquet")
                and not any(part.startswith(("_", ".")) for part in file.path.split("/"))
            ),
            key=lambda file: file.path,
        )

    def has_folder(self, path: str) -> bool:
        """Whether there is such a folder; in an object store, whether anything is below it."""
        if self.is_local:
            return (self._folder / path).is_dir()
        chosen = pyarrow.fs.FileSelector(path, allow_not_found=True)
        return bool(self.file_system.get_file_info(chosen))

    def folder_names(self, path: str) -> list[str]:
        """The folders right below a folder."""
        chosen = pyarrow.fs.FileSelector(path, allow_not_found=True)
        found = self.file_system.get_file_info(chosen)
        return sorted(
            info.base_name for info in found if info.type == pyarrow.fs.FileType.Directory
        )

    def _local_files(self, path: str) -> Iterator[StoredFile]:
        # `walk` ignores folders that vanish meanwhile.
        for folder, below, names in os.walk(self._folder / path):
            below[:] = [name for name in below if not name.startswith(("_", "."))]
            for name in names:
                file = Path(folder, name)
                try:
                    status = file.stat()
                except FileNotFoundError:
                    continue  # removed meanwhile
                inside = file.relative_to(self._folder).as_posix()
                yield StoredFile(inside, status.st_size, status.st_mtime_ns // 1_000_000)

    def _remote_files(self, path: str) -> Iterator[StoredFile]:
        chosen = pyarrow.fs.FileSelector(path, recursive=True, allow_not_found=True)
        for info in self.file_system.get_file_info(chosen):
            if info.type == pyarrow.fs.FileType.File:
                modified = 0 if info.mtime_ns is None else info.mtime_ns // 1_000_000
                yield StoredFile(info.path.lstrip("/"), info.size, modified)

    def file_at(self, path: str) -> StoredFile:
        if self.is_local:
            status = (self._folder / path).stat()
            return StoredFile(path, status.st_size, status.st_mtime_ns // 1_000_000)
        (info,) = self.file_system.get_file_info([path])
        modified = 0 if info.mtime_ns is None else info.mtime_ns // 1_000_000
        return StoredFile(path, info.size, modified)

    def open_file(self, path: str) -> IO[bytes] | Any:
        if self.is_local:
            return (self._folder / path).open("rb")
        return self.file_system.open_input_file(path)

    def read_marked(self, path: str) -> tuple[bytes, FileMark] | None:
        """A file's content, and the mark of what was read; None if there is no such file."""
        try:
            with self.open_file(path) as file:
                content = file.read()
                if self.is_local:
                    return content, _mark(os.fstat(file.fileno()))
        except FileNotFoundError:
            return None
        mark = self.mark_of(path)
        return None if mark is None else (content, mark)

    def mark_of(self, path: str) -> FileMark | None:
        if self.is_local:
            try:
                return _mark((self._folder / path).stat())
            except FileNotFoundError:
                return None
        (info,) = self.file_system.get_file_info([path])
        if info.type == pyarrow.fs.FileType.NotFound:
            return None
        return FileMark(info.size, info.mtime_ns or 0)

    def file_names(self, path: str) -> list[str]:
        """The names of all files right below a folder; none if it does not exist."""
        if self.is_local:
            try:
                return sorted(one.name for one in os.scandir(self._folder / path))
            except FileNotFoundError:
                return []
        chosen = pyarrow.fs.FileSelector(path, allow_not_found=True)
        return sorted(info.base_name for info in self.file_system.get_file_info(chosen))

    def local_path(self, path: str) -> Path:
        """Where a file is on this machine; only for a table on a file system."""
        return self._folder / path

    def create_file(self, path: str) -> Any:
        if self.is_local:
            (self._folder / path).parent.mkdir(parents=True, exist_ok=True)
        return self.file_system.open_output_stream(path)

    def delete_files(self, paths: Iterable[str]) -> None:
        """Remove files; a file that is already gone is no error."""
        for path in sorted(paths):
            if self.is_local:
                (self._folder / path).unlink(missing_ok=True)
            else:
                self.file_system.delete_file(path)

    def delete_folder(self, path: str) -> None:
        """Remove a batch's folder with everything in it."""
        if self.is_local:
            shutil.rmtree(self._folder / path, ignore_errors=True)
        else:
            self.delete_files(file.path for file in self._remote_files(path))


def _mark(status: os.stat_result) -> FileMark:
    return FileMark(status.st_size, status.st_mtime_ns, status.st_ino)


def table_names(lake: LakeSettings) -> list[str]:
    """The tables in the lake's root."""
    root = TableStorage(lake, "")
    if root.is_local:
        folder = Path(root.uri)
        return sorted(one.parent.name for one in folder.glob("*/_delta_log") if one.is_dir())
    chosen = pyarrow.fs.FileSelector("", allow_not_found=True)
    infos = root.file_system.get_file_info(chosen)
    return sorted(info.base_name for info in infos if info.type == pyarrow.fs.FileType.Directory)
