"""The entries of a Delta log: one JSON file a version, with one action a line.

Reads of an entry what a consumer needs (ledger, columns, protocol, the batch that it is of) and
writes entries that add files. What an entry says about files is not looked at when it is read:
an entry may name thousands of them.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from penstock.model.json_text import read_json
from penstock.pipeline.table_state import TableMetadata, TableProtocol, features
from penstock.pipeline.written_files import WrittenFile

BATCH_KEY = "penstockBatch"
# Of a commit for several writers: every batch in it. Its own name is under `BATCH_KEY`.
BATCHES_KEY = "penstockBatches"
ENGINE = "penstock"
# Only lines with one of these are parsed.
_OF_INTEREST = (b'"txn"', b'"metaData"', b'"protocol"', b'"commitInfo"')
# deltalake leaves these characters of a path as they are, and so do we: every reader decodes a
# path before it uses it, and one spelling makes paths comparable.
_PLAIN_IN_PATHS = "/!$&'()+,:;=@~"


class LogNotUnderstoodError(Exception):
    """The log is damaged, or uses something that is not read here; deltalake is asked instead."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """What one version changes, without files."""

    protocol: TableProtocol | None = None
    metadata: TableMetadata | None = None
    transactions: Mapping[str, int] = field(default_factory=dict)
    # Of our own commits: what the commit is called, and the batches of others in it.
    batch: str | None = None
    together: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """What the commit is called, and every batch in it."""
        return self.together if self.batch is None else (self.batch, *self.together)


def entry_path(version: int) -> str:
    return f"_delta_log/{version:020d}.json"


def parse_entry(content: bytes) -> LogEntry:
    protocol: TableProtocol | None = None
    metadata: TableMetadata | None = None
    transactions: dict[str, int] = {}
    batch: str | None = None
    together: tuple[str, ...] = ()
    try:
        for line in content.splitlines():
            if not any(key in line for key in _OF_INTEREST):
                _require_whole(line)
                continue
            action = read_json(line)
            if action.get("txn") is not None:
                transactions[action["txn"]["appId"]] = int(action["txn"]["version"])
            if action.get("protocol") is not None:
                protocol = protocol_of(action["protocol"])
            if action.get("metaData") is not None:
                metadata = metadata_of(action["metaData"])
            if action.get("commitInfo") is not None:
                named = action["commitInfo"].get(BATCH_KEY)
                batch = named if isinstance(named, str) else None
                listed = action["commitInfo"].get(BATCHES_KEY)
                names = listed if isinstance(listed, list) else []
                together = tuple(name for name in names if isinstance(name, str))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LogNotUnderstoodError(f"an entry is damaged: {error}") from error
    return LogEntry(protocol, metadata, transactions, batch, together)


def _require_whole(line: bytes) -> None:
    text = line.strip()
    if text and not (text.startswith(b"{") and text.endswith(b"}")):
        raise ValueError("a line is no JSON object")


def protocol_of(action: Mapping[str, Any]) -> TableProtocol:
    """From a `protocol` action, of an entry or of a checkpoint."""
    return TableProtocol(
        int(action["minReaderVersion"]),
        int(action["minWriterVersion"]),
        features(action.get("readerFeatures")),
        features(action.get("writerFeatures")),
    )


def metadata_of(action: Mapping[str, Any]) -> TableMetadata:
    """From a `metaData` action. Checkpoints have a map's entries as pairs."""
    return TableMetadata(
        str(action["id"]),
        str(action["schemaString"]),
        tuple(action.get("partitionColumns") or ()),
        dict(action.get("configuration") or {}),
    )


@dataclass(frozen=True, slots=True)
class RemovedFile:
    """A file that another one replaces, with its path as the log spells it."""

    log_path: str
    size_bytes: int
    partition_values: Mapping[str, str | None]
    removed_at_ms: int


def added_files_entry(
    files: Sequence[WrittenFile],
    transactions: Iterable[tuple[str, int]],
    *,
    partition_by: Sequence[str],
    batch: str,
    notes: Mapping[str, Any],
    at_ms: int,
    removed: Sequence[RemovedFile] = (),
) -> bytes:
    """An entry that adds files and moves ledger entries.

    Where files are removed, the added ones have the same rows: it changes no data.
    """
    parameters = {"mode": "Append"}
    if partition_by:
        parameters["partitionBy"] = json.dumps(list(partition_by))
    actions: list[dict[str, Any]] = [
        {
            "commitInfo": {
                "timestamp": at_ms,
                "operation": "WRITE",
                "operationParameters": parameters,
                "engineInfo": ENGINE,
                BATCH_KEY: batch,
                **notes,
            }
        }
    ]
    actions += [{"remove": _remove(file)} for file in removed]
    actions += [{"add": _add(file, changes_data=not removed)} for file in files]
    actions += [{"txn": {"appId": name, "version": number}} for name, number in transactions]
    return b"".join(json.dumps(action).encode() + b"\n" for action in actions)


def _remove(file: RemovedFile) -> dict[str, Any]:
    return {
        "path": file.log_path,
        "dataChange": False,
        "deletionTimestamp": file.removed_at_ms,
        "extendedFileMetadata": True,
        "partitionValues": dict(file.partition_values),
        "size": file.size_bytes,
    }


def _add(file: WrittenFile, *, changes_data: bool) -> dict[str, Any]:
    return {
        "path": encoded_path(file.path),
        "partitionValues": dict(file.partition_values),
        "size": file.size_bytes,
        "modificationTime": file.modified_at_ms,
        "dataChange": changes_data,
        "stats": file.stats,
    }


def encoded_path(path: str) -> str:
    """A path as the log has it, where `%` begins an encoded character."""
    return quote(path, safe=_PLAIN_IN_PATHS)
