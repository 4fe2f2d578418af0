"""One bucket, or a folder of one, by paths from there.

The library behind it is obstore, the same Rust code that deltalake has inside, so one set of
options serves both. Credentials come from the environment of the process.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any

import obstore
from obstore.exceptions import BaseError, UnknownConfigurationKeyError
from obstore.store import AzureStore, GCSStore, S3Store

from penstock.object_store.limits import (
    RETRIES_MAX,
    RETRY_S_MAX,
    TIME_LIMITS,
    ObjectStoreError,
)
from penstock.object_store.streams import ObjectReader, ObjectWriter, errors_of

_CLIENTS_KEPT = 8
# More than any footer of ours, so that one request brings it.
_TAIL_BYTES = 64 * 2**10
_S3_SCHEMES = ("s3", "s3a")
_AZURE_SCHEMES = ("az", "abfs", "abfss")


@dataclass(frozen=True, slots=True)
class StoredObject:
    path: str
    size_bytes: int
    modified_at_ms: int
    # It changes with the content; empty if the store gives none.
    e_tag: str


class ObjectStore:
    def __init__(self, root: str, options: Mapping[str, str]) -> None:
        """`root` is a URL such as `s3://bucket/folder`."""
        scheme, _, rest = root.partition("://")
        bucket, _, folder = rest.partition("/")
        self._folder = folder.strip("/")
        self._is_s3 = scheme in _S3_SCHEMES
        self._client = _client(scheme, bucket, tuple(sorted(options.items())), os.getpid())

    def read(self, path: str) -> tuple[bytes, StoredObject]:
        """The whole object; raises FileNotFoundError."""
        with errors_of("read", path):
            found = obstore.get(self._client, self._key(path))
            return bytes(found.bytes()), self._described(found.meta)

    def open_reader(self, path: str) -> ObjectReader:
        """An object to read parts of; its end is fetched at once. Raises FileNotFoundError."""
        key = self._key(path)
        with errors_of("read", path):
            found = obstore.get(self._client, key, options={"range": {"suffix": _TAIL_BYTES}})
            size_bytes, tail = int(found.meta["size"]), bytes(found.bytes())

        def read_range(start: int, end: int) -> bytes:
            with errors_of("read", path):
                return bytes(obstore.get_range(self._client, key, start=start, end=end))

        return ObjectReader(size_bytes, tail, read_range)

    def look_at(self, path: str) -> StoredObject | None:
        """What the store says of an object; None if there is none."""
        with errors_of("look at", path):
            try:
                return self._described(obstore.head(self._client, self._key(path)))
            except FileNotFoundError:
                return None

    def objects_below(self, path: str) -> Iterator[StoredObject]:
        """Every object whose path begins with this folder."""
        with errors_of("list", path):
            for some in obstore.list(self._client, self._key(path) or None):
                yield from map(self._described, some)

    def in_folder(self, path: str) -> tuple[list[str], list[StoredObject]]:
        """The names of folders right below a folder, and the objects there."""
        with errors_of("list", path):
            found = obstore.list_with_delimiter(self._client, self._key(path) or None)
        folders = [str(one).rstrip("/").rpartition("/")[2] for one in found["common_prefixes"]]
        return sorted(folders), [self._described(one) for one in found["objects"]]

    def create(self, path: str, content: bytes) -> StoredObject | None:
        """Put an object where none is; raises FileExistsError.

        None if the store does not say by what the new object is known. After a lost answer the
        client may ask again, so the object that exists already may be this one.
        """
        with errors_of("create", path):
            done = obstore.put(self._client, self._key(path), content, mode="create")
        e_tag = done["e_tag"]
        return StoredObject(path, len(content), 0, e_tag) if e_tag else None

    def open_writer(self, path: str) -> ObjectWriter:
        """An object that is there as a whole when it is finished; in parts where it is large."""
        return ObjectWriter(self._client, self._key(path))

    def delete(self, paths: Iterable[str]) -> None:
        """Remove objects; one that is already gone is no error."""
        keys = [self._key(path) for path in sorted(paths)]
        if not keys:
            return
        with errors_of("delete", keys[0]):
            if self._is_s3:
                obstore.delete(self._client, keys)
                return
            for key in keys:
                with suppress(FileNotFoundError):
                    obstore.delete(self._client, key)

    def _key(self, path: str) -> str:
        return f"{self._folder}/{path}".strip("/")

    def _described(self, meta: Mapping[str, Any]) -> StoredObject:
        path = str(meta["path"])
        if self._folder:
            path = path.removeprefix(self._folder).lstrip("/")
        modified_at_ms = int(meta["last_modified"].timestamp() * 1000)
        return StoredObject(path, int(meta["size"]), modified_at_ms, meta["e_tag"] or "")


@lru_cache(_CLIENTS_KEPT)
def _client(scheme: str, bucket: str, options: Sequence[tuple[str, str]], _process: int) -> Any:
    """All tables of a process share the connections; a forked process makes its own."""
    kind: Any = GCSStore
    if scheme in _S3_SCHEMES:
        kind = S3Store
    elif scheme in _AZURE_SCHEMES:
        kind = AzureStore
    elif scheme != "gs":
        raise ObjectStoreError(f"{scheme}://{bucket} is not an object store that is known here")
    container, _, account = bucket.partition("@")
    known = {name.lower(): value for name, value in options if _is_known(kind, name, value)}
    if account:
        known["azure_storage_account_name"] = account.partition(".")[0]
    retry = {"max_retries": RETRIES_MAX, "retry_timeout": timedelta(seconds=RETRY_S_MAX)}
    with errors_of("open", bucket):
        return kind(container, config={**TIME_LIMITS, **known}, retry_config=retry)


def _is_known(kind: Any, name: str, value: str) -> bool:
    """Options of deltalake alone, such as its lock provider, are left to it."""
    try:
        kind("bucket", config={name: value})
    except UnknownConfigurationKeyError:
        return False
    except BaseError:
        return True  # it lacks the others
    return True
