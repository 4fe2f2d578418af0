"""Reads the files that a table's log names, piece by piece: the newest checkpoint, then entries.

A table of a million files takes as much memory as one of a thousand: of the checkpoint only one
piece is held at a time, and of the files that later entries name, what they say of them. That is
for tables without features that change what a file's entry means (deletion vectors, row ids,
column mapping, ...); the others raise LogNotUnderstoodError, and are left to deltalake.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from penstock.model.json_text import read_json
from penstock.object_store.limits import ObjectStoreError
from penstock.pipeline.checkpoint_files import CheckpointPlace, newest_checkpoint
from penstock.pipeline.checkpoint_schema import ADD, DAMAGE, REMOVE
from penstock.pipeline.log_entries import LogNotUnderstoodError, entry_path
from penstock.pipeline.storage import FileMark, TableStorage

LOG = "_delta_log"
ENTRY = re.compile(r"(\d{20})\.json")
# Rows of a checkpoint that are held at a time, and bytes of a column that are read at a time.
_ROWS_AT_ONCE = 8192
_BUFFER_BYTES = 2**18
_PLAIN_FEATURES = frozenset(
    {
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "generatedColumns",
        "invariants",
        "timestampNtz",
        "vacuumProtocolCheck",
    }
)
# Up to these versions a protocol has no features but those that are plain, or column mapping.
_LEGACY_READER_MAX, _LEGACY_WRITER_MAX = 2, 5
_FEATURES_READER, _FEATURES_WRITER = 3, 7
# What an entry may say; `cdc` and `commitInfo` say nothing about a table's state.
_STATE = ("add", "remove", "txn", "metaData", "protocol")
_KINDS = {*_STATE, "cdc", "commitInfo"}
# What no action is without.
_REQUIRED = {
    "add": ("path", "partitionValues", "size", "modificationTime", "dataChange"),
    "remove": ("path", "dataChange"),
    "txn": ("appId", "version"),
    "metaData": ("id", "format", "schemaString", "partitionColumns"),
    "protocol": ("minReaderVersion", "minWriterVersion"),
}
# Fields of a file that are dropped without loss when they are empty.
_MORE_OF_A_FILE = (
    "deletionVector",
    "baseRowId",
    "defaultRowCommitVersion",
    "clusteringProvider",
    "stats_parsed",
    "partitionValues_parsed",
)
# Properties under which checkpoints have other columns, or leave actions out.
_CHANGES_CHECKPOINTS = {
    "delta.checkpoint.writeStatsAsJson": "true",
    "delta.checkpoint.writeStatsAsStruct": "false",
    "delta.columnMapping.mode": "none",
    "delta.enableDeletionVectors": "false",
    "delta.enableRowTracking": "false",
    "delta.enableInCommitTimestamps": "false",
}
_REMOVED_KEPT = "delta.deletedFileRetentionDuration"
_REMOVED_KEPT_DEFAULT = "interval 7 days"
_LEDGER_EXPIRES = "delta.setTransactionRetentionDuration"
_INTERVAL = re.compile(
    r"(?:interval\s+)?(\d{1,8})\s+(second|minute|hour|day|week)s?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class LogReplay:
    """A table at its newest version. Only `unchanged_files` reads the list of files."""

    storage: TableStorage
    version: int
    place: CheckpointPlace | None
    # The newest action of each kind, with maps as in JSON or as pairs.
    protocol: Mapping[str, Any]
    metadata: Mapping[str, Any]
    transactions: Mapping[str, Mapping[str, Any]]
    # By its path as the log has it, what entries after the checkpoint say of a file, at last.
    added: Mapping[str, Mapping[str, Any]]
    removed: Mapping[str, Mapping[str, Any]]
    # By what it shows whether the log is still the one that was read.
    anchors: tuple[tuple[str, FileMark | None], ...] = ()

    @property
    def configuration(self) -> dict[str, str]:
        return dict(self.metadata.get("configuration") or {})

    def oldest_removed_ms(self, now_ms: int) -> int:
        """Files that were removed until then are needed by no version that can still be read."""
        kept_s = seconds_of(self.configuration.get(_REMOVED_KEPT, _REMOVED_KEPT_DEFAULT))
        return now_ms - round(kept_s * 1000)

    def is_still_there(self) -> bool:
        """Whether the log is the one that was read: a table may be deleted and made again."""
        marks = [(mark, self.storage.mark_of(path)) for path, mark in self.anchors]
        return all(mark is not None and mark == now for mark, now in marks)

    def unchanged_files(self) -> Iterator[tuple[Any, Any]]:
        """The checkpoint's `add` and `remove` actions in pieces, each as a struct array.

        Without those of files that a later entry names.
        """
        if self.place is None:
            return
        changed = pa.array([*self.added, *self.removed], pa.string())
        for path in self.place.paths():
            for batch in _batches(self.storage, path):
                try:
                    adds, removes = (_unchanged(batch, *kind, changed) for kind in _FILE_KINDS)
                except DAMAGE as error:
                    raise LogNotUnderstoodError(f"{path} is damaged: {error}") from error
                yield adds, removes


_FILE_KINDS = (("add", ADD), ("remove", REMOVE))


def replay(storage: TableStorage) -> LogReplay:
    """Raises FileNotFoundError when the log is cleaned up meanwhile."""
    names = storage.file_names(LOG)
    place = newest_checkpoint(names)
    versions = [int(entry[1]) for name in names if (entry := ENTRY.fullmatch(name))]
    found = _Found()
    first = entry_path(0) if place is None else place.paths()[0]
    first_mark = storage.mark_of(first)
    if place is not None:
        for path in place.paths():
            for batch in _batches(storage, path, files=False):
                found.take_batch(batch)
    version = -1 if place is None else place.version
    newest = first, first_mark
    while (read := storage.read_marked(entry_path(version + 1))) is not None:
        found.take_entry(read[0])
        version += 1
        newest = entry_path(version), read[1]
    if version < max(versions, default=0):
        raise LogNotUnderstoodError("the log has a gap")
    if found.protocol is None or found.metadata is None:
        raise LogNotUnderstoodError("the log has no protocol or no metadata")
    result = LogReplay(
        storage,
        version,
        place,
        found.protocol,
        found.metadata,
        found.transactions,
        found.added,
        found.removed,
        ((first, first_mark), newest),
    )
    try:
        _require_plain(result)
    except DAMAGE as error:
        raise LogNotUnderstoodError(f"protocol or metadata are damaged: {error}") from error
    return result


def seconds_of(interval: str) -> float:
    """Of a table's property, such as `interval 7 days`."""
    found = _INTERVAL.fullmatch(interval.strip())
    if found is None:
        raise LogNotUnderstoodError(f"an interval: {interval}")
    return timedelta(**{f"{found[2].lower()}s": int(found[1])}).total_seconds()


class _Found:
    """What was read so far."""

    def __init__(self) -> None:
        self.protocol: Mapping[str, Any] | None = None
        self.metadata: Mapping[str, Any] | None = None
        self.transactions: dict[str, Mapping[str, Any]] = {}
        self.added: dict[str, Mapping[str, Any]] = {}
        self.removed: dict[str, Mapping[str, Any]] = {}

    def take_batch(self, batch: Any) -> None:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if column.null_count == len(column):
                continue
            if name not in _STATE:
                raise LogNotUnderstoodError(f"a checkpoint with {name}")
            for action in column.drop_null().to_pylist():
                self._take(name, action)

    def take_entry(self, content: bytes) -> None:
        named: set[str] = set()
        try:
            for line in filter(bytes.strip, content.splitlines()):
                actions = [one for one in read_json(line).items() if one[1] is not None]
                if len(actions) > 1:
                    raise LogNotUnderstoodError("a line with several actions")
                for name, action in actions:
                    self._take(name, action)
                    if name in ("add", "remove"):
                        _require_new(str(action["path"]), named)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise LogNotUnderstoodError(f"an entry is damaged: {error}") from error

    def _take(self, name: str, action: Mapping[str, Any]) -> None:
        if name not in _KINDS:
            raise LogNotUnderstoodError(f"an action {name}")
        for required in _REQUIRED.get(name, ()):
            if action.get(required) is None:
                raise LogNotUnderstoodError(f"an action {name} without {required}")
        if name in ("add", "remove"):
            _require_plain_file(action)
            path = str(action["path"])
            self.added.pop(path, None)
            self.removed.pop(path, None)
            (self.added if name == "add" else self.removed)[path] = action
        elif name == "txn":
            self.transactions[str(action["appId"])] = action
        elif name == "metaData":
            self.metadata = action
        elif name == "protocol":
            self.protocol = action


def _require_new(path: str, named: set[str]) -> None:
    """An entry says one thing of a file. Of two, readers do not agree which one counts."""
    if path in named:
        raise LogNotUnderstoodError("an entry that names a file twice")
    named.add(path)


def _require_plain_file(action: Mapping[str, Any]) -> None:
    for name in _MORE_OF_A_FILE:
        if action.get(name) is not None:
            raise LogNotUnderstoodError(f"a file with {name}")


def _require_plain(found: LogReplay) -> None:
    """Raise if a feature may give the log a meaning that is not known here."""
    protocol = found.protocol
    reader, writer = int(protocol["minReaderVersion"]), int(protocol["minWriterVersion"])
    is_legacy = reader <= _LEGACY_READER_MAX and writer <= _LEGACY_WRITER_MAX
    by_name = reader <= _FEATURES_READER and writer == _FEATURES_WRITER
    features = {*(protocol.get("readerFeatures") or ()), *(protocol.get("writerFeatures") or ())}
    if not (is_legacy or by_name) or not features <= _PLAIN_FEATURES:
        raise LogNotUnderstoodError("a feature of the table")
    configuration = found.configuration
    if not all(isinstance(value, str) for value in configuration.values()):
        raise LogNotUnderstoodError("a property without a text")
    for name, plain in _CHANGES_CHECKPOINTS.items():
        if configuration.get(name, plain).lower() != plain:
            raise LogNotUnderstoodError(f"the property {name}")
    if configuration.get(_LEDGER_EXPIRES):
        raise LogNotUnderstoodError(f"the property {_LEDGER_EXPIRES}")


def _batches(storage: TableStorage, path: str, *, files: bool = True) -> Iterator[Any]:
    """Rows of one part of a checkpoint: those of files, or all other columns."""
    try:
        with storage.open_file(path) as file:
            parquet = pyarrow.parquet.ParquetFile(file, buffer_size=_BUFFER_BYTES, pre_buffer=False)
            kinds = {name for name, _ in _FILE_KINDS}
            names = [one.name for one in parquet.schema_arrow if (one.name in kinds) == files]
            # Without threads: each would keep memory of its own.
            yield from parquet.iter_batches(_ROWS_AT_ONCE, columns=names, use_threads=False)
    except (FileNotFoundError, ObjectStoreError):
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise LogNotUnderstoodError(f"{path} cannot be read: {error}") from error


def _unchanged(batch: Any, name: str, kind: Any, changed: Any) -> Any:
    """The actions of one kind, with the fields that are known, of files not named later."""
    if name not in batch.schema.names:
        return pa.array([], kind)
    column = batch.column(name)
    if column.null_count == len(column):
        return pa.array([], kind)
    actions = column.drop_null()
    fields = {one.name: number for number, one in enumerate(actions.type)}
    for more in _MORE_OF_A_FILE:
        if more in fields and actions.flatten()[fields[more]].null_count < len(actions):
            raise LogNotUnderstoodError(f"a file with {more}")
    paths = pc.struct_field(actions, "path").cast(pa.string())
    left = actions.filter(pc.invert(pc.is_in(paths, value_set=changed)))
    if name == "remove" and "extendedFileMetadata" not in fields:
        raise LogNotUnderstoodError("a removed file without its fields")
    values = left.flatten()
    return pa.StructArray.from_arrays(
        [
            values[fields[one.name]].cast(one.type)
            if one.name in fields
            else pa.nulls(len(left), one.type)
            for one in kind
        ],
        fields=list(kind),
    )
