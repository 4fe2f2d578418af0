"""The files of a Delta table at one version, as its log names them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

from penstock.pipeline.table_state import TableState


@dataclass(frozen=True, slots=True)
class ActiveFile:
    """A file of the newest version."""

    path: str
    size_bytes: int
    modified_at_ms: int
    # None where the log does not say it: statistics may be left out.
    records: int | None
    partition_values: Mapping[str, str | None]
    # As the log spells it, where that is known: tools encode characters of a path differently.
    log_path: str | None = None


class KnownFiles:
    """The names of files that a log has, by their hashes: a million take less than 100 MB.

    Of two names with one hash (one in 10^13 for a million files), either counts as known.
    """

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._hashes = set(map(hash, paths))

    def __contains__(self, path: object) -> bool:
        return hash(path) in self._hashes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KnownFiles) and self._hashes == other._hashes

    def __hash__(self) -> int:
        return hash(frozenset(self._hashes))


@dataclass(frozen=True, slots=True)
class LogSnapshot:
    """One version: its ledger entries, and the files it names, also as removed."""

    ledger: Mapping[str, int | None]
    known_files: KnownFiles


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


def has_deletion_vectors(state: TableState) -> bool:
    """Whether rows of a file may be deleted without the file being rewritten."""
    return "deletionVectors" in (state.protocol.reader_features or ())


def _milliseconds(moment: Any) -> int:
    return int(moment.timestamp() * 1000) if hasattr(moment, "timestamp") else int(moment)
