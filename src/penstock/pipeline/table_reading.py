"""Looks at a table: its ledger without its files, and for upkeep its files, too.

Methods that need the list of files say so: they take time and memory with every file.
"""

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from penstock.model import Epoch
from penstock.pipeline.batch import leader_epoch_id
from penstock.pipeline.failures import LakeRefusedError, lake_refusal
from penstock.pipeline.file_survey import FileSurvey, survey_files, survey_log
from penstock.pipeline.join_plan import JoinRules
from penstock.pipeline.ledger_moves import stored_claim
from penstock.pipeline.log_entries import LogNotUnderstoodError
from penstock.pipeline.log_replay import LogReplay, replay
from penstock.pipeline.removed_files import delete_removed, named_files
from penstock.pipeline.storage import TableStorage
from penstock.pipeline.stream_checkpoint import make_next_checkpoint
from penstock.pipeline.table_files import ActiveFile, KnownFiles, LogSnapshot, active_files
from penstock.pipeline.table_log import LOADS_MAX, TableLog
from penstock.pipeline.table_state import TableState
from penstock.pipeline.table_with_files import TableWithFiles
from penstock.settings.sections import LakeSettings

_Found = TypeVar("_Found")


class TableReading:
    """One Delta table as a ledger and a list of files. A lock runs calls one after another."""

    def __init__(self, lake: LakeSettings, name: str) -> None:
        self.name = name
        self.storage = TableStorage(lake, name)
        self._lock = threading.RLock()
        self._log = TableLog(self.storage)
        self._files = TableWithFiles(self.storage)
        # What the last look found.
        self._known: TableState | None = None

    def _state(self) -> TableState | None:
        """The newest version, without files; None if the table does not exist."""
        self._known = None
        try:
            try:
                self._known = self._log.newest()
            except LogNotUnderstoodError:
                table = self._files.newest()
                self._known = None if table is None else self._files.state_of(table)
        except (DeltaError, OSError) as error:
            raise self._refused(error) from error
        return self._known

    def _with_files(self) -> DeltaTable | None:
        """The newest version with its files; None if the table does not exist."""
        try:
            return self._files.newest()
        except (DeltaError, OSError) as error:
            raise self._refused(error) from error

    @contextmanager
    def _looking(self) -> Iterator[None]:
        """Entries are looked up in the log when they are asked for, and may be damaged, too."""
        with self._lock:
            try:
                yield
            except (DeltaError, OSError) as error:
                raise self._refused(error) from error

    def next_offsets(self, application_ids: Iterable[str]) -> dict[str, int | None]:
        """The ledger's offsets; None for entries it does not have."""
        with self._looking():
            state, names = self._state(), sorted(application_ids)
            if state is None:
                return dict.fromkeys(names)
            return {name: state.transactions.get(name) for name in names}

    def last_epochs(self, application_ids: Iterable[str], authority: str) -> dict[str, Epoch]:
        """The epoch of each entry's last commit, where one was made under this authority."""
        with self._looking():
            state = self._state()
            if state is None:
                return {}
            ledger, names = state.transactions, sorted(application_ids)
            found = {name: stored_claim(ledger, name, authority) for name in names}
            return {name: epoch for name, epoch in found.items() if epoch is not None}

    def leader_epochs(self, application_ids: Iterable[str]) -> dict[str, int]:
        """The Kafka leader's epoch at each entry's offset, where it is known."""
        with self._looking():
            state = self._state()
            if state is None:
                return {}
            names = sorted(application_ids)
            found = {name: state.transactions.get(leader_epoch_id(name)) for name in names}
            return {name: stored - 1 for name, stored in found.items() if stored}

    def exists(self) -> bool:
        with self._lock:
            return self._state() is not None

    def versions(self) -> tuple[int, int | None]:
        """The newest version, and that of the newest checkpoint, if there is one."""
        with self._lock:
            return self._require_state().version, self._log.checkpoint_version()

    def active(self) -> list[ActiveFile]:
        """The files of the newest version. Reads the list of files."""
        with self._lock:
            table = self._with_files()
            return [] if table is None else active_files(table)

    def survey(self, rules: JoinRules) -> FileSurvey:
        """The small files of the newest version, and how many files it has in all."""
        with self._looking():
            try:
                return survey_log(self._replayed(), rules)
            except LogNotUnderstoodError:
                table = self._require_files()
                return survey_files(int(table.version()), active_files(table), rules)
            finally:
                self._files.release()

    def _replayed(self) -> LogReplay:
        """Raises LogNotUnderstoodError."""
        for _ in range(LOADS_MAX):
            with suppress(FileNotFoundError):  # the log was cleaned up while it was read
                return replay(self.storage)
        return replay(self.storage)

    def snapshot(self, application_ids: Iterable[str]) -> LogSnapshot:
        """Ledger entries and files of a single version."""
        with self._looking():
            with suppress(LogNotUnderstoodError):
                found = self._replayed()
                stored = {name: one["version"] for name, one in found.transactions.items()}
                ledger = {name: stored.get(name) for name in sorted(application_ids)}
                return LogSnapshot(ledger, KnownFiles(named_files(found)))
            table = self._with_files()
            if table is None:
                return LogSnapshot({}, KnownFiles())
            removed = table.vacuum(
                retention_hours=0, dry_run=True, enforce_retention_duration=False
            )
            named = (file.path for file in active_files(table))
            entries = self._files.state_of(table).transactions
            return LogSnapshot(
                {name: entries.get(name) for name in sorted(application_ids)},
                KnownFiles([*named, *removed]),
            )

    def writer_features(self) -> frozenset[str]:
        """The table features that a writer must know, by their names in Delta's protocol."""
        with self._lock:
            state = self._require_state()
            named = frozenset(state.protocol.writer_features or ())
            mode = state.configuration.get("delta.columnMapping.mode", "none")
            return named if mode == "none" else named | {"columnMapping"}

    def arrow_schema(self) -> pa.Schema:
        """The table's columns, as Arrow names their types."""
        with self._lock:
            return pa.schema(self._require_state().schema.to_arrow())

    def target_file_size(self) -> int | None:
        """The table's own `delta.targetFileSize` in bytes, if it has one."""
        with self._lock:
            text = self._require_state().configuration.get("delta.targetFileSize")
            return int(text) if text is not None and text.isdecimal() else None

    def vacuum(self) -> int:
        """Remove replaced files and log entries whose time is over, by the table's own properties.

        Only files that the log calls removed: a file that the log does not know may belong to a
        writer that has not committed yet.
        """
        now_ms = time.time_ns() // 1_000_000
        with self._looking():
            with suppress(LogNotUnderstoodError):
                found = self._replayed()
                count = delete_removed(found, now_ms)
                make_next_checkpoint(self.storage, now_ms)
                return count
            table = self._require_files()
            gone = table.vacuum(dry_run=False, enforce_retention_duration=False)
            table.update_incremental()
            table.create_checkpoint()
            cleans_up = table.metadata().configuration.get("delta.enableExpiredLogCleanup", "true")
            if cleans_up.lower() != "false":
                table.cleanup_metadata()
            return len(gone)

    def _require_state(self) -> TableState:
        return self._require_there(self._state())

    def _require_files(self) -> DeltaTable:
        return self._require_there(self._with_files())

    def _require_there(self, found: _Found | None) -> _Found:
        if found is None:
            raise LakeRefusedError(
                f"The table {self.storage.uri} has vanished.",
                remedy="Put it back, or remove its offsets by choosing another lake.group.",
            )
        return found

    def _refused(self, error: Exception | None) -> LakeRefusedError:
        # The lines after the first are a stack of native code.
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        return lake_refusal(error)(
            f"The lake failed at table {self.storage.uri}: {reason.rstrip('.')}.",
            remedy="Check that it exists, has free space and may be written.",
        )
