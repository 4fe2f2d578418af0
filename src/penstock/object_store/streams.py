"""An object as a file, for libraries that read or write one: Arrow's Parquet."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError

from penstock.object_store.limits import ObjectStoreError

# S3 takes parts from 5 MiB on. What is smaller than one part is put at once.
PART_BYTES = 8 * 2**20
# Parts that are under way while the next one is filled.
PARTS_AT_ONCE = 3


@contextmanager
def errors_of(what: str, path: str) -> Iterator[None]:
    """Errors of the library as an OSError of one line; after that it quotes all its values."""
    try:
        yield
    except AlreadyExistsError as error:
        raise FileExistsError(f"{path} exists already") from error
    except (FileNotFoundError, ObjectStoreError):
        raise
    except (BaseError, OSError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ObjectStoreError(f"the object store did not {what} {path}: {reason}") from error


class ObjectReader(io.RawIOBase):
    """Reads parts of an object, each by a request; its end is known from the beginning."""

    def __init__(
        self, size_bytes: int, tail: bytes, read_range: Callable[[int, int], bytes]
    ) -> None:
        super().__init__()
        self._size = size_bytes
        self._tail = tail
        self._read_range = read_range
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, begin + offset)
        return self._at

    def read(self, size: int | None = -1, /) -> bytes:
        start = min(self._at, self._size)
        end = self._size if size is None or size < 0 else min(start + size, self._size)
        self._at = end
        tail_start = self._size - len(self._tail)
        if start >= tail_start:
            return self._tail[start - tail_start : end - tail_start]
        return self._read_range(start, end)

    def readall(self) -> bytes:
        return self.read()


class ObjectWriter:
    """Writes an object from its beginning to its end.

    Nobody sees it before `finish`. Parts that were sent of an object that is given up are thrown
    away by the store's answer to `abandon`, or by its own rule for unfinished uploads.
    """

    # Arrow asks for it.
    closed = False

    def __init__(self, client: Any, key: str) -> None:
        self._key = key
        self._upload: Any = obstore.open_writer(
            client, key, buffer_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if kind is None:
            self.finish()
        else:
            self.abandon()

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        """Add to the object; after it was given up nothing."""
        copied = bytes(content)  # the library sends it later, and the buffer is Arrow's
        if self._upload is not None:
            try:
                with errors_of("write", self._key):
                    self._upload.write(copied)
            except BaseException:
                # The library may have lost what it held: a part must not pass for the whole.
                self._upload = None
                raise
        return len(copied)

    def flush(self) -> None:
        """Only `finish` makes it visible."""

    def close(self) -> None:
        """For Arrow, which closes what it writes to: see `finish`."""

    def finish(self) -> None:
        upload, self._upload = self._upload, None
        if upload is None:
            raise ObjectStoreError(f"{self._key} was given up before")
        with errors_of("write", self._key):
            upload.close()

    def abandon(self) -> None:
        """Throw away what was written; nothing after `finish`."""
        upload, self._upload = self._upload, None
        if upload is not None:
            with errors_of("give up", self._key):
                upload.__exit__(RuntimeError, RuntimeError("given up"), None)
