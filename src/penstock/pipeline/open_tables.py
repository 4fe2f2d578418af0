"""The tables that a consumer keeps open: a bounded number, those that were used last.

A group may have thousands of tables, most of them quiet. One is opened when it is first asked for,
and read when it is first used. When too many are open, the one that was used least recently is let
go. Whoever still has it may use it on: what a table remembers of its log only saves reading, and
the log decides.
"""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Table = TypeVar("Table")


class OpenTables(Generic[Table]):
    """Any thread may ask."""

    def __init__(self, open_table: Callable[[str], Table], most: int) -> None:
        self._open_table = open_table
        self._most = most
        # The one that was used last is at the end.
        self._tables: dict[str, Table] = {}
        self._lock = threading.Lock()

    def get(self, name: str) -> Table:
        with self._lock:
            table = self._tables.pop(name, None)
            if table is None:
                table = self._open_table(name)
            self._tables[name] = table
            if len(self._tables) > self._most:
                del self._tables[next(iter(self._tables))]
            return table

    def forget(self, name: str) -> None:
        """It is opened anew when it is needed next."""
        with self._lock:
            self._tables.pop(name, None)

    @property
    def names(self) -> tuple[str, ...]:
        """Those that are open; the one that was used last is the last."""
        with self._lock:
            return tuple(self._tables)
