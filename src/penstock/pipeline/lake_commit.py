"""The lake's own log is the offset ledger: a commit adds files and moves offsets, or does neither.

A commit is a compare-and-set for every partition in it: the ledger must still say what the batch
was planned from. It is checked against the very version on which the commit builds, and Delta
refuses a commit when one in between touched the same entry; commits of other partitions pass.
Whoever loses drops the batch. A commit whose outcome is unknown is settled by reading the log,
never by trying again blindly. Nothing here depends on a clock, a lease or an answer from others.
"""

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from penstock.model import Epoch, TopicPartition
from penstock.pipeline.batch import Claim, epoch_ids
from penstock.pipeline.failures import LakeRefusedError, SchemaChangedError, StaleWriterError
from penstock.pipeline.ledger_entries import LedgerEntries
from penstock.pipeline.storage import TableStorage
from penstock.pipeline.written_files import WrittenFile
from penstock.settings.sections import LakeSettings

COMMIT_ATTEMPTS = 5
BATCH_KEY = "penstockBatch"
RANGES_KEY = "penstockRanges"


@dataclass(frozen=True, slots=True)
class LedgerMove:
    """One entry's step: from what it must say now to what it will say."""

    partition: TopicPartition
    application_id: str
    expected: int | None
    next_offset: int
    claim: Claim | None = None

    def is_allowed(self, stored: int | None) -> bool:
        """The law: only whoever planned from what the ledger says now may move it."""
        return stored == self.expected

    def is_outdated(self, last_epoch: Epoch | None) -> bool:
        """Somebody who was told to start later has committed already: it is his."""
        return self.claim is not None and last_epoch is not None and last_epoch > self.claim.epoch


@dataclass(frozen=True, slots=True)
class ActiveFile:
    """A file that the newest version names."""

    path: str
    size_bytes: int
    modified_at_ms: int
    records: int
    partition_values: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class LogSnapshot:
    """What one version says; `known_files` are those it names and those it calls removed."""

    ledger: Mapping[str, int | None]
    known_files: frozenset[str]


def active_files(table: DeltaTable) -> list[ActiveFile]:
    actions = pa.table(table.get_add_actions(flatten=False)).to_pylist()
    return [
        ActiveFile(
            path=unquote(one["path"]),
            size_bytes=one["size_bytes"],
            modified_at_ms=_milliseconds(one["modification_time"]),
            records=one["num_records"],
            partition_values={
                name: None if value is None else str(value)
                for name, value in (one.get("partition") or {}).items()
            },
        )
        for one in actions
    ]


def _milliseconds(moment: Any) -> int:
    return int(moment.timestamp() * 1000) if hasattr(moment, "timestamp") else int(moment)


class LakeTable:
    """One Delta table as a ledger and a list of files. Calls are taken one after another."""

    def __init__(self, lake: LakeSettings, name: str, *, has_fences: bool = False) -> None:
        self.name = name
        self.storage = TableStorage(lake, name)
        self._lake = lake
        self._lock = threading.RLock()
        self._opened: DeltaTable | None = None
        self._entries = LedgerEntries(self.storage)
        self._schema_seen: str | None = None
        # Claims this process has committed under. Whoever else commits moves the offset as well,
        # so as long as that is ours, so is the epoch, and neither is looked up or written again.
        self._claims: dict[str, Claim] = {}
        # Where a fence may move an epoch and leave the offset, every commit looks epochs up.
        self._has_fences = has_fences

    def _table(self) -> DeltaTable | None:
        """The newest version; None when the table does not exist yet."""
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
        """What the ledger says now; None for entries it has never seen."""
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

    def has_claimed(self, application_id: str, claim: Claim) -> bool:
        """Whether this process has committed under the claim."""
        with self._lock:
            return self._claims.get(application_id) == claim

    def require_current(self, moves: Sequence[LedgerMove]) -> None:
        """Raise if the ledger has moved on from what these moves expect."""
        with self._lock:
            table = self._table()
            if table is not None:
                self._require_current(table, moves)
            elif any(move.expected is not None for move in moves):
                self._require_table()

    def are_outdated(self, moves: Sequence[LedgerMove]) -> bool:
        """Whether a later claim stands in the way of one of them."""
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
        """Every file the newest version names."""
        with self._lock:
            table = self._table()
            return [] if table is None else active_files(table)

    def snapshot(self, application_ids: Iterable[str]) -> LogSnapshot:
        """Ledger entries and files of one and the same version."""
        with self._lock:
            table = self._table()
            if table is None:
                return LogSnapshot({}, frozenset())
            removed = table.vacuum(
                retention_hours=0, dry_run=True, enforce_retention_duration=False
            )
            named = (file.path for file in active_files(table))
            return LogSnapshot(
                self._entries.of(table, sorted(application_ids)),
                frozenset([*named, *(unquote(path) for path in removed)]),
            )

    def vacuum(self, retention_hours: int) -> int:
        """Remove replaced files older than this, and log entries that a checkpoint covers.

        Only what the log says was removed: a file that it does not know may be a writer's.
        """
        with self._lock:
            table = self._require_table()
            gone = table.vacuum(
                retention_hours=retention_hours, dry_run=False, enforce_retention_duration=False
            )
            table.update_incremental()
            table.create_checkpoint()
            table.cleanup_metadata()
            return len(gone)

    def open_for(self, schema_json: str, partition_by: Sequence[str]) -> None:
        """Make the table if it is not there; add columns the rows have and it has not."""
        if schema_json == self._schema_seen:
            return
        schema = _nullable(schema_json)
        with self._lock:
            table = self._table() or self._create(schema, partition_by)
            self._fit(table, schema, partition_by)
            self._schema_seen = schema_json

    def _create(self, schema: Schema, partition_by: Sequence[str]) -> DeltaTable:
        lake = self._lake
        try:
            DeltaTable.create(
                self.storage.uri,
                schema=schema,
                mode="ignore",
                partition_by=list(partition_by) or None,
                configuration={
                    "delta.checkpointInterval": str(lake.checkpoint_commits),
                    "delta.logRetentionDuration": _interval(lake.log_retention),
                    "delta.deletedFileRetentionDuration": _interval(lake.removed_file_retention),
                    "delta.enableExpiredLogCleanup": "true",
                },
                storage_options=self.storage.options or None,
            )
        except (DeltaError, OSError) as error:
            if self._table() is None:  # not that somebody else was quicker
                raise self._refused(error) from error
        table = self._table()
        if table is None:
            raise LakeRefusedError(f"The table {self.storage.uri} was made and is not there.")
        return table

    def _fit(self, table: DeltaTable, schema: Schema, partition_by: Sequence[str]) -> None:
        there = list(table.metadata().partition_columns)
        if there != list(partition_by):
            raise SchemaChangedError(
                f"The table {self.name} is partitioned by {there}, the settings say "
                f"{list(partition_by)}.",
                remedy="Give the topic another table, or set partition_by as it was.",
            )
        known = {one.name: one for one in table.schema().fields}
        for one in schema.fields:
            if one.name in known and known[one.name].type != one.type:
                raise SchemaChangedError(
                    f"The table {self.name} has {one.name} as {known[one.name].type}, the records "
                    f"now have {one.type}.",
                    remedy="Cast it in the transformation, or give the topic another table.",
                )
        new = [one for one in schema.fields if one.name not in known]
        if new:
            table.alter.add_columns(new)
            table.update_incremental()

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
        """Name the files and move the ledger, or raise; the version of the commit."""
        added = [_add_action(file, changes_data=changes_data) for file in files]
        with self._lock:
            properties = CommitProperties(
                custom_metadata={BATCH_KEY: batch, **(notes or {})},
                app_transactions=[
                    *(Transaction(move.application_id, move.next_offset) for move in moves),
                    *(entry for move in moves for entry in self._claim_entries(move)),
                ],
            )
            failed: Exception | None = None
            base = -1
            for _ in range(COMMIT_ATTEMPTS):
                table = self._require_table()
                if failed is not None and self._holds(batch, since=base, until=table.version()):
                    return int(table.version())
                self._require_current(table, moves)
                base = table.version()
                try:
                    table.create_write_transaction(
                        [*removed, *added],
                        "append",
                        table.schema(),
                        partition_by=list(table.metadata().partition_columns) or None,
                        commit_properties=properties,
                        post_commithook_properties=PostCommitHookProperties(),
                    )
                except (CommitFailedError, DeltaError, OSError) as error:
                    failed = error
                    continue  # it may have happened: look at the log before anything else
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
        """Compare: every entry says what the batch was planned from."""
        stale: dict[TopicPartition, int | None] = {}
        entries = self._entries.of(table, [move.application_id for move in moves])
        for move in moves:
            stored = entries[move.application_id]
            if not move.is_allowed(stored) or self._is_outdated(table, move):
                stale[move.partition] = stored
        if stale:
            raise StaleLedgerError(self.name, stale)

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

    def _claim_entries(self, move: LedgerMove) -> list[Transaction]:
        """The first commit under a claim says so; the ledger remembers it from then on."""
        claim = move.claim
        if claim is None or self._claims.get(move.application_id) == claim:
            return []
        names = epoch_ids(move.application_id, claim.authority)
        parts = (claim.epoch.controller_epoch, claim.epoch.number)
        return [Transaction(name, part) for name, part in zip(names, parts, strict=True)]

    def _holds_now(self, batch: str, *, since: int) -> bool:
        return self._holds(batch, since=since, until=self._require_table().version())

    def _holds(self, batch: str, *, since: int, until: int) -> bool:
        """Whether one of the commits after `since` is this batch's."""
        for version in range(since + 1, until + 1):
            with self.storage.open_file(f"_delta_log/{version:020d}.json") as log:
                for line in log.read().splitlines():
                    if json.loads(line).get("commitInfo", {}).get(BATCH_KEY) == batch:
                        return True
        return False

    def _refused(self, error: Exception | None) -> LakeRefusedError:
        return LakeRefusedError(
            f"The lake refuses to work on {self.storage.uri}: {error}.",
            remedy="Check that the place exists, has room and may be written.",
        )


class StaleLedgerError(StaleWriterError):
    """Which entries had moved, and to where."""

    def __init__(self, table: str, stored: Mapping[TopicPartition, int | None]) -> None:
        said = ", ".join(f"{partition} at {offset}" for partition, offset in sorted(stored.items()))
        super().__init__(f"Another writer has moved the ledger of table {table}: {said}.")
        self.stored = dict(stored)


def _add_action(file: WrittenFile, *, changes_data: bool) -> AddAction:
    return AddAction(
        path=file.path,
        size=file.size_bytes,
        partition_values=dict(file.partition_values),
        modification_time=file.modified_at_ms,
        data_change=changes_data,
        stats=file.stats,
    )


def _nullable(schema_json: str) -> Schema:
    """Spark's schema as Delta's, which is written the same; every column may be empty."""
    content = json.loads(schema_json)
    for one in content["fields"]:
        one["nullable"] = True
    return Schema.from_json(json.dumps(content))


def _interval(seconds: float) -> str:
    return f"interval {round(seconds)} seconds"
