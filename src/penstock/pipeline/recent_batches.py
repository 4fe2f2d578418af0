"""Remembers which batches the newest entries of a table's log have, in bounded memory. Pure.

An entry that is committed for many names a batch of each. What is not remembered is read again in
the log, so forgetting costs a request and nothing else.
"""

from collections.abc import Sequence

ENTRIES_MAX = 1000
NAMES_MAX = 2000


class RecentBatches:
    def __init__(self, *, entries_max: int = ENTRIES_MAX, names_max: int = NAMES_MAX) -> None:
        self._entries_max = entries_max
        self._names_max = names_max
        self._names: dict[int, tuple[str, ...]] = {}
        self._count = 0

    def note(self, version: int, names: Sequence[str]) -> None:
        """An entry was read. The newest one is always kept, however many names it has."""
        self._forget(version)
        self._names[version] = tuple(names)
        self._count += len(names)
        while len(self._names) > 1 and (
            len(self._names) > self._entries_max or self._count > self._names_max
        ):
            self._forget(next(iter(self._names)))

    def of(self, version: int) -> tuple[str, ...] | None:
        """The names in this version's entry; None if it is not remembered."""
        return self._names.get(version)

    def clear(self) -> None:
        self._names.clear()
        self._count = 0

    def _forget(self, version: int) -> None:
        self._count -= len(self._names.pop(version, ()))
