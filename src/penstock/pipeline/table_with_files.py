"""A table opened by deltalake, with the list of its files.

It takes time and memory with every file (1 GB and more for a million), so consumers do not use it
for a batch. It serves what needs the files (upkeep, compaction, the search for orphans), what
deltalake does for us (a new table, a new column, a commit that replaces files), and logs that
`table_log` does not understand.
"""

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from penstock.pipeline.ledger_entries import LedgerEntries
from penstock.pipeline.storage import TableStorage
from penstock.pipeline.table_state import TableMetadata, TableProtocol, TableState, features


class _LookedUp:
    """Ledger entries that are asked for one by one: deltalake cannot list them."""

    def __init__(self, entries: LedgerEntries, table: DeltaTable) -> None:
        self._entries = entries
        self._table = table

    def get(self, name: str, /) -> int | None:
        return self._entries.of(self._table, [name])[name]


class TableWithFiles:
    def __init__(self, storage: TableStorage) -> None:
        self._storage = storage
        self._opened: DeltaTable | None = None
        self._entries = LedgerEntries(storage)

    def newest(self) -> DeltaTable | None:
        """The newest version; None if the table does not exist. Raises what deltalake raises."""
        opened, self._opened = self._opened, None  # whatever fails, it is opened anew
        try:
            if opened is None:
                opened = DeltaTable(
                    self._storage.uri, storage_options=self._storage.options or None
                )
            else:
                opened.update_incremental()
        except TableNotFoundError:
            return None
        self._opened = opened
        return opened

    def state_of(self, table: DeltaTable) -> TableState:
        """What the log says at the table's version, as `TableLog` would read it."""
        metadata, protocol = table.metadata(), table.protocol()
        return TableState(
            int(table.version()),
            TableProtocol(
                protocol.min_reader_version,
                protocol.min_writer_version,
                features(protocol.reader_features),
                features(protocol.writer_features),
            ),
            TableMetadata(
                str(metadata.id),
                table.schema().to_json(),
                tuple(metadata.partition_columns),
                dict(metadata.configuration),
            ),
            _LookedUp(self._entries, table),
        )

    def release(self) -> None:
        """Give the memory back; the next use opens the table anew."""
        self._opened = None
        self._entries = LedgerEntries(self._storage)
