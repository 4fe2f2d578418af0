"""Caches the ledger entries of a table from version to version.

deltalake reads through the log for every entry it is asked for. With many partitions that was most
of the cost of a commit. Here each entry is asked for once, and later changes are read from the
commits' own files. An answer always belongs to the version that the table is at.
"""

from collections.abc import Iterable

from deltalake import DeltaTable

from penstock.model.json_text import read_json
from penstock.pipeline.storage import TableStorage

# From this many versions on, asking again is as quick as reading the commits.
VERSIONS_READ_MAX = 100


class LedgerEntries:
    def __init__(self, storage: TableStorage) -> None:
        self._storage = storage
        self._table: DeltaTable | None = None
        self._version = -1
        self._entries: dict[str, int | None] = {}

    def of(self, table: DeltaTable, names: Iterable[str]) -> dict[str, int | None]:
        """The entries at the table's version; None for those it does not have."""
        version = int(table.version())
        if table is not self._table or version != self._version:
            self._catch_up(table, version)
        found = {}
        for name in names:
            if name not in self._entries:
                self._entries[name] = table.transaction_version(name)
            found[name] = self._entries[name]
        return found

    def _catch_up(self, table: DeltaTable, version: int) -> None:
        behind = version - self._version
        if table is not self._table or not 0 <= behind <= VERSIONS_READ_MAX:
            self._entries = {}
        try:
            for number in range(self._version + 1, version + 1) if self._entries else ():
                self._entries |= self._changed_by(number)
        except (FileNotFoundError, ValueError, LookupError, TypeError):
            # A checkpoint covers this commit and its file is gone, or only deltalake can read it.
            self._entries = {}
        self._table, self._version = table, version

    def _changed_by(self, version: int) -> dict[str, int]:
        with self._storage.open_file(f"_delta_log/{version:020d}.json") as file:
            lines = file.read().splitlines()
        actions = [read_json(line) for line in lines if b'"txn"' in line]
        moved = [action["txn"] for action in actions if "txn" in action]
        return {one["appId"]: int(one["version"]) for one in moved}
