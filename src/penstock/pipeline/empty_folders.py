"""Removes the folders of batches whose files are all gone, on a file system.

Every batch has a folder of its own, and a vacuum removes only files. A year of commits would leave
tens of millions of empty folders, which every sweep walks through. Object stores have no folders.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from penstock.pipeline.lake_commit import LakeTable
from penstock.pipeline.orphans import Provenance


def remove_empty_batches(table: LakeTable, group: str) -> int:
    """How many there were. A folder stays while its batch may still write to it, or commit.

    Folders are listed before the ledger is read, as files are when orphans are looked for. Only
    folders are removed, so that a file that comes in between keeps its own.
    """
    if not table.storage.is_local:
        return 0
    root = table.storage.local_path(".")
    found: dict[Path, Provenance] = {}
    for folder in _batches(table.storage.local_path(f"data/{group}")):
        origin = Provenance.of(f"{folder.relative_to(root).as_posix()}/file")
        if origin is not None and not _has_files(folder):
            found[folder] = origin
    if not found:
        return 0
    ledger = table.next_offsets({origin.application_id for origin in found.values()})
    over = [folder for folder, origin in found.items() if origin.is_over(ledger)]
    return sum(_removed(folder) for folder in over)


def _batches(folder: Path) -> Iterator[Path]:
    for writer in _folders(folder):
        yield from _folders(writer)


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as found:
            return sorted(Path(one.path) for one in found if one.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []  # removed meanwhile


def _has_files(folder: Path) -> bool:
    return any(names for _, _, names in os.walk(folder))


def _removed(folder: Path) -> bool:
    """Whether it is gone, with all folders below it; not if a file has come meanwhile."""
    try:
        for place, _, _ in os.walk(folder, topdown=False):
            os.rmdir(place)  # noqa: PTH106 -- as `walk` names it
    except OSError:
        return False
    return True
