"""The files of a Delta table at one version, as its log names them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable


@dataclass(frozen=True, slots=True)
class ActiveFile:
    """A file of the newest version."""

    path: str
    size_bytes: int
    modified_at_ms: int
    # None where the log does not say it: statistics may be left out.
    records: int | None
    partition_values: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class LogSnapshot:
    """One version: its ledger entries, and the files it names, also as removed."""

    ledger: Mapping[str, int | None]
    known_files: frozenset[str]


def active_files(table: DeltaTable) -> list[ActiveFile]:
    actions = pa.table(table.get_add_actions(flatten=False)).to_pylist()
    return [
        ActiveFile(
            path=unquote(one["path"]),
            size_bytes=one["size_bytes"],
            modified_at_ms=_milliseconds(one["modification_time"]),
            records=one.get("num_records"),
            partition_values={
                name: None if value is None else str(value)
                for name, value in (one.get("partition") or {}).items()
            },
        )
        for one in actions
    ]


def has_deletion_vectors(table: DeltaTable) -> bool:
    """Whether rows of a file may be deleted without the file being rewritten."""
    return "deletionVectors" in (table.protocol().reader_features or ())


def _milliseconds(moment: Any) -> int:
    return int(moment.timestamp() * 1000) if hasattr(moment, "timestamp") else int(moment)
