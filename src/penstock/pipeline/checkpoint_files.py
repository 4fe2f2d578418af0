"""Reads a checkpoint's ledger, columns and protocol, and leaves its files alone.

A checkpoint is Parquet with one column a kind of action. A million files are a million rows of
`add`, in which the columns read here are null: they cost a few bytes a page. Row groups in which
all of them are null are skipped by their statistics, the others are read in small pieces. So the
memory does not depend on the number of files.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from penstock.model.json_text import read_json
from penstock.object_store.limits import ObjectStoreError
from penstock.pipeline.log_entries import LogNotUnderstoodError, metadata_of, protocol_of
from penstock.pipeline.storage import TableStorage
from penstock.pipeline.table_state import TableMetadata, TableProtocol

HINT_PATH = "_delta_log/_last_checkpoint"
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet")
_OTHER_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..*")
_COLUMNS = ("txn", "metaData", "protocol")
# Of each column one that is never null in a row of its kind.
_ALWAYS_SET = {"txn.appId", "metaData.id", "protocol.minReaderVersion"}
# Only in checkpoints of version 2, which keep their files elsewhere.
_VERSION_2 = "checkpointMetadata"
_ROWS_AT_ONCE = 4096
# A version has twenty digits in a file's name, and is a 64-bit number.
VERSION_MAX = 2**63 - 1
# A part has a hundred thousand files and more.
PARTS_MAX = 100_000


@dataclass(frozen=True, slots=True)
class CheckpointPlace:
    """A checkpoint of version 1 by its version, and in how many files it is."""

    version: int
    parts: int = 1

    def paths(self) -> list[str]:
        stem = f"_delta_log/{self.version:020d}.checkpoint"
        if self.parts == 1:
            return [f"{stem}.parquet"]
        numbers = range(1, self.parts + 1)
        return [f"{stem}.{number:010d}.{self.parts:010d}.parquet" for number in numbers]


@dataclass(slots=True)
class CheckpointContent:
    protocol: TableProtocol | None = None
    metadata: TableMetadata | None = None
    transactions: dict[str, int] = field(default_factory=dict)


def hinted_version(storage: TableStorage) -> int | None:
    """The version of the newest checkpoint, of whatever kind; None if nothing says it."""
    found = storage.read_marked(HINT_PATH)
    try:
        return None if found is None else int(read_json(found[0])["version"])
    except (ValueError, KeyError, TypeError):
        return None


def hinted_rows(storage: TableStorage) -> int | None:
    """How many rows the newest checkpoint has; None if nothing says it."""
    found = storage.read_marked(HINT_PATH)
    try:
        return None if found is None else int(read_json(found[0])["size"])
    except (ValueError, KeyError, TypeError):
        return None


def hinted_checkpoint(storage: TableStorage) -> CheckpointPlace | None:
    """The newest checkpoint as `_last_checkpoint` says; None if there is no such file."""
    try:
        with storage.open_file(HINT_PATH) as file:
            hint = read_json(file.read())
        if "v2Checkpoint" in hint:
            raise LogNotUnderstoodError("a checkpoint of version 2")
        place = CheckpointPlace(int(hint["version"]), int(hint.get("parts") or 1))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None  # a hint that cannot be read is as good as none: the log is listed
    is_possible = 0 <= place.version <= VERSION_MAX and 1 <= place.parts <= PARTS_MAX
    return place if is_possible else None


def newest_checkpoint(names: Iterable[str]) -> CheckpointPlace | None:
    """Of the files in a log, the newest checkpoint that has all its parts."""
    parts: dict[CheckpointPlace, int] = {}
    newest_other = -1
    for name in names:
        found = _CHECKPOINT.fullmatch(name)
        other = _OTHER_CHECKPOINT.fullmatch(name)
        if found:
            place = CheckpointPlace(int(found[1]), int(found[3] or 1))
            parts[place] = parts.get(place, 0) + 1
        elif other:
            newest_other = max(newest_other, int(other[1]))
    whole = [place for place, count in parts.items() if count >= place.parts]
    newest = max(whole, key=lambda place: place.version, default=None)
    if newest_other > (-1 if newest is None else newest.version):
        raise LogNotUnderstoodError("a checkpoint of version 2")
    return newest


def read_checkpoint(storage: TableStorage, place: CheckpointPlace) -> CheckpointContent:
    """Raises FileNotFoundError when a part is missing, ObjectStoreError when it is not given."""
    content = CheckpointContent()
    for path in place.paths():
        try:
            with storage.open_file(path) as file:
                _read_part(pyarrow.parquet.ParquetFile(file), content)
        except (FileNotFoundError, ObjectStoreError):
            raise
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
            # pyarrow raises an OSError for damaged pages, too.
            raise LogNotUnderstoodError(f"{path} cannot be read: {error}") from error
    return content


def _read_part(parquet: Any, content: CheckpointContent) -> None:
    names = {field.name for field in parquet.schema_arrow}
    if _VERSION_2 in names:
        raise LogNotUnderstoodError("a checkpoint of version 2")
    columns = [name for name in _COLUMNS if name in names]
    groups = [
        number
        for number in range(parquet.num_row_groups)
        if _may_have_actions(parquet.metadata.row_group(number))
    ]
    # Without threads: each would keep memory of its own, and there is little to decode.
    for batch in parquet.iter_batches(
        _ROWS_AT_ONCE, row_groups=groups, columns=columns, use_threads=False
    ):
        for name in columns:
            _take(name, batch.column(name), content)


def _may_have_actions(group: Any) -> bool:
    """Whether one of our columns has a value, or the statistics do not say."""
    for number in range(group.num_columns):
        column = group.column(number)
        if column.path_in_schema not in _ALWAYS_SET:
            continue
        statistics = column.statistics
        if statistics is None or not statistics.has_null_count:
            return True
        if statistics.null_count < group.num_rows:
            return True
    return False


def _take(name: str, column: Any, content: CheckpointContent) -> None:
    if column.null_count == len(column):
        return
    actions: Sequence[dict[str, Any]] = column.drop_null().to_pylist()
    for action in actions:
        if name == "txn":
            content.transactions[action["appId"]] = int(action["version"])
        elif name == "metaData":
            content.metadata = metadata_of(action)
        else:
            content.protocol = protocol_of(action)
