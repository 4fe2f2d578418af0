"""Makes the next checkpoint of a table out of the last one and the entries since, piece by piece.

deltalake holds all files of a table for it, 1.5 KB each, and a consumer's pod has no gigabyte to
spare. Here the memory does not depend on their number. The checkpoint is as deltalake would make
it: the files of the newest version, removed files whose time is not over, ledger, columns and
protocol. The last three are in a row group of their own, which is all that a consumer reads of it.
"""

import contextlib
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from penstock.pipeline.checkpoint_files import HINT_PATH, CheckpointPlace, hinted_version
from penstock.pipeline.checkpoint_schema import ADD, CHECKPOINT, DAMAGE, REMOVE, array_of, stored
from penstock.pipeline.log_cleanup import clean_up_log
from penstock.pipeline.log_entries import LogNotUnderstoodError
from penstock.pipeline.log_replay import LOG, LogReplay, replay
from penstock.pipeline.storage import TableStorage
from penstock.settings.sections import LakeSettings

# A checkpoint that is being written on a file system; left behind when its writer is killed.
TEMPORARY_PREFIX, TEMPORARY_SUFFIX = "_checkpoint_", ".parquet.tmp"
# Rows that are written together. What is encoded of a row group is held until it is whole.
_GROUP_ROWS = 2**14


class LogReplacedError(OSError):
    """The log is no longer the one that was read: nothing was written."""


def made_at(uri: str, options: dict[str, str], now_ms: int) -> bool:
    """Make the next checkpoint there; False if the log has what only deltalake understands."""
    root, _, name = uri.rpartition("/")
    lake = LakeSettings(root=root, storage_options=options)
    try:
        make_next_checkpoint(TableStorage(lake, name), now_ms)
    except LogNotUnderstoodError:
        return False
    return True


def make_next_checkpoint(storage: TableStorage, now_ms: int) -> None:
    """A checkpoint of the newest version; then entries whose time is over are removed.

    Raises LogNotUnderstoodError before anything is published.
    """
    pa.set_cpu_count(1)
    found = replay(storage)
    # Somebody else has made a later one and cleaned up this one's beginning, or another table.
    with contextlib.suppress(LogReplacedError, FileNotFoundError):
        write_checkpoint(found, now_ms)
        clean_up_log(found, now_ms)


def write_checkpoint(found: LogReplay, now_ms: int) -> None:
    """Write the checkpoint of the version that was read, and name it in the log's hint."""
    oldest_ms = found.oldest_removed_ms(now_ms)
    if found.place is not None and found.place.version == found.version:
        _require_same_log(found)
        _name_in_hint(found.storage, found.place)
        return
    (path,) = CheckpointPlace(found.version).paths()
    counts = {"add": 0, "remove": 0, "few": 0}
    try:
        with _published(found, path) as file:
            _write(file, found, oldest_ms, counts)
    except DAMAGE as error:
        raise LogNotUnderstoodError(f"an action is damaged: {error}") from error
    hint = {
        "version": found.version,
        "size": sum(counts.values()),
        "sizeInBytes": found.storage.file_at(path).size_bytes,
        "numOfAddFiles": counts["add"],
    }
    if (hinted_version(found.storage) or 0) <= found.version:
        _replace(found.storage, HINT_PATH, json.dumps(hint).encode())


def _name_in_hint(storage: TableStorage, place: CheckpointPlace) -> None:
    """Name a checkpoint that is there, unless it is named: its writer may have been killed.

    Before entries are removed: by the hint a writer that stood still sees that its version is free
    only because of a clean-up. A second checkpoint of one version, in another number of parts,
    would make the hint wrong for one of them, and the table unreadable for some.
    """
    named = hinted_version(storage)
    if named is not None and named >= place.version:
        return
    rows = 0
    for path in place.paths():
        with storage.open_file(path) as file:
            rows += pyarrow.parquet.read_metadata(file).num_rows
    hint = {"version": place.version, "size": rows}
    if place.parts > 1:
        hint["parts"] = place.parts
    _replace(storage, HINT_PATH, json.dumps(hint).encode())


def _write(file: Any, found: LogReplay, oldest_ms: int, counts: dict[str, int]) -> None:
    with pyarrow.parquet.ParquetWriter(
        file, CHECKPOINT, compression="snappy", use_dictionary=False
    ) as writer:
        few = _few(found)
        writer.write_table(few)
        counts["few"] = len(few)
        for rows in _grouped(_files(found, oldest_ms), counts):
            writer.write_table(rows)


def _few(found: LogReplay) -> Any:
    actions = [
        ("protocol", found.protocol),
        ("metaData", found.metadata),
        *(("txn", one) for one in found.transactions.values()),
    ]
    rows = [{name: stored(action, CHECKPOINT.field(name).type)} for name, action in actions]
    return pa.Table.from_pylist(rows, schema=CHECKPOINT)


def _files(found: LogReplay, oldest_ms: int) -> Iterator[tuple[str, Any]]:
    """All `add` and `remove` actions of the newest version, as struct arrays."""
    for adds, removes in found.unchanged_files():
        yield "add", adds
        yield "remove", _not_over(removes, oldest_ms)
    yield "add", array_of(found.added.values(), ADD)
    yield "remove", _not_over(array_of(found.removed.values(), REMOVE), oldest_ms)


def _not_over(removes: Any, oldest_ms: int) -> Any:
    """Removed files that may still be needed to read an old version."""
    if not len(removes):
        return removes
    times = pc.fill_null(pc.struct_field(removes, "deletionTimestamp"), 0)
    return removes.filter(pc.greater(times, oldest_ms))


def _grouped(pieces: Iterator[tuple[str, Any]], counts: dict[str, int]) -> Iterator[Any]:
    held: list[Any] = []
    for name, actions in pieces:
        if not len(actions):
            continue
        counts[name] += len(actions)
        columns = [
            actions if one.name == name else pa.nulls(len(actions), one.type) for one in CHECKPOINT
        ]
        held.append(pa.table(columns, schema=CHECKPOINT))
        if sum(map(len, held)) >= _GROUP_ROWS:
            yield pa.concat_tables(held)
            held = []
    if held:
        yield pa.concat_tables(held)


@contextmanager
def _published(found: LogReplay, path: str) -> Iterator[Any]:
    """A file that is there under its name as a whole, or not at all."""
    storage = found.storage
    if not storage.is_local:
        with storage.create_file(path) as file:
            yield file
            _require_same_log(found)
        return
    temporary = storage.local_path(f"{LOG}/{TEMPORARY_PREFIX}{uuid.uuid4()}{TEMPORARY_SUFFIX}")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            # Before the rename, or a power cut could leave a checkpoint without content.
            os.fsync(file.fileno())
        _require_same_log(found)
        temporary.replace(storage.local_path(path))
    finally:
        temporary.unlink(missing_ok=True)


def _require_same_log(found: LogReplay) -> None:
    if not found.is_still_there():
        raise LogReplacedError("the log was replaced or cleaned up meanwhile")


def _replace(storage: TableStorage, path: str, content: bytes) -> None:
    if not storage.is_local:
        with storage.create_file(path) as file:
            file.write(content)
        return
    temporary = storage.local_path(f"{LOG}/{TEMPORARY_PREFIX}{uuid.uuid4()}{TEMPORARY_SUFFIX}")
    try:
        temporary.write_bytes(content)
        temporary.replace(storage.local_path(path))
    finally:
        temporary.unlink(missing_ok=True)
