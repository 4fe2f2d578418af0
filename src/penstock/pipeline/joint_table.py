"""A table to which one writer commits the batches of several, in one entry of the log.

A writer whose table has many others hands its batch to one of them (`HandOver`), which makes one
commit for all that wait (`commit_together`). The compare-and-set for every partition stands in the
log, as for every commit: a batch that the ledger refuses is left out alone, and the others go in.

Whether a batch is in the table is never believed, it is read in the log: the entry names every
batch in it. So an answer only says when to look. A writer that gets none, or is refused, commits by
itself; if the other one was quicker all the same, the ledger refuses this second commit, and the
log has the batch.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.pipeline.commit_key import commit_key
from penstock.pipeline.lake_commit import RANGES_KEY, LakeTable
from penstock.pipeline.ledger_moves import LedgerMove, StaleLedgerError
from penstock.pipeline.log_commit import NextEntry, commit_entry, entry_for, is_committed
from penstock.pipeline.log_entries import BATCHES_KEY, LogNotUnderstoodError, added_files_entry
from penstock.pipeline.table_state import TableState
from penstock.pipeline.written_files import WrittenFile

# Versions between two looks for a checkpoint, where others make the commits.
CHECKPOINT_LOOKS_APART = 20
# What an action says besides a path and statistics, which are what may be long.
_BYTES_PER_ACTION = 150


@dataclass(frozen=True, slots=True)
class BatchToCommit:
    """A batch whose files are written. `ranges` has first offset and end by ledger entry."""

    name: str
    table_mark: str
    moves: tuple[LedgerMove, ...]
    files: tuple[WrittenFile, ...]
    ranges: Mapping[str, tuple[int, int]]

    @property
    def described_bytes(self) -> int:
        """About how much an entry of the log says of it, and so every reader holds."""
        files = sum(len(one.path) + len(one.stats) for one in self.files)
        return files + _BYTES_PER_ACTION * (len(self.files) + len(self.moves) + 1)


@dataclass(frozen=True, slots=True)
class JointCommit:
    """The batches in it, or none: then `version` is the one that refused them."""

    version: int
    committed: frozenset[str]


@dataclass(frozen=True, slots=True)
class Handed:
    """A batch was handed over. The version that may have it, if there was an answer."""

    version: int | None = None


class HandOver(Protocol):
    """Brings a batch to who commits for its table."""

    def hand_over(
        self,
        table: str,
        batch: BatchToCommit,
        writers: frozenset[str],
        key: Callable[[], bytes],
    ) -> Handed | None:
        """Wait for an answer, but not for long; None if the batch was not handed over.

        `writers` are those who write to the table, as `data/<group>/<consumer>-<incarnation>`.
        `key` reads what the batch is signed with, or raises LakeRefusedError.
        """

    def found_committed(self, table: str) -> None:
        """A batch that was handed over is in the log, although the answer did not say so."""

    def last_version(self, table: str) -> int:
        """The newest version that others have named, or -1. Nothing is believed."""


class _NothingToCommitError(Exception):
    """The ledger refuses every batch that is left."""

    def __init__(self, version: int) -> None:
        super().__init__(version)
        self.version = version


class JointTable(LakeTable):
    """One Delta table with many writers."""

    _key = b""
    _hand_over: HandOver | None = None
    # The version at which a checkpoint was last looked for, after a batch was handed over.
    _checkpoint_looked_for = 0

    def require_current(self, moves: Sequence[LedgerMove]) -> None:
        """As every table does; what others have said of the log lets it ask for less in vain."""
        with self._lock:
            if self._hand_over is not None:
                self._log.expect(self._hand_over.last_version(self.name))
            super().require_current(moves)

    def commit_with_others(
        self,
        moves: Sequence[LedgerMove],
        files: Sequence[WrittenFile],
        *,
        batch: str,
        ranges: Mapping[str, tuple[int, int]],
        hand_over: HandOver,
    ) -> int:
        """As `commit`, by another writer if it does so now; else by this one."""
        notes = {RANGES_KEY: {name: list(one) for name, one in ranges.items()}}
        with self._lock:
            known = self._known
            if known is None:
                return self.commit(moves, files, batch=batch, notes=notes)
            self._columns.require_fit(known)
            self._hand_over = hand_over
            writers = self._log.round.writer_names
        offered = BatchToCommit(batch, table_mark(known), tuple(moves), tuple(files), ranges)
        handed = hand_over.hand_over(self.name, offered, writers, self.commit_key)
        if handed is None:
            return self.commit(moves, files, batch=batch, notes=notes)
        if handed.version is None:
            self.forget_key()
        since = known.version + 1
        version = self._found(batch, moves, since, handed)
        if version is not None:
            if handed.version is None:
                hand_over.found_committed(self.name)
            return version
        try:
            return self.commit(moves, files, batch=batch, notes=notes)
        except StaleLedgerError:
            # The one that has the batch may have committed it a moment ago. While that cannot be
            # read, the outcome is not known, and the files must stay.
            try:
                version = self._version_with(batch, moves, since, None)
            except (LogNotUnderstoodError, OSError) as error:
                raise self._refused(error) from error
            if version is None:
                raise
            hand_over.found_committed(self.name)
            return version

    def _found(
        self, batch: str, moves: Sequence[LedgerMove], since: int, handed: Handed
    ) -> int | None:
        """The version that has a batch that was handed over, as far as the log can be read."""
        try:
            version = self._as_answered(batch, moves, since, handed.version)
            if version is None:
                version = self._version_with(batch, moves, since, handed.version)
        except (LogNotUnderstoodError, OSError):
            return None  # the commit finds out
        return version

    def _as_answered(
        self, batch: str, moves: Sequence[LedgerMove], since: int, answered: int | None
    ) -> int | None:
        """The version that an answer names, if its entry has this batch with all its moves.

        That is one request. What else is new is read when the next batch begins, while it writes.
        """
        if answered is None or answered < since:
            return None
        entry = self._log.entry(answered)
        if entry is None or batch not in entry.names:
            return None
        if any(entry.transactions.get(one.application_id) != one.next_offset for one in moves):
            return None
        with self._lock:
            self._note_handed_over(answered, moves)
        self._watch.committed(self.name, answered, self._log.entries_up_to(answered))
        return answered

    def _version_with(
        self, batch: str, moves: Sequence[LedgerMove], since: int, known: int | None
    ) -> int | None:
        """A version that has the batch, which another writer has committed; None if there is none.

        Raises LogNotUnderstoodError or OSError while the log cannot be read.
        """
        with self._lock:
            state = self._log.newest(known=known)
            if not is_committed(self._log, moves, batch, since, state) or state is None:
                return None
            self._known = state
            self._note_handed_over(state.version, moves)
        self._watch.committed(self.name, state.version, self._log.entries_up_to(state.version))
        return state.version

    def _note_handed_over(self, version: int, moves: Sequence[LedgerMove]) -> None:
        """Another one has committed these moves, in this version or one before it."""
        if version >= self._checkpoint_looked_for + CHECKPOINT_LOOKS_APART:
            self._checkpoint_looked_for = version
            self._log.checkpoint_version()
        self._log.round.handed_over()
        self._claims |= {one.application_id: one.claim for one in moves if one.claim}

    def commit_together(self, batches: Sequence[BatchToCommit], *, name: str) -> JointCommit:
        """One commit for all of them that the ledger allows. `name` is of this one commit.

        Raises LakeRefusedError if the lake does not take it, or the outcome is not known.
        """
        at_ms = time.time_ns() // 1_000_000
        allowed: list[BatchToCommit] = []

        def entry_after(found: TableState | None) -> NextEntry:
            state = self._require_there(found)
            allowed[:] = self._allowed(state, batches)
            if not allowed:
                raise _NothingToCommitError(state.version)
            return self._joint_entry(state, allowed, name, at_ms)

        with self._lock:
            try:
                with entry_for(self.storage) as waiting:
                    version = commit_entry(self._log, waiting, name, entry_after, self._met_another)
            except _NothingToCommitError as nothing:
                return JointCommit(nothing.version, frozenset())
            except (LogNotUnderstoodError, OSError) as error:
                raise self._refused(error) from error
        if self._on_commit is not None:
            self._on_commit(self.name, version)
        return JointCommit(version, frozenset(one.name for one in allowed))

    def _allowed(self, state: TableState, batches: Sequence[BatchToCommit]) -> list[BatchToCommit]:
        """Those that the ledger allows at this version; of two that move one entry, the first."""
        mark, moved, allowed = table_mark(state), set[str](), list[BatchToCommit]()
        for batch in batches:
            own = [move.application_id for move in batch.moves]
            if batch.table_mark != mark or len(set(own)) != len(own) or not moved.isdisjoint(own):
                continue
            try:
                self._require_current(state, batch.moves)
            except StaleLedgerError:
                continue
            if batch.moves:
                moved.update(own)
                allowed.append(batch)
        return allowed

    def _joint_entry(
        self, state: TableState, batches: Sequence[BatchToCommit], name: str, at_ms: int
    ) -> NextEntry:
        moves = [move for one in batches for move in one.moves]
        ranges = {entry: list(its) for one in batches for entry, its in one.ranges.items()}
        notes: dict[str, Any] = {BATCHES_KEY: [one.name for one in batches], RANGES_KEY: ranges}
        content = added_files_entry(
            [file for one in batches for file in one.files],
            self._transactions(state, moves),
            partition_by=state.metadata.partition_columns,
            batch=name,
            notes=notes,
            at_ms=at_ms,
        )
        return NextEntry(state.version + 1, content, moves)

    def commit_key(self) -> bytes:
        """What batches for this table are signed with; read once, see `forget_key`."""
        try:
            self._key = self._key or commit_key(self.storage)
        except OSError as error:
            raise self._refused(error) from error
        return self._key

    def forget_key(self) -> None:
        """Read it again: with the table it is made anew."""
        self._key = b""

    def require_there(self) -> None:
        """Raise LakeRefusedError if the table cannot be read by its log."""
        with self._lock:
            try:
                self._require_there(self._log.newest())
            except (LogNotUnderstoodError, OSError) as error:
                raise self._refused(error) from error


def table_mark(state: TableState) -> str:
    """Tells this table, with these columns, properties and rules, from every other.

    A batch is checked against them by who wrote it. If they are others when it is committed, its
    writer must look again.
    """
    metadata, protocol = state.metadata, state.protocol
    text = json.dumps(
        [
            metadata.table_id,
            metadata.schema_json,
            metadata.partition_columns,
            sorted(metadata.configuration.items()),
            [protocol.min_reader_version, protocol.min_writer_version],
            [protocol.reader_features, protocol.writer_features],
        ]
    )
    return hashlib.sha256(text.encode()).hexdigest()[:32]
