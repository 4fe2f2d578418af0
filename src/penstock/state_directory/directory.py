"""The state directory on disk: one holder, an atomically replaced state file, no links followed.

The lock is the kernel's (`flock`), so it ends with its holder, even if that is killed. A new state
is written beside the old one, made durable and renamed over it: a crash leaves one of the two.
"""

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from penstock.errors import PenstockError
from penstock.state_directory.state_file import (
    STATE_BYTES_MAX,
    BrokenState,
    decode_state,
    encode_state,
)

LOCK_NAME = "lock"
STATE_NAME = "state"
_PARTIAL_NAME = "state.partial"
_LOOK_AGAIN_S = 0.1
_HOLDER_BYTES_MAX = 500
_ENDING = "ending"


class DirectoryTakenError(PenstockError):
    """Another process holds the directory; `holder` is what it says about itself."""

    def __init__(self, path: Path, holder: str, *, remedy: str) -> None:
        super().__init__(
            f"The state directory {path} is held by another process ({holder}).", remedy=remedy
        )
        self.holder = holder


@dataclass(frozen=True, slots=True)
class DirectoryHolder:
    """What the holder of a directory says about itself."""

    name: str
    is_ending: bool


def holder_of(path: Path) -> DirectoryHolder | None:
    """Who holds the directory; None while nobody does."""
    try:
        lock = os.open(path / LOCK_NAME, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _told_in(lock)
    finally:
        os.close(lock)
    return None


def _told_in(lock: int) -> DirectoryHolder:
    name, _, more = os.pread(lock, _HOLDER_BYTES_MAX, 0).decode(errors="replace").partition("\n")
    return DirectoryHolder(name.strip() or "unknown", is_ending=more.startswith(_ENDING))


class StateDirectory:
    """Held from `open` to `close`. An unusable directory keeps nothing and sets `unusable`."""

    def __init__(
        self,
        path: Path,
        owner: str,
        *,
        wait_s: float = 0.0,
        is_given_up: Callable[[], bool] = lambda: False,
        holder: str = "",
        remedy: str = "Each consumer needs its own id and its own state directory.",
    ) -> None:
        """`wait_s` is how long to wait for a holder that is about to end.

        `holder` is what others are told about this one, `remedy` what this one is told about
        another.
        """
        self.path = path
        self._owner = owner
        self._wait_s = wait_s
        self._is_given_up = is_given_up
        self._holder = holder or f"process {os.getpid()}"
        self._remedy = remedy
        self._folder: int | None = None
        self._lock: int | None = None
        # Why the directory is unusable; None while it is usable.
        self.unusable: str | None = None

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Create and lock it. Only a running holder is an error; other faults set `unusable`."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
            self._lock = os.open(LOCK_NAME, flags, 0o600, dir_fd=self._folder)
        except OSError as error:
            self.unusable = f"{self.path}: {error.strerror}"
            self.close()
            return
        if not self._is_ours(self._lock):
            holder = _told_in(self._lock).name
            self.close()
            raise DirectoryTakenError(self.path, holder, remedy=self._remedy)
        self._tell("")

    def say_ending(self) -> None:
        """Tell others that this holder is about to end. It holds the directory until `close`."""
        self._tell(f"{_ENDING}\n")

    def _tell(self, more: str) -> None:
        if self._lock is None:
            return
        first = self._holder.encode()[: _HOLDER_BYTES_MAX - len(more) - 1]
        with contextlib.suppress(OSError):  # only information for people
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, first + f"\n{more}".encode(), 0)

    def _is_ours(self, lock: int) -> bool:
        """Take the lock; wait up to `wait_s` for a holder that is about to end."""
        deadline_s = time.monotonic() + self._wait_s
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline_s or self._is_given_up():
                    return False
                time.sleep(_LOOK_AGAIN_S)  # a blocking lock could not be cancelled
            else:
                return True

    def close(self) -> None:
        for descriptor in (self._lock, self._folder):
            if descriptor is not None:
                os.close(descriptor)
        self._lock = self._folder = None

    def read(self) -> dict[str, Any] | BrokenState | None:
        """The state of the previous run; None when there is none."""
        if self._folder is None:
            return BrokenState(self.unusable or "the directory is not open")
        try:
            # Opening a pipe must not wait for its writer.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            descriptor = os.open(STATE_NAME, flags, dir_fd=self._folder)
        except FileNotFoundError:
            return None
        except OSError as error:
            return BrokenState(f"it cannot be opened: {error.strerror}")
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return BrokenState("it is not a plain file")
            data = os.read(descriptor, STATE_BYTES_MAX + 1)
        except OSError as error:
            return BrokenState(f"it cannot be read: {error.strerror}")
        finally:
            os.close(descriptor)
        return decode_state(self._owner, data)

    def write(self, content: Mapping[str, Any]) -> bool:
        """Replace the state; False (with `unusable` set) if it cannot be written."""
        if self._folder is None:
            return False
        try:
            self._replace(encode_state(self._owner, content))
        except OSError as error:
            self.unusable = f"{self.path}: {error.strerror}"
            return False
        self.unusable = None
        return True

    def _replace(self, data: bytes) -> None:
        folder = self._folder
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_PARTIAL_NAME, dir_fd=folder)
        # Exclusive: never write through an existing file or link of this name.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        descriptor = os.open(_PARTIAL_NAME, flags, 0o600, dir_fd=folder)
        with os.fdopen(descriptor, "wb") as partial:
            partial.write(data)
            partial.flush()
            os.fsync(partial.fileno())
        os.rename(_PARTIAL_NAME, STATE_NAME, src_dir_fd=folder, dst_dir_fd=folder)
        if folder is not None:
            os.fsync(folder)
