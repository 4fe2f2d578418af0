"""Reads from a lake's own logs when each batch was committed and what it carried."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute
import pyarrow.parquet

from penstock.errors import PenstockError


@dataclass(frozen=True, slots=True)
class Commit:
    at_ms: int
    records: int
    files: tuple[Path, ...]


def commits_of(table: Path) -> list[Commit]:
    """The commits of one table that added files, oldest first."""
    found = []
    for log in sorted((table / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        added = [action["add"] for action in actions if "add" in action]
        at_ms = next((a["commitInfo"]["timestamp"] for a in actions if "commitInfo" in a), 0)
        if added:
            records = sum(json.loads(one["stats"])["numRecords"] for one in added)
            found.append(Commit(at_ms, records, tuple(table / one["path"] for one in added)))
    return found


def records_per_s(tables: Iterable[Path]) -> float:
    """Records a second over all commits but the first, which began the clock."""
    commits = sorted(
        (one for table in tables for one in commits_of(table)), key=lambda one: one.at_ms
    )
    later = [one for one in commits if one.at_ms > commits[0].at_ms]
    if not later:
        raise PenstockError("One commit alone tells no speed: give it more records.")
    return sum(one.records for one in later) / (later[-1].at_ms - commits[0].at_ms) * 1000


def latencies_s(table: Path, *, skip: int) -> Iterator[float]:
    """From a record's production to its commit, for every record; the first commits warm up."""
    for commit in commits_of(table)[skip:]:
        for file in commit.files:
            # One file, not a dataset: the folders' names are no columns here.
            column = pyarrow.parquet.ParquetFile(file).read(columns=["timestamp"])["timestamp"]
            produced = pyarrow.compute.cast(column, "int64").to_pylist()
            yield from (commit.at_ms / 1000 - at / 1e6 for at in produced)
