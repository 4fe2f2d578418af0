"""The Delta log is the offset ledger: one commit adds files and moves offsets, or does neither.

A commit is a compare-and-set for every partition in it: the ledger must still hold the offset that
the batch was planned from. This is checked against the version on which the commit builds, and
Delta refuses the commit if one in between touched the same entry; commits of other partitions do
not disturb it. The loser drops its batch. When the outcome of a commit is unknown, the log is read
before anything is tried again. Nothing here depends on a clock, a lease or other processes.
"""

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from penstock.model import Epoch, TopicPartition
from penstock.pipeline.batch import Claim, epoch_ids, leader_epoch_id, stored_epoch
from penstock.pipeline.failures import LakeRefusedError, StaleWriterError, lake_refusal
from penstock.pipeline.ledger_entries import LedgerEntries
from penstock.pipeline.storage import TableStorage
from penstock.pipeline.table_files import (
    ActiveFile,
    LogSnapshot,
    active_files,
    has_deletion_vectors,
)
from penstock.pipeline.table_schema import ColumnsToWrite, create_table, nullable_schema
from penstock.pipeline.written_files import WrittenFile
from penstock.settings.sections import LakeSettings

COMMIT_ATTEMPTS = 5
# A commit that replaces files is refused by every commit in between, so it needs more attempts.
REPLACE_ATTEMPTS = 50
BATCH_KEY = "penstockBatch"
RANGES_KEY = "penstockRanges"


@dataclass(frozen=True, slots=True)
class LedgerMove:
    """One ledger entry's step: the offset it must hold now, and the one it will hold."""

    partition: TopicPartition
    application_id: str
    expected: int | None
    next_offset: int
    claim: Claim | None = None
    # Of the Kafka leader whose log reached to `next_offset`.
    leader_epoch: int | None = None

    def is_allowed(self, stored: int | None) -> bool:
        """Only a batch planned from the stored offset may move it."""
        return stored == self.expected

    def is_outdated(self, last_epoch: Epoch | None) -> bool:
        """Whether an owner with a later epoch has committed already."""
        return self.claim is not None and last_epoch is not None and last_epoch > self.claim.epoch


class LakeTable:
    """One Delta table as a ledger and a list of files. A lock runs calls one after another."""

    def __init__(self, lake: LakeSettings, name: str, *, has_fences: bool = False) -> None:
        self.name = name
        self.storage = TableStorage(lake, name)
        self._lake = lake
        self._lock = threading.RLock()
        self._opened: DeltaTable | None = None
        self._entries = LedgerEntries(self.storage)
        self._columns = ColumnsToWrite(name)
        # Claims this process has committed under. Another writer's commit would move the offset,
        # so while the offset is ours the epoch is too, and is not looked up or written again.
        self._claims: dict[str, Claim] = {}
        # A fence moves an epoch without the offset: where there are fences, epochs are looked up.
        self._has_fences = has_fences

    def _table(self) -> DeltaTable | None:
        """The table at its newest version; None if it does not exist."""
        try:
            if self._opened is None:
                self._opened = DeltaTable(
                    self.storage.uri, storage_options=self.storage.options or None
                )
            else:
                self._opened.update_incremental()
        except TableNotFoundError:
            self._opened = None
        except (DeltaError, OSError) as error:
            self._opened = None
            raise self._refused(error) from error
        return self._opened

    def next_offsets(self, application_ids: Iterable[str]) -> dict[str, int | None]:
        """The ledger's offsets; None for entries it does not have."""
        with self._lock:
            table, names = self._table(), sorted(application_ids)
            return dict.fromkeys(names) if table is None else self._entries.of(table, names)

    def last_epochs(self, application_ids: Iterable[str], authority: str) -> dict[str, Epoch]:
        """The epoch of each entry's last commit, where one was made under this authority."""
        with self._lock:
            table = self._table()
            if table is None:
                return {}
            names = sorted(application_ids)
            found = {name: self._last_epoch(table, name, authority) for name in names}
            return {name: epoch for name, epoch in found.items() if epoch is not None}

    def leader_epochs(self, application_ids: Iterable[str]) -> dict[str, int]:
        """The Kafka leader's epoch at each entry's offset, where it is known."""
        with self._lock:
            table = self._table()
            if table is None:
                return {}
            names = {leader_epoch_id(name): name for name in sorted(application_ids)}
            found = self._entries.of(table, names)
            return {names[one]: stored - 1 for one, stored in found.items() if stored}

    def has_claimed(self, application_id: str, claim: Claim) -> bool:
        """Whether this process has committed under the claim."""
        with self._lock:
            return self._claims.get(application_id) == claim

    def require_current(self, moves: Sequence[LedgerMove]) -> None:
        """Raise if the ledger no longer holds what these moves expect."""
        with self._lock:
            table = self._table()
            if table is not None:
                self._require_current(table, moves)
            elif any(move.expected is not None for move in moves):
                self._require_table()

    def are_outdated(self, moves: Sequence[LedgerMove]) -> bool:
        """Whether a later epoch has taken one of these partitions."""
        with self._lock:
            table = self._require_table()
            return any(self._is_outdated(table, move) for move in moves)

    def drop_uncommitted(self, folder: str) -> None:
        """Remove a batch's files, unless a version names them."""
        named = {file.path for file in self.active()}
        found = self.storage.files_below(folder)
        self.storage.delete_files(file.path for file in found if file.path not in named)

    def exists(self) -> bool:
        with self._lock:
            return self._table() is not None

    def active(self) -> list[ActiveFile]:
        """The files of the newest version."""
        with self._lock:
            table = self._table()
            return [] if table is None else active_files(table)

    def snapshot(self, application_ids: Iterable[str]) -> LogSnapshot:
        """Ledger entries and files of a single version."""
        with self._lock:
            table = self._table()
            if table is None:
                return LogSnapshot({}, frozenset())
            removed = table.vacuum(
                retention_hours=0, dry_run=True, enforce_retention_duration=False
            )
            named = (file.path for file in active_files(table))
            return LogSnapshot(
                self._entries.of(table, sorted(application_ids)), frozenset([*named, *removed])
            )

    def writer_features(self) -> frozenset[str]:
        """The table features that a writer must know, by their names in Delta's protocol."""
        with self._lock:
            table = self._require_table()
            named = frozenset(table.protocol().writer_features or ())
            mode = table.metadata().configuration.get("delta.columnMapping.mode", "none")
            return named if mode == "none" else named | {"columnMapping"}

    def arrow_schema(self) -> pa.Schema:
        """The table's columns, as Arrow names their types."""
        with self._lock:
            return pa.schema(self._require_table().schema().to_arrow())

    def target_file_size(self) -> int | None:
        """The table's own `delta.targetFileSize` in bytes, if it has one."""
        with self._lock:
            text = self._require_table().metadata().configuration.get("delta.targetFileSize")
            return int(text) if text is not None and text.isdigit() else None

    def vacuum(self) -> int:
        """Remove replaced files and log entries whose time is over, by the table's own properties.

        Only files that the log calls removed: a file that the log does not know may belong to a
        writer that has not committed yet.
        """
        with self._lock:
            table = self._require_table()
            gone = table.vacuum(dry_run=False, enforce_retention_duration=False)
            table.update_incremental()
            table.create_checkpoint()
            cleans_up = table.metadata().configuration.get("delta.enableExpiredLogCleanup", "true")
            if cleans_up.lower() != "false":
                table.cleanup_metadata()
            return len(gone)

    def open_for(self, schema_json: str, partition_by: Sequence[str]) -> None:
        """Make the table if it does not exist; add the columns that it lacks."""
        failed: Exception | None = None
        with self._lock:
            known = self._opened
            if known is not None and self._columns.is_opened(known, schema_json, partition_by):
                return
            for _ in range(COMMIT_ATTEMPTS):
                table = self._table() or self._create(schema_json, partition_by)
                try:
                    self._columns.open(table, schema_json, partition_by)
                except (DeltaError, OSError) as error:
                    failed = error  # another writer may have added columns: look again
                    continue
                return
        raise self._refused(failed) from failed

    def columns_to_add(self, schema_json: str, partition_by: Sequence[str]) -> list[str] | None:
        """What `open_for` would add; None if it would make the table. Changes nothing."""
        with self._lock:
            table = self._table()
            if table is None:
                return None
            return [one.name for one in self._columns.to_add(table, schema_json, partition_by)]

    def _create(self, schema_json: str, partition_by: Sequence[str]) -> DeltaTable:
        try:
            create_table(self._lake, self.storage, nullable_schema(schema_json), partition_by)
        except (DeltaError, OSError) as error:
            if self._table() is None:  # another writer may have been quicker
                raise self._refused(error) from error
        table = self._table()
        if table is None:
            raise LakeRefusedError(f"The table {self.storage.uri} was made and is not there.")
        return table

    def commit(
        self,
        moves: Sequence[LedgerMove],
        files: Sequence[WrittenFile],
        *,
        batch: str,
        notes: Mapping[str, Any] | None = None,
        removed: Sequence[RemoveAction] = (),
        changes_data: bool = True,
    ) -> int:
        """Add the files, remove the replaced ones and move the ledger; or raise. The new version.

        Removed files must all be active at the version the commit builds on: deltalake does not
        check this against other commits that change no data (two of its own compactions double
        the rows). Such a commit therefore builds on exactly one version and is never rebased.
        """
        added = [_add_action(file, changes_data=changes_data) for file in files]
        with self._lock:
            failed: Exception | None = None
            base = -1
            for _ in range(REPLACE_ATTEMPTS if removed else COMMIT_ATTEMPTS):
                table = self._require_table()
                if failed is not None and self._holds(batch, since=base, until=table.version()):
                    return int(table.version())
                self._require_current(table, moves)
                self._require_active(table, removed)
                self._columns.require_fit(table)
                base = table.version()
                try:
                    table.create_write_transaction(
                        [*removed, *added],
                        "append",
                        table.schema(),
                        partition_by=list(table.metadata().partition_columns) or None,
                        commit_properties=CommitProperties(
                            custom_metadata={BATCH_KEY: batch, **(notes or {})},
                            max_commit_retries=0 if removed else None,
                            app_transactions=self._transactions(table, moves),
                        ),
                        post_commithook_properties=PostCommitHookProperties(),
                    )
                except (CommitFailedError, DeltaError, OSError) as error:
                    failed = error
                    continue  # it may have committed: the next attempt reads the log first
                self._claims |= {one.application_id: one.claim for one in moves if one.claim}
                return int(table.version())
            if failed is not None and self._holds_now(batch, since=base):
                return int(self._require_table().version())
            raise self._refused(failed) from failed

    def _require_table(self) -> DeltaTable:
        table = self._table()
        if table is None:
            raise LakeRefusedError(
                f"The table {self.storage.uri} has vanished.",
                remedy="Put it back, or remove its offsets by choosing another lake.group.",
            )
        return table

    def _require_current(self, table: DeltaTable, moves: Sequence[LedgerMove]) -> None:
        """The compare of compare-and-set: every entry holds what the batch was planned from."""
        stale: dict[TopicPartition, int | None] = {}
        entries = self._entries.of(table, [move.application_id for move in moves])
        for move in moves:
            stored = entries[move.application_id]
            if not move.is_allowed(stored) or self._is_outdated(table, move):
                stale[move.partition] = stored
        if stale:
            raise StaleLedgerError(self.name, stale)

    def _require_active(self, table: DeltaTable, removed: Sequence[RemoveAction]) -> None:
        """Raise if a file to be replaced is no longer part of the table, or not as a whole."""
        if not removed:
            return
        if has_deletion_vectors(table):
            raise FilesReplacedError(f"The table {self.name} now has deletion vectors.")
        gone = {one.path for one in removed} - {file.path for file in active_files(table)}
        if gone:
            raise FilesReplacedError(
                f"Another writer has replaced or deleted {len(gone)} files of table {self.name}."
            )

    def _is_outdated(self, table: DeltaTable, move: LedgerMove) -> bool:
        claim = move.claim
        is_known = not self._has_fences and self._claims.get(move.application_id) == claim
        if claim is None or is_known:
            return False
        return move.is_outdated(self._last_epoch(table, move.application_id, claim.authority))

    def _last_epoch(self, table: DeltaTable, application_id: str, authority: str) -> Epoch | None:
        names = epoch_ids(application_id, authority)
        controller, number = self._entries.of(table, names).values()
        return None if controller is None or number is None else Epoch(controller, number)

    def _transactions(self, table: DeltaTable, moves: Sequence[LedgerMove]) -> list[Transaction]:
        """Offsets, and the epochs that have changed."""
        entries = [Transaction(move.application_id, move.next_offset) for move in moves]
        wanted = {leader_epoch_id(one.application_id): one.leader_epoch for one in moves}
        stored = self._entries.of(table, wanted)
        for name, epoch in wanted.items():
            if stored_epoch(epoch) != (stored[name] or 0):
                entries.append(Transaction(name, stored_epoch(epoch)))
        return entries + [entry for move in moves for entry in self._claim_entries(move)]

    def _claim_entries(self, move: LedgerMove) -> list[Transaction]:
        """The epoch is written by the first commit under a claim, and stays in the ledger."""
        claim = move.claim
        if claim is None or self._claims.get(move.application_id) == claim:
            return []
        names = epoch_ids(move.application_id, claim.authority)
        parts = (claim.epoch.controller_epoch, claim.epoch.number)
        return [Transaction(name, part) for name, part in zip(names, parts, strict=True)]

    def _holds_now(self, batch: str, *, since: int) -> bool:
        return self._holds(batch, since=since, until=self._require_table().version())

    def _holds(self, batch: str, *, since: int, until: int) -> bool:
        """Whether one of the commits after `since` is of this batch."""
        for version in range(since + 1, until + 1):
            with self.storage.open_file(f"_delta_log/{version:020d}.json") as log:
                for line in log.read().splitlines():
                    if json.loads(line).get("commitInfo", {}).get(BATCH_KEY) == batch:
                        return True
        return False

    def _refused(self, error: Exception | None) -> LakeRefusedError:
        # The lines after the first are a stack of native code.
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        return lake_refusal(error)(
            f"The lake failed at table {self.storage.uri}: {reason.rstrip('.')}.",
            remedy="Check that it exists, has free space and may be written.",
        )


class StaleLedgerError(StaleWriterError):
    """Names the entries that another writer moved, and their offsets."""

    def __init__(self, table: str, stored: Mapping[TopicPartition, int | None]) -> None:
        moved = ", ".join(f"{place} at {offset}" for place, offset in sorted(stored.items()))
        super().__init__(f"Another writer has moved the ledger of table {table}: {moved}.")
        self.stored = dict(stored)


class FilesReplacedError(StaleWriterError):
    """A file that should be replaced is no longer as it was read."""


def _add_action(file: WrittenFile, *, changes_data: bool) -> AddAction:
    return AddAction(
        path=file.path,
        size=file.size_bytes,
        partition_values=dict(file.partition_values),
        modification_time=file.modified_at_ms,
        data_change=changes_data,
        stats=file.stats,
    )
