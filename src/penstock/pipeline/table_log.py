"""Reads a table's state from its log: ledger, columns and protocol, without the list of files.

A consumer on a table of a million files needs no more memory and no more time than on an empty
one. The first look reads the newest checkpoint (three of its columns) and the entries after it;
later ones read only the entries that are new, by asking for the next version until there is none.

What is not understood here (a damaged log, a checkpoint of version 2) is left to deltalake, so
that such a table is served, or refused, as that library does it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from penstock.pipeline.checkpoint_files import (
    CheckpointPlace,
    hinted_checkpoint,
    hinted_version,
    newest_checkpoint,
    read_checkpoint,
)
from penstock.pipeline.commit_round import CommitRound
from penstock.pipeline.log_entries import (
    LogEntry,
    LogNotUnderstoodError,
    entry_path,
    parse_entry,
)
from penstock.pipeline.recent_batches import RecentBatches
from penstock.pipeline.storage import FileMark, TableStorage
from penstock.pipeline.table_state import TableMetadata, TableProtocol, TableState

_LOG = "_delta_log"
_ENTRY = re.compile(r"(\d{20})\.json")
# A log without a checkpoint may have any number of entries: they are not held together.
_ENTRIES_AT_ONCE = 1000
# Entries of a log in an object store that are asked for together, at most.
ENTRIES_SIDE_BY_SIDE = 8
# The log may be cleaned up or the table replaced while it is read: then it is read again.
LOADS_MAX = 5


@dataclass(frozen=True, slots=True)
class _Anchor:
    """A file that shows that the log is still the one whose state we hold."""

    path: str
    mark: FileMark | None


@dataclass(frozen=True, slots=True)
class _Progress:
    """The state after some entries; protocol and columns may still be to come."""

    version: int
    anchor: _Anchor
    protocol: TableProtocol | None = None
    metadata: TableMetadata | None = None
    transactions: Mapping[str, int] = field(default_factory=dict)

    def after(self, entries: list[LogEntry], anchor: _Anchor) -> "_Progress":
        """With these entries, the last of which is in the anchor's file."""
        protocol, metadata = self.protocol, self.metadata
        transactions = dict(self.transactions)
        for entry in entries:
            protocol = entry.protocol or protocol
            metadata = entry.metadata or metadata
            transactions |= entry.transactions
        version = self.version + len(entries)
        return _Progress(version, anchor, protocol, metadata, transactions)

    def state(self) -> TableState:
        if self.protocol is None or self.metadata is None:
            raise LogNotUnderstoodError("the log has no protocol or no metadata")
        return TableState(self.version, self.protocol, self.metadata, self.transactions)


@dataclass(frozen=True, slots=True)
class _Start:
    """From where the log is read on, and which version it must at least reach."""

    progress: _Progress
    reaches: int


class _ChangedMeanwhileError(Exception):
    """The log was cleaned up or replaced while it was read."""


class TableLog:
    """The state of one table, from version to version."""

    def __init__(self, storage: TableStorage) -> None:
        self._storage = storage
        self._held: _Progress | None = None
        # The version of the newest checkpoint, when it was looked up last.
        self._checkpointed: int | None = None
        # A version that somebody has seen, or says so.
        self._expected = -1
        # Of entries that were read lately: whose they are.
        self._batches = RecentBatches()
        self.round = CommitRound()

    def newest(self, *, known: int | None = None) -> TableState | None:
        """The newest version; None if there is no table. Raises LogNotUnderstoodError.

        Who knows that the version `known` is there, and wants to put the next one, does not ask
        whether that is taken: putting it tells.
        """
        held, self._held = self._held, None  # whatever fails, the next look begins anew
        progress = None if held is None else self._caught_up(held, self._note, known)
        if progress is None:
            self._batches.clear()
            progress = self._load()
        if progress is None:
            return None
        state = progress.state()
        self._held = progress
        return state

    def _note(self, version: int, entry: LogEntry) -> None:
        """An entry is new: another writer's, or our own."""
        self.round.seen(entry.batch, entry.together)
        self._batches.note(version, entry.names)

    def forget(self) -> None:
        """Read everything again at the next look."""
        self._held = None
        self._batches.clear()

    def expect(self, version: int) -> None:
        """The log may reach this version: up to there entries are asked for side by side.

        Nothing is believed. If it is not there, the next look asks for some entries in vain.
        """
        self._expected = version

    def entry(self, version: int) -> LogEntry | None:
        """What the log has at this version now; None if nothing. Raises LogNotUnderstoodError.

        The held state stays what it is. An entry that is later than a state which was the newest is
        part of the table: it could only be left out if the log had gone on beyond it before.
        """
        found = self._storage.read_marked(entry_path(version))
        return None if found is None else parse_entry(found[0])

    def is_newest(self, version: int) -> bool:
        """Whether the held state is of this version, and the log is still the one it is from."""
        held = self._held
        if held is None or held.version != version or held.anchor.mark is None:
            return False
        # Not by its time: an entry of ours is taken back when this says no, and must not be only
        # because somebody touched a file.
        return held.anchor.mark.is_same_file(self._storage.mark_of(held.anchor.path))

    def committed(self, version: int, content: bytes, mark: FileMark) -> None:
        """Take over an entry that this process has put after the held version, unread."""
        held = self._held
        if held is None or held.version + 1 != version:
            self._held = None
            return
        entry = parse_entry(content)
        self._note(version, entry)
        self._held = held.after([entry], _Anchor(entry_path(version), mark))

    def checkpoint_version(self) -> int | None:
        """The version of the newest checkpoint, as the log's hint says."""
        self._checkpointed = hinted_version(self._storage)
        return self._checkpointed

    def after_put(self, version: int) -> tuple[int | None, bool]:
        """The newest checkpoint, and whether the held state is still the one before this version.

        Both are looked at when the version has been put, in an object store side by side: what
        would take it out of the table happened before that, so no order is needed.
        """
        looks: list[Callable[[], int | None]]
        looks = [self.checkpoint_version, lambda: self.is_newest(version - 1)]
        checkpointed, is_next = self._storage.for_each(lambda look: look(), looks)
        return checkpointed, bool(is_next)

    def entries_up_to(self, version: int) -> int:
        """How many entries a reader of this version reads after the newest checkpoint we saw."""
        return version - (-1 if self._checkpointed is None else self._checkpointed)

    def holds_batch(self, batch: str, *, since: int, until: int) -> bool | None:
        """Whether an entry from `since` on has this batch; None when one was cleaned away."""
        for version in range(since, until + 1):
            names = self._batches.of(version)
            if names is None:
                found = self._storage.read_marked(entry_path(version))
                if found is None:
                    return None
                names = parse_entry(found[0]).names
            if batch in names:
                return True
        return False

    def _caught_up(
        self,
        progress: _Progress,
        note: Callable[[int, LogEntry], None] = lambda *_: None,
        known: int | None = None,
    ) -> _Progress | None:
        """With all entries that came since; None if the log is no longer the one that was read.

        The anchor is looked at after the entries were read: a table that is deleted and made
        again has new files, so entries of the new one are never put on top of the old one.
        `note` is told each entry.
        """
        newest, entries = progress, list[LogEntry]()
        for version, content, mark in self._entries_after(progress.version, known):
            entries.append(parse_entry(content))
            note(version, entries[-1])
            anchor = _Anchor(entry_path(version), mark)
            if len(entries) == _ENTRIES_AT_ONCE:
                newest, entries = newest.after(entries, anchor), []
        if entries:
            newest = newest.after(entries, anchor)
        return newest if self._is_there(progress.anchor) else None

    def _entries_after(
        self, version: int, known: int | None
    ) -> Iterator[tuple[int, bytes, FileMark]]:
        """Until one is not there. In an object store several are asked for at once.

        Those up to an expected version, and then one, two, four, ...: many writers make many
        entries, and what is asked for in vain costs as much as what is there.
        """
        end = None if known is None or known <= version else known + 1
        next_version, at_once = version + 1, 1
        expected = self._expected if known is None else known
        while end is None or next_version < end:
            wanted = at_once
            if expected >= next_version:
                wanted = min(expected + 1 - next_version, ENTRIES_SIDE_BY_SIDE)
            elif not self._storage.is_local:
                at_once = min(2 * at_once, ENTRIES_SIDE_BY_SIDE)
            stop = next_version + wanted
            asked = range(next_version, stop if end is None else min(stop, end))
            found = self._storage.for_each(self._storage.read_marked, map(entry_path, asked))
            for number, one in zip(asked, found, strict=True):
                if one is None:
                    return
                yield number, *one
            next_version = asked.stop

    def _is_there(self, anchor: _Anchor) -> bool:
        return anchor.mark is not None and self._storage.mark_of(anchor.path) == anchor.mark

    def _load(self) -> _Progress | None:
        for _ in range(LOADS_MAX):
            try:
                start = self._from_hint() or self._from_listing()
            except _ChangedMeanwhileError:
                continue
            if start is None:
                return None
            progress = self._caught_up(start.progress)
            if progress is not None and progress.version >= start.reaches:
                return progress
        raise LogNotUnderstoodError("the log has a gap, or changes faster than it can be read")

    def _from_hint(self) -> _Start | None:
        """Begin at the checkpoint that `_last_checkpoint` names, unless it is wrong or missing.

        The entry of the checkpoint's own version is the newest that clean-up may not remove. If
        it is gone, there is a later checkpoint, and the hint is old.
        """
        place = hinted_checkpoint(self._storage)
        if place is None or self._storage.mark_of(entry_path(place.version)) is None:
            return None
        try:
            return self._from_checkpoint(place, place.version)
        except _ChangedMeanwhileError:
            return None  # the hint names files that are not there

    def _from_listing(self) -> _Start | None:
        names = self._storage.file_names(_LOG)
        versions = [int(found[1]) for name in names if (found := _ENTRY.fullmatch(name))]
        place = newest_checkpoint(names)
        if place is not None:
            return self._from_checkpoint(place, max([place.version, *versions]))
        if not versions:
            return None
        if min(versions) > 0:
            raise LogNotUnderstoodError("the log begins without a checkpoint")
        return _Start(_Progress(-1, self._anchor(entry_path(0))), max(versions))

    def _from_checkpoint(self, place: CheckpointPlace, reaches: int) -> _Start:
        # Looked at before anything is read, so that a table that is replaced meanwhile shows. The
        # entry outlives the checkpoint, which clean-up removes when there is a later one.
        anchor = self._anchor(entry_path(place.version))
        if anchor.mark is None:
            anchor = self._anchor(place.paths()[0])
        try:
            content = read_checkpoint(self._storage, place)
        except FileNotFoundError as error:
            raise _ChangedMeanwhileError from error
        progress = _Progress(
            place.version, anchor, content.protocol, content.metadata, content.transactions
        )
        return _Start(progress, reaches)

    def _anchor(self, path: str) -> _Anchor:
        return _Anchor(path, self._storage.mark_of(path))
