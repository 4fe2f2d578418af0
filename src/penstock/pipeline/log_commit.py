"""Puts an entry of ours into the log of a table, only if its version is free.

On a file system the entry is written to a file of another name and then linked to its own. A link
is made whole or not at all and never replaces a file, so of several writers one has the version,
and no reader sees half an entry. In an object store the same is one conditional request
(`If-None-Match: *`). deltalake does both in the same way, and so we and it exclude each other.
"""

import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from penstock.pipeline.ledger_moves import LedgerMove, all_are_in
from penstock.pipeline.log_entries import LogNotUnderstoodError, entry_path
from penstock.pipeline.storage import FileMark, TableStorage
from penstock.pipeline.table_log import TableLog
from penstock.pipeline.table_state import TableState

FAILURES_MAX = 5
# How often other writers may be quicker. Each time one of them has made a commit.
RACES_MAX = 1000
# After more of them in a row this writer may be far behind. Then it reads the log to its end: one
# version for each lost race would never reach writers that together are quicker. Not sooner: in an
# object store with many writers a longer look costs more than a race.
RACES_CLOSE_MAX = 16
# The longest wait after a lost race: a request may have been slow for other reasons.
WAIT_S_MAX = 1.0
# As deltalake once named them: readers of a log pass over names they do not know.
TEMPORARY_PREFIX, TEMPORARY_SUFFIX = "_commit_", ".json.tmp"


class EntryToPut(Protocol):
    """An entry that becomes one of the log's versions, unless it is taken. For one commit."""

    def write(self, content: bytes) -> None:
        """Say what the entry holds."""

    def put_at(self, version: int) -> FileMark | None:
        """Make it this version; None if the version is taken, maybe by this very entry."""

    def take_back(self, version: int, mark: FileMark) -> None:
        """Remove the entry that `put_at` made, unless it is gone."""


class WaitingEntry:
    """An entry beside the log on a file system, ready to become one of its versions.

    The same file is linked again when another writer was quicker, so a lost race costs only the
    reading of what came between.
    """

    def __init__(self, storage: TableStorage) -> None:
        self._storage = storage
        self._content: bytes | None = None
        name = f"{TEMPORARY_PREFIX}{uuid.uuid4()}{TEMPORARY_SUFFIX}"
        self._file = storage.local_path(f"_delta_log/{name}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        # After a kill it stays behind; whoever makes the next checkpoint removes it.
        self._file.unlink(missing_ok=True)

    def write(self, content: bytes) -> None:
        if content == self._content:
            return
        self._content = None
        self._file.unlink(missing_ok=True)
        with self._file.open("xb") as file:
            file.write(content)
            file.flush()
            # Before the link, or a power cut could leave an entry without content, and the table
            # could not be read any more. The folder is not synchronised: a version that a power
            # cut takes back is gone with its offsets, and its records are carried again.
            os.fsync(file.fileno())
        self._content = content

    def put_at(self, version: int) -> FileMark | None:
        """Make it this version; None if another writer has the version."""
        try:
            os.link(self._file, self._storage.local_path(entry_path(version)))
        except FileExistsError:
            return None
        return self._storage.mark_of(entry_path(version))

    def take_back(self, version: int, mark: FileMark) -> None:
        """Remove the entry that `put_at` made, unless it is gone."""
        if self._storage.mark_of(entry_path(version)) == mark:
            self._storage.local_path(entry_path(version)).unlink(missing_ok=True)


class StoredEntry:
    """An entry for a log in an object store, put there by one conditional request.

    The client asks again when it gets no connection or an error of the server. So the version may
    be taken by this very entry: its batch tells whose it is. After a time-out nothing is known, and
    the request may even arrive later, but only while the version is free.
    """

    def __init__(self, storage: TableStorage) -> None:
        self._storage = storage
        self._content = b""

    def write(self, content: bytes) -> None:
        self._content = content

    def put_at(self, version: int) -> FileMark | None:
        return self._storage.put_new(entry_path(version), self._content)

    def take_back(self, version: int, mark: FileMark) -> None:
        if self._storage.mark_of(entry_path(version)) == mark:
            self._storage.delete_files([entry_path(version)])


@dataclass(frozen=True, slots=True)
class NextEntry:
    """What is to be put at which version, and what it does to the ledger."""

    version: int
    content: bytes
    moves: Sequence[LedgerMove]


@contextmanager
def entry_for(storage: TableStorage) -> Iterator[EntryToPut]:
    if storage.is_local:
        with WaitingEntry(storage) as waiting:
            yield waiting
    else:
        yield StoredEntry(storage)


def commit_entry(
    log: TableLog,
    waiting: EntryToPut,
    batch: str,
    entry_after: Callable[[TableState | None], NextEntry],
    on_conflict: Callable[[], None],
) -> int:
    """Commit on top of the newest version; the version that has it.

    `entry_after` makes the entry that follows a state, or raises if none may follow. It is asked
    again after each version that another writer has made meanwhile, and `on_conflict` is called
    each time. Who lost a race waits as long as the attempt took, divided by the races it has lost:
    who lost more often comes first.
    Raises OSError when the storage does not take the entry or the outcome is unknown, and
    LogNotUnderstoodError only before anything was tried.
    """
    failed: OSError = TimeoutError(f"other writers were quicker {RACES_MAX} times")
    failures, taken = 0, 0
    tried: int | None = None
    moves: Sequence[LedgerMove] = ()
    for _ in range(RACES_MAX):
        is_close = 0 < taken <= RACES_CLOSE_MAX
        state = log.newest() if tried is None else _newest(log, tried if is_close else None)
        if tried is not None and is_committed(log, moves, batch, tried, state):
            return tried if state is None else state.version
        if failures == FAILURES_MAX:
            break
        entry = entry_after(state)
        tried, content, moves = entry.version, entry.content, entry.moves
        try:
            waiting.write(content)
            asked_s = time.monotonic()
            mark = waiting.put_at(tried)
        except OSError as error:
            # It may have been put all the same: the log is read before the next attempt.
            failed, failures = error, failures + 1
            continue
        if mark is None:
            on_conflict()
            taken += 1
            time.sleep(min(WAIT_S_MAX, (time.monotonic() - asked_s) / taken))
        elif _stands(log, waiting, tried, mark, moves):
            log.committed(tried, content, mark)
            log.round.took(time.monotonic() - asked_s)
            return tried
    raise failed


def is_committed(
    log: TableLog, moves: Sequence[LedgerMove], batch: str, since: int, state: TableState | None
) -> bool:
    """Whether one of the entries from `since` on is of this batch.

    An entry that was cleaned away cannot be asked any more. Then the ledger tells it: offsets only
    grow, and once they are at or behind those of the batch, all its records are in the table.
    """
    if state is None or (moves and not all_are_in(state.transactions, moves)):
        return False  # no entry need be read for what the ledger says
    found = log.holds_batch(batch, since=since, until=state.version)
    return all_are_in(state.transactions, moves) if found is None else found


def _stands(
    log: TableLog,
    waiting: EntryToPut,
    version: int,
    mark: FileMark,
    moves: Sequence[LedgerMove],
) -> bool:
    """Whether the entry that was put is part of the table; if not, it is removed.

    A free version is not always the next one. If this process stood still for long enough, others
    have gone on and have cleaned up entries that a checkpoint includes, this version among them.
    Or the table was replaced. In both cases the entry would be seen by nobody.
    """
    checkpointed, is_next = log.after_put(version)
    is_covered = (checkpointed or 0) >= version
    if is_next and not is_covered:
        return True
    if not is_covered:
        # The table was replaced: an entry without the one before it would make it unreadable.
        waiting.take_back(version, mark)
    log.forget()
    state = _newest(log)
    if state is not None and all_are_in(state.transactions, moves):
        return True
    waiting.take_back(version, mark)
    return False


def _newest(log: TableLog, known: int | None = None) -> TableState | None:
    try:
        return log.newest(known=known)
    except LogNotUnderstoodError as error:
        raise OSError(f"the log cannot be read after a commit: {error}") from error
