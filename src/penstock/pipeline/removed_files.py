"""Deletes files that were replaced and whose time is over, without the list of a table's files."""

import itertools
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import pyarrow.compute as pc

from penstock.pipeline.checkpoint_schema import ADD, REMOVE, array_of
from penstock.pipeline.log_replay import LOG, LogReplay

# So many are held at a time: for each time all names of the table are read once.
_AT_ONCE = 100_000


def named_files(found: LogReplay) -> Iterator[str]:
    """Every file that the log has a name of, also as removed, as it is called in the table."""
    for adds, removes in _pieces(found):
        yield from _names(adds)
        yield from _names(removes)


def delete_removed(found: LogReplay, now_ms: int) -> int:
    """How many there were."""
    oldest_ms = found.oldest_removed_ms(now_ms)
    over = (
        path
        for _, removes in _pieces(found)
        for path in _names(removes.filter(pc.less_equal(_times(removes), oldest_ms)))
        if _is_inside(path)
    )
    count = 0
    while some := set(itertools.islice(over, _AT_ONCE)):
        # A tool may have added a file again, with its name spelled in another way.
        for adds, _ in _pieces(found):
            some.difference_update(_names(adds))
        count += _deleted(found, some)
    return count


def _is_inside(path: str) -> bool:
    """Names from elsewhere are not files of this table, and its log has no rows."""
    parts = path.split("/")
    is_file = "://" not in path and "\0" not in path and not {"", ".", ".."} & {*parts}
    return is_file and parts[0] != LOG


def _deleted(found: LogReplay, paths: set[str]) -> int:
    storage = found.storage
    # An object store is not asked for each of them.
    there = {path for path in paths if not storage.is_local or storage.mark_of(path) is not None}
    storage.delete_files(there)
    return len(there)


def _pieces(found: LogReplay) -> Iterator[tuple[Any, Any]]:
    yield from found.unchanged_files()
    yield array_of(found.added.values(), ADD), array_of(found.removed.values(), REMOVE)


def _names(actions: Any) -> Iterator[str]:
    for path in pc.struct_field(actions, "path").to_pylist():
        yield unquote(path) if "%" in path else path


def _times(removes: Any) -> Any:
    return pc.fill_null(pc.struct_field(removes, "deletionTimestamp"), 0)
