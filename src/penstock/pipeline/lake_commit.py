"""The Delta log is the offset ledger: one commit adds files and moves offsets, or does neither.

A commit is a compare-and-set for every partition in it: the ledger must still hold the offset that
the batch was planned from. This is checked against the version on which the commit builds, and the
commit is the next version or none; when another writer has that version, what it did is read, and
everything is checked again. Commits of other partitions do not disturb it. The loser drops its
batch. When the outcome of a commit is unknown, the log is read before anything is tried again.
Nothing here depends on a clock, a lease or other processes.

For a batch only the log is read (`table_log`), never the list of files. Methods that need the list
say so: they take time and memory with every file of the table.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from penstock.model import TopicPartition
from penstock.pipeline.batch import Claim, epoch_ids, leader_epoch_id, stored_epoch
from penstock.pipeline.commit_watch import UNWATCHED, CommitWatch
from penstock.pipeline.failures import LakeRefusedError
from penstock.pipeline.ledger_moves import (
    FilesReplacedError,
    LedgerMove,
    StaleLedgerError,
    all_are_in,
    stored_claim,
)
from penstock.pipeline.log_commit import NextEntry, commit_entry, entry_for, is_committed
from penstock.pipeline.log_entries import (
    BATCH_KEY,
    LogNotUnderstoodError,
    RemovedFile,
    added_files_entry,
)
from penstock.pipeline.replaced_files import EntriesGoneError, SeenFiles
from penstock.pipeline.table_files import active_files, has_deletion_vectors
from penstock.pipeline.table_reading import TableReading
from penstock.pipeline.table_schema import ColumnsToWrite, create_table, nullable_schema
from penstock.pipeline.table_state import TableState
from penstock.pipeline.written_files import WrittenFile
from penstock.settings.sections import LakeSettings

__all__ = ["RANGES_KEY", "FilesReplacedError", "LakeTable", "LedgerMove", "StaleLedgerError"]

COMMIT_ATTEMPTS = 5
# A commit that replaces files is refused by every commit in between, so it needs more attempts.
REPLACE_ATTEMPTS = 50
RANGES_KEY = "penstockRanges"


class LakeTable(TableReading):
    """One Delta table that batches are committed to."""

    # Tests take deltalake's way instead, which serves logs that are not understood here.
    _puts_entries = True

    def __init__(
        self,
        lake: LakeSettings,
        name: str,
        *,
        has_fences: bool = False,
        on_commit: Callable[[str, int], None] | None = None,
        watch: CommitWatch = UNWATCHED,
    ) -> None:
        """`on_commit` is called with the table's name and the version of each commit."""
        super().__init__(lake, name)
        self._lake = lake
        self._on_commit = on_commit
        self._watch = watch
        self._columns = ColumnsToWrite(name)
        # Claims this process has committed under. Another writer's commit would move the offset,
        # so while the offset is ours the epoch is too, and is not looked up or written again.
        self._claims: dict[str, Claim] = {}
        # A fence moves an epoch without the offset: where there are fences, epochs are looked up.
        self._has_fences = has_fences

    @property
    def commit_round_s(self) -> float:
        """How long all writers of the table need to commit once; 0 if it is not known."""
        with self._lock:
            return self._log.round.seconds

    def drop_uncommitted(self, folder: str) -> None:
        """Remove a batch's files, unless a version names them."""
        named = self.snapshot([]).known_files
        found = self.storage.files_below(folder)
        self.storage.delete_files(file.path for file in found if file.path not in named)

    def has_claimed(self, application_id: str, claim: Claim) -> bool:
        """Whether this process has committed under the claim."""
        with self._lock:
            return self._claims.get(application_id) == claim

    def require_current(self, moves: Sequence[LedgerMove]) -> None:
        """Raise if the ledger no longer holds what these moves expect."""
        with self._lock:
            state = self._state()
            if state is not None:
                self._require_current(state, moves)
            elif any(move.expected is not None for move in moves):
                self._require_state()

    def are_outdated(self, moves: Sequence[LedgerMove]) -> bool:
        """Whether a later epoch has taken one of these partitions."""
        with self._lock:
            state = self._require_state()
            return any(self._is_outdated(state, move) for move in moves)

    def open_for(self, schema_json: str, partition_by: Sequence[str]) -> None:
        """Make the table if it does not exist; add the columns that it lacks."""
        failed: Exception | None = None
        with self._lock:
            known = self._known
            if known is not None and self._columns.is_opened(known, schema_json, partition_by):
                return
            for _ in range(COMMIT_ATTEMPTS):
                state = self._state() or self._create(schema_json, partition_by)
                try:
                    if self._columns.to_add(state, schema_json, partition_by):
                        self._add_columns(schema_json, partition_by)
                except (DeltaError, OSError) as error:
                    failed = error  # another writer may have added columns: look again
                    continue
                self._columns.opened(schema_json, partition_by)
                return
        raise self._refused(failed) from failed

    def _add_columns(self, schema_json: str, partition_by: Sequence[str]) -> None:
        """Reads the list of files, as deltalake does it; columns come rarely."""
        table = self._require_files()
        state = self._files.state_of(table)
        missing = self._columns.to_add(state, schema_json, partition_by)
        if missing:
            table.alter.add_columns(missing)
        self._files.release()

    def columns_to_add(self, schema_json: str, partition_by: Sequence[str]) -> list[str] | None:
        """What `open_for` would add; None if it would make the table. Changes nothing."""
        with self._lock:
            state = self._state()
            if state is None:
                return None
            return [one.name for one in self._columns.to_add(state, schema_json, partition_by)]

    def _create(self, schema_json: str, partition_by: Sequence[str]) -> TableState:
        try:
            create_table(self._lake, self.storage, nullable_schema(schema_json), partition_by)
        except (DeltaError, OSError) as error:
            if self._state() is None:  # another writer may have been quicker
                raise self._refused(error) from error
        state = self._state()
        if state is None:
            raise LakeRefusedError(f"The table {self.storage.uri} was made and is not there.")
        return state

    def commit(
        self,
        moves: Sequence[LedgerMove],
        files: Sequence[WrittenFile],
        *,
        batch: str,
        notes: Mapping[str, Any] | None = None,
        removed: Sequence[RemovedFile] = (),
        seen: SeenFiles | None = None,
    ) -> int:
        """Add the files, remove the replaced ones and move the ledger; or raise. The new version.

        Removed files must all be active at the version the commit builds on: deltalake does not
        check this against other commits that change no data (two of its own compactions double
        the rows). Such a commit therefore builds on exactly one version and is never rebased. It
        reads the list of files, unless it is said where they were `seen`.
        """
        with self._lock:
            if self._puts_entries and (seen is not None or not removed):
                version = self._commit_entry(moves, files, batch, notes or {}, removed, seen)
            else:
                version = self._commit_by_deltalake(moves, removed, files, batch, notes or {})
            self._claims |= {one.application_id: one.claim for one in moves if one.claim}
        self._watch.committed(self.name, version, self._log.entries_up_to(version))
        if self._on_commit is not None:
            self._on_commit(self.name, version)
        return version

    def _commit_entry(
        self,
        moves: Sequence[LedgerMove],
        files: Sequence[WrittenFile],
        batch: str,
        notes: Mapping[str, Any],
        removed: Sequence[RemovedFile],
        seen: SeenFiles | None,
    ) -> int:
        """By an entry of our own, without the list of files."""
        at_ms = time.time_ns() // 1_000_000

        def entry_after(found: TableState | None) -> NextEntry:
            state = self._require_there(found)
            self._require_current(state, moves)
            self._require_untouched(state, removed, seen)
            self._columns.require_fit(state)
            content = added_files_entry(
                files,
                self._transactions(state, moves),
                partition_by=state.metadata.partition_columns,
                batch=batch,
                notes=notes,
                at_ms=at_ms,
                removed=removed,
            )
            return NextEntry(state.version + 1, content, moves)

        try:
            with entry_for(self.storage) as waiting:
                return commit_entry(self._log, waiting, batch, entry_after, self._met_another)
        except (LogNotUnderstoodError, EntriesGoneError):
            return self._commit_by_deltalake(moves, removed, files, batch, notes)
        except OSError as error:
            raise self._refused(error) from error

    def _commit_by_deltalake(
        self,
        moves: Sequence[LedgerMove],
        removed: Sequence[RemovedFile],
        files: Sequence[WrittenFile],
        batch: str,
        notes: Mapping[str, Any],
    ) -> int:
        """With the list of files: by an unusual log."""
        added = [_add_action(file, changes_data=not removed) for file in files]
        failed: Exception | None = None
        base = -1
        for _ in range(REPLACE_ATTEMPTS if removed else COMMIT_ATTEMPTS):
            table = self._require_files()
            state = self._files.state_of(table)
            if failed is not None and self._is_committed(moves, batch, base, state):
                return state.version
            self._require_current(state, moves)
            self._require_active(table, state, removed)
            self._columns.require_fit(state)
            base = state.version
            try:
                table.create_write_transaction(
                    [*map(_remove_action, removed), *added],
                    "append",
                    table.schema(),
                    partition_by=list(state.metadata.partition_columns) or None,
                    commit_properties=CommitProperties(
                        custom_metadata={BATCH_KEY: batch, **notes},
                        max_commit_retries=0 if removed else None,
                        app_transactions=[
                            Transaction(*one) for one in self._transactions(state, moves)
                        ],
                    ),
                    # Checkpoints are made in another process, see checkpoints.py.
                    post_commithook_properties=PostCommitHookProperties(
                        create_checkpoint=False, cleanup_expired_logs=False
                    ),
                )
            except (CommitFailedError, DeltaError, OSError) as error:
                failed = error
                if isinstance(error, CommitFailedError):
                    self._met_another()
                continue  # it may have committed: the next attempt reads the log first
            self._require_in_force(moves, base)
            return base + 1
        state = self._files.state_of(self._require_files())
        if failed is not None and self._is_committed(moves, batch, base, state):
            return state.version
        raise self._refused(failed) from failed

    def _met_another(self) -> None:
        self._watch.conflicted(self.name)

    def _require_in_force(self, moves: Sequence[LedgerMove], base: int) -> None:
        """As `_stands` in log_commit.py, for a commit of deltalake after the version `base`."""
        if (self._log.checkpoint_version() or 0) > base and moves:
            self._log.forget()
            if not all_are_in(self._require_state().transactions, moves):
                raise LakeRefusedError(
                    f"The log of table {self.storage.uri} was cleaned up during a commit.",
                    remedy="The batch is tried again. Set a longer delta.logRetentionDuration.",
                )

    def _is_committed(
        self, moves: Sequence[LedgerMove], batch: str, base: int, state: TableState
    ) -> bool:
        try:
            return is_committed(self._log, moves, batch, base + 1, state)
        except (LogNotUnderstoodError, OSError) as error:
            raise self._refused(error) from error

    def _require_current(self, state: TableState, moves: Sequence[LedgerMove]) -> None:
        """The compare of compare-and-set: every entry holds what the batch was planned from."""
        stale: dict[TopicPartition, int | None] = {}
        for move in moves:
            stored = state.transactions.get(move.application_id)
            if not move.is_allowed(stored) or self._is_outdated(state, move):
                stale[move.partition] = stored
        if stale:
            raise StaleLedgerError(self.name, stale)

    def _require_untouched(
        self, state: TableState, removed: Sequence[RemovedFile], seen: SeenFiles | None
    ) -> None:
        """As `_require_active`, by the entries since the files were seen."""
        if removed and seen is not None:
            seen.require_untouched(self.storage, state, [unquote(one.log_path) for one in removed])

    def _require_active(
        self, table: DeltaTable, state: TableState, removed: Sequence[RemovedFile]
    ) -> None:
        """Raise if a file to be replaced is no longer part of the table, or not as a whole."""
        if not removed:
            return
        if has_deletion_vectors(state):
            raise FilesReplacedError(f"The table {self.name} now has deletion vectors.")
        named = {file.path for file in active_files(table)}
        gone = {unquote(one.log_path) for one in removed} - named
        if gone:
            raise FilesReplacedError(
                f"Another writer has replaced or deleted {len(gone)} files of table {self.name}."
            )

    def _is_outdated(self, state: TableState, move: LedgerMove) -> bool:
        claim = move.claim
        is_known = not self._has_fences and self._claims.get(move.application_id) == claim
        if claim is None or is_known:
            return False
        last = stored_claim(state.transactions, move.application_id, claim.authority)
        return move.is_outdated(last)

    def _transactions(
        self, state: TableState, moves: Sequence[LedgerMove]
    ) -> list[tuple[str, int]]:
        """Offsets, and the epochs that have changed."""
        entries = [(move.application_id, move.next_offset) for move in moves]
        for move in moves:
            name, epoch = leader_epoch_id(move.application_id), stored_epoch(move.leader_epoch)
            if epoch != (state.transactions.get(name) or 0):
                entries.append((name, epoch))
        return entries + [entry for move in moves for entry in self._claim_entries(state, move)]

    def _claim_entries(self, state: TableState, move: LedgerMove) -> list[tuple[str, int]]:
        """The epoch is written by the first commit under a claim, and stays in the ledger."""
        claim = move.claim
        if claim is None or self._claims.get(move.application_id) == claim:
            return []
        if stored_claim(state.transactions, move.application_id, claim.authority) == claim.epoch:
            return []
        names = epoch_ids(move.application_id, claim.authority)
        parts = (claim.epoch.controller_epoch, claim.epoch.number)
        return list(zip(names, parts, strict=True))


def _remove_action(file: RemovedFile) -> RemoveAction:
    return RemoveAction(
        unquote(file.log_path),
        False,
        file.removed_at_ms,
        file.size_bytes,
        dict(file.partition_values),
    )


def _add_action(file: WrittenFile, *, changes_data: bool) -> AddAction:
    return AddAction(
        path=file.path,
        size=file.size_bytes,
        partition_values=dict(file.partition_values),
        modification_time=file.modified_at_ms,
        data_change=changes_data,
        stats=file.stats,
    )
