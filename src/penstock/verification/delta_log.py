"""Reads a Delta table's log from its JSON commits and Parquet checkpoints.

Knows what a check needs: which files the newest version names, which of them have a deletion
vector, their partition values, and the application transactions.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet

from penstock.errors import PenstockError
from penstock.model.json_text import read_json

_COMMIT = re.compile(r"(\d{20})\.json")
# An OSError is raised for damaged pages, too.
_OF_CONTENT = (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.\d{10}\.\d{10})?\.parquet")


@dataclass(slots=True)
class TableState:
    """A table at its newest version."""

    version: int = -1
    files: dict[str, Mapping[str, str | None]] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)
    with_deletion_vector: set[str] = field(default_factory=set)

    @property
    def has_deletion_vectors(self) -> bool:
        """Whether rows of a file that is still named are deleted."""
        return bool(self.with_deletion_vector)

    def apply(self, action: Mapping[str, Any]) -> None:
        if action.get("add"):
            added = action["add"]
            values, path = added.get("partitionValues") or {}, unquote(added["path"])
            self.files[path] = dict(values)
            if added.get("deletionVector"):
                self.with_deletion_vector.add(path)
        elif action.get("remove"):
            path = unquote(action["remove"]["path"])
            self.files.pop(path, None)
            self.with_deletion_vector.discard(path)
        elif action.get("txn"):
            self.transactions[action["txn"]["appId"]] = int(action["txn"]["version"])


def read_table(file_system: Any, root: str) -> TableState | None:
    """The newest version of the table below `root`; None when there is no table."""
    folder = f"{root}/_delta_log"
    chosen = pyarrow.fs.FileSelector(folder, allow_not_found=True)
    names = sorted(info.base_name for info in file_system.get_file_info(chosen))
    commits = {int(match[1]): name for name in names if (match := _COMMIT.fullmatch(name))}
    checkpoints: dict[int, list[str]] = {}
    for name in names:
        if match := _CHECKPOINT.fullmatch(name):
            checkpoints.setdefault(int(match[1]), []).append(name)
    if not commits and not checkpoints:
        return None
    state = TableState()
    start = max(checkpoints, default=-1)
    for name in checkpoints.get(start, []):
        with _readable(f"{folder}/{name}"):
            for action in _checkpoint_actions(file_system, f"{folder}/{name}"):
                state.apply(action)
    state.version = start
    for version in sorted(number for number in commits if number > start):
        if version != state.version + 1:
            raise BrokenLogError(f"{folder} has no commit {state.version + 1}")
        with _readable(f"{folder}/{commits[version]}"):
            with file_system.open_input_stream(f"{folder}/{commits[version]}") as stream:
                actions = [read_json(line) for line in stream.read().splitlines()]
            # Removed first: a file that gets a deletion vector is removed and added in one commit.
            for action in sorted(actions, key=lambda one: "remove" not in one):
                state.apply(action)
        state.version = version
    return state


def _checkpoint_actions(file_system: Any, path: str) -> Iterator[Mapping[str, Any]]:
    wanted = {"add", "txn"}  # a checkpoint does not list removed files as added
    with file_system.open_input_file(path) as opened:
        checkpoint = pyarrow.parquet.ParquetFile(opened)
        columns = [name for name in checkpoint.schema_arrow.names if name in wanted]
        for batch in checkpoint.iter_batches(columns=columns):
            for row in batch.to_pylist():
                if isinstance((row.get("add") or {}).get("partitionValues"), list):
                    row["add"]["partitionValues"] = dict(row["add"]["partitionValues"])
                yield row


class BrokenLogError(PenstockError):
    """A commit in the middle of the log is missing, or a file of the log cannot be read."""


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """BrokenLogError for whatever the content of the file makes its reader raise."""
    try:
        yield
    except (pa.ArrowException, *_OF_CONTENT) as error:
        raise BrokenLogError(
            f"{path} cannot be read: {type(error).__name__}.",
            remedy="Another tool may have damaged it: read the table with another reader.",
        ) from error
