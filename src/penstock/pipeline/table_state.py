"""What a table's log says at one version, without the table's files: all that a consumer needs.

The values are frozen, so an answer never changes under the caller when the log goes on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from deltalake import Schema


@dataclass(frozen=True, slots=True)
class TableProtocol:
    """What is asked of readers and writers. Features are None where versions imply them."""

    min_reader_version: int
    min_writer_version: int
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class TableMetadata:
    """A table's columns, partitioning and properties."""

    table_id: str
    schema_json: str
    partition_columns: tuple[str, ...]
    configuration: Mapping[str, str]


class Transactions(Protocol):
    """Ledger entries by application id: a mapping, or whoever looks them up in one version."""

    def get(self, name: str, /) -> int | None: ...


@dataclass(frozen=True, slots=True)
class TableState:
    """A table at one version."""

    version: int
    protocol: TableProtocol
    metadata: TableMetadata
    transactions: Transactions

    @property
    def schema(self) -> Schema:
        return _schema(self.metadata.schema_json)

    @property
    def configuration(self) -> Mapping[str, str]:
        return self.metadata.configuration


@lru_cache(maxsize=64)
def _schema(schema_json: str) -> Schema:
    """Parsed once: it is asked for with every batch, and changes rarely."""
    return Schema.from_json(schema_json)


def features(names: object) -> tuple[str, ...] | None:
    """Feature names in one order, whoever wrote them."""
    if names is None:
        return None
    if not isinstance(names, list | tuple | set | frozenset):
        raise TypeError(f"features are a list, not {names!r}")
    return tuple(sorted(str(name) for name in names))
