"""Whether files that are to be replaced are still part of their table, without the list of files.

They were at some version. Whatever happened to them since is in the entries after it.
"""

from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import unquote

from penstock.model.json_text import read_json
from penstock.pipeline.ledger_moves import FilesReplacedError
from penstock.pipeline.log_entries import entry_path
from penstock.pipeline.storage import TableStorage
from penstock.pipeline.table_files import has_deletion_vectors
from penstock.pipeline.table_state import TableState

_NAMES_FILES = (b'"add"', b'"remove"')


class EntriesGoneError(Exception):
    """Entries since the files were seen are cleaned up: only the list of files can tell."""


class SeenFiles:
    """Files that were part of a table at a version, and what has happened to them since.

    Entries are read once, and soon, so that a long compaction does not find them cleaned up.
    """

    def __init__(self, version: int, table_id: str, paths: Iterable[str]) -> None:
        self._version = version
        self._table_id = table_id
        self._paths = frozenset(paths)
        self._touched: set[str] = set()

    def require_untouched(
        self, storage: TableStorage, state: TableState, paths: Iterable[str]
    ) -> None:
        """Raise if another writer has touched one of these files up to this version."""
        name = storage.uri.rpartition("/")[2]
        if has_deletion_vectors(state):
            raise FilesReplacedError(f"The table {name} now has deletion vectors.")
        if state.metadata.table_id != self._table_id or state.version < self._version:
            raise FilesReplacedError(f"The table {name} was made again.")
        wanted = frozenset(paths)
        if not wanted <= self._paths:
            raise AssertionError(f"files of table {name} that were not seen")
        self._read_up_to(storage, state.version)
        gone = wanted & self._touched
        if gone:
            raise FilesReplacedError(
                f"Another writer has replaced or deleted {len(gone)} files of table {name}."
            )

    def _read_up_to(self, storage: TableStorage, version: int) -> None:
        while self._version < version:
            found = storage.read_marked(entry_path(self._version + 1))
            if found is None:
                raise EntriesGoneError
            try:
                self._touched |= self._paths.intersection(_named(found[0]))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise EntriesGoneError from error
            self._version += 1


def _named(content: bytes) -> Iterator[str]:
    """Every file that an entry names, as added or as removed."""
    for line in content.splitlines():
        if not any(key in line for key in _NAMES_FILES):
            continue
        actions: Mapping[str, Mapping[str, str] | None] = read_json(line)
        for kind in ("add", "remove"):
            action = actions.get(kind)
            if action is not None:
                yield unquote(action["path"])
