"""What the log says of each application, remembered from version to version.

Asked for one by one, deltalake reads through the log for every entry, which with many partitions
was most of what a commit cost. Here each is asked for once; what later commits changed is read from
those commits' own files. An answer is always that of the version the table stands at.
"""

import json
from collections.abc import Iterable

from deltalake import DeltaTable

from penstock.pipeline.storage import TableStorage

# Further behind than this, asking again is as quick as reading what happened.
VERSIONS_READ_MAX = 100


class LedgerEntries:
    def __init__(self, storage: TableStorage) -> None:
        self._storage = storage
        self._table: DeltaTable | None = None
        self._version = -1
        self._entries: dict[str, int | None] = {}

    def of(self, table: DeltaTable, names: Iterable[str]) -> dict[str, int | None]:
        """The entries at the table's version; None for those it has never seen."""
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
        except FileNotFoundError:
            self._entries = {}  # a checkpoint covers it and it was cleaned away
        self._table, self._version = table, version

    def _changed_by(self, version: int) -> dict[str, int]:
        with self._storage.open_file(f"_delta_log/{version:020d}.json") as file:
            lines = file.read().splitlines()
        actions = [json.loads(line) for line in lines if b'"txn"' in line]
        moved = [action["txn"] for action in actions if "txn" in action]
        return {one["appId"]: int(one["version"]) for one in moved}
