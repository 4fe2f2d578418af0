"""The files of a table, on a local disk or in an object store.

A root such as `/data/lake` or `s3://bucket/lake` is translated for each library: Spark (which
calls it `s3a`), deltalake, and `object_store` for everything that is done here. The options are
deltalake's, and serve both. Spark has its own under `spark.options`.
"""

import contextlib
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import pyarrow.fs

from penstock.object_store.limits import with_time_limits
from penstock.settings.sections import LakeSettings

if TYPE_CHECKING:
    from penstock.object_store.client import ObjectStore, StoredObject

_Input = TypeVar("_Input")
_Output = TypeVar("_Output")
# Requests to an object store that wait for their answers side by side, of all tables together.
_REQUESTS_AT_ONCE = 16
_REQUEST_THREAD = "penstock-store"

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
    # 0 in an object store, and so is the time where there is an entity tag.
    inode: int = 0
    # In an object store: it changes with the content.
    entity_tag: str = ""

    def is_same_file(self, other: "FileMark | None") -> bool:
        """Whether it is this file, although somebody may have touched it."""
        return other is not None and (self.size_bytes, self.inode, self.entity_tag) == (
            other.size_bytes,
            other.inode,
            other.entity_tag,
        )


class TableStorage:
    """The files of one table."""

    def __init__(self, lake: LakeSettings, table: str) -> None:
        scheme, separator, rest = lake.root.partition("://")
        self.is_local = not separator or scheme == "file"
        # For deltalake, and for Spark's workers.
        self.options = dict(lake.storage_options)
        if self.is_local:
            folder = Path(rest if separator else lake.root).expanduser().absolute() / table
            self.uri = str(folder)
            self._folder = folder
        else:
            self.uri = f"{lake.root.rstrip('/')}/{table}"
            self.options = with_time_limits(self.options)

    def spark_uri(self, path: str) -> str:
        """The address under which Spark writes `path`."""
        if self.is_local:
            # Not `as_uri`: Hadoop does not decode a path, and would make a folder named `%20`.
            return f"file://{self._folder / path}"
        scheme, _, rest = self.uri.partition("://")
        return f"{_SPARK_SCHEMES.get(scheme, scheme)}://{rest}/{path}"

    @cached_property
    def _store(self) -> "ObjectStore":
        # Imported only here: a lake on a file system needs none of it.
        from penstock.object_store.client import ObjectStore  # noqa: PLC0415 -- see above

        return ObjectStore(self.uri, self.options)

    def files_below(self, path: str) -> list[StoredFile]:
        """Every Parquet file below a folder, by name, without hidden ones (`_...`, `.x`)."""
        return sorted(self.each_file_below(path), key=lambda file: file.path)

    def each_file_below(self, path: str) -> Iterator[StoredFile]:
        """The same one by one, in any order: there may be a million."""
        found = self._local_files(path) if self.is_local else self._remote_files(path)
        for file in found:
            is_hidden = any(part.startswith(("_", ".")) for part in file.path.split("/"))
            if file.path.endswith(".parquet") and not is_hidden:
                yield file

    def has_folder(self, path: str) -> bool:
        """Whether there is such a folder; in an object store, whether anything is below it."""
        if self.is_local:
            return (self._folder / path).is_dir()
        return next(self._store.objects_below(path), None) is not None

    def folder_names(self, path: str) -> list[str]:
        """The folders right below a folder; none if it does not exist."""
        if not self.is_local:
            return self._store.in_folder(path)[0]
        try:
            return sorted(one.name for one in os.scandir(self._folder / path) if one.is_dir())
        except FileNotFoundError:
            return []

    def for_each(
        self, function: Callable[[_Input], _Output], some: Iterable[_Input]
    ) -> list[_Output]:
        """Call it for each, side by side where each call waits for an object store.

        One call has nothing beside it. A call that makes others makes them itself: if it waited for
        a thread, all threads could wait for each other.
        """
        every = list(some)
        is_request = threading.current_thread().name.startswith(_REQUEST_THREAD)
        if self.is_local or len(every) <= 1 or is_request:
            return [function(one) for one in every]
        return list(_request_threads(os.getpid()).map(function, every))

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
        return map(_stored_file, self._store.objects_below(path))

    def file_at(self, path: str) -> StoredFile:
        if self.is_local:
            status = (self._folder / path).stat()
            return StoredFile(path, status.st_size, status.st_mtime_ns // 1_000_000)
        found = self._store.look_at(path)
        if found is None:
            raise FileNotFoundError(f"{self.uri}/{path}")
        return _stored_file(found)

    def open_file(self, path: str) -> IO[bytes] | Any:
        if self.is_local:
            return (self._folder / path).open("rb")
        return self._store.open_reader(path)

    def read_marked(self, path: str) -> tuple[bytes, FileMark] | None:
        """A file's content, and the mark of what was read; None if there is no such file."""
        try:
            if not self.is_local:
                content, found = self._store.read(path)
                return content, _mark_of_object(found)
            with (self._folder / path).open("rb") as file:
                return file.read(), _mark(os.fstat(file.fileno()))
        except FileNotFoundError:
            return None

    def mark_of(self, path: str) -> FileMark | None:
        if self.is_local:
            try:
                return _mark((self._folder / path).stat())
            except FileNotFoundError:
                return None
        found = self._store.look_at(path)
        return None if found is None else _mark_of_object(found)

    def file_names(self, path: str) -> list[str]:
        """The names of all files right below a folder; none if it does not exist."""
        if self.is_local:
            try:
                return sorted(one.name for one in os.scandir(self._folder / path))
            except FileNotFoundError:
                return []
        return sorted(one.path.rpartition("/")[2] for one in self._store.in_folder(path)[1])

    def files_in(self, path: str) -> list[StoredFile]:
        """All files right below a folder, hidden ones too; none if it does not exist."""
        if not self.is_local:
            return [_stored_file(one) for one in self._store.in_folder(path)[1]]
        found = []
        for name in self.file_names(path):
            with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                found.append(self.file_at(f"{path}/{name}"))
        return found

    def local_path(self, path: str) -> Path:
        """Where a file is on this machine; only for a table on a file system."""
        return self._folder / path

    def create_file(self, path: str) -> Any:
        """A file to write; in an object store it is there when the `with` around it ends well."""
        if not self.is_local:
            return self._store.open_writer(path)
        (self._folder / path).parent.mkdir(parents=True, exist_ok=True)
        return pyarrow.fs.LocalFileSystem().open_output_stream(str(self._folder / path))

    def put_new(self, path: str, content: bytes) -> FileMark | None:
        """Put a file where none is; None if there is one. Only for an object store.

        There it is one step: no reader sees half of the file, and of several writers one has it.
        The file that is found may be one's own: after a lost answer the store is asked again.
        """
        try:
            made = self._store.create(path, content)
        except FileExistsError:
            return None
        return self.mark_of(path) if made is None else _mark_of_object(made)

    def delete_files(self, paths: Iterable[str]) -> None:
        """Remove files; a file that is already gone is no error."""
        if not self.is_local:
            self._store.delete(paths)
            return
        for path in sorted(paths):
            (self._folder / path).unlink(missing_ok=True)

    def delete_folder(self, path: str) -> None:
        """Remove a batch's folder with everything in it."""
        if self.is_local:
            shutil.rmtree(self._folder / path, ignore_errors=True)
        else:
            self.delete_files(file.path for file in self._remote_files(path))


def _mark(status: os.stat_result) -> FileMark:
    return FileMark(status.st_size, status.st_mtime_ns, status.st_ino)


def _mark_of_object(found: "StoredObject") -> FileMark:
    # The store's time is in whole seconds: the tag says more.
    modified_at_ns = 0 if found.e_tag else found.modified_at_ms * 1_000_000
    return FileMark(found.size_bytes, modified_at_ns, entity_tag=found.e_tag)


def _stored_file(found: "StoredObject") -> StoredFile:
    return StoredFile(found.path, found.size_bytes, found.modified_at_ms)


@lru_cache(1)
def _request_threads(_process: int) -> ThreadPoolExecutor:
    """They last: threads for each look cost more than the look. A forked process makes its own."""
    return ThreadPoolExecutor(_REQUESTS_AT_ONCE, thread_name_prefix=_REQUEST_THREAD)


def table_names(lake: LakeSettings) -> list[str]:
    """The tables in the lake's root."""
    root = TableStorage(lake, "")
    if root.is_local:
        folder = Path(root.uri)
        return sorted(one.parent.name for one in folder.glob("*/_delta_log") if one.is_dir())
    return root.folder_names("")
