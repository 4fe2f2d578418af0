"""Reads the times and sizes of batches from a table's Delta log and from a consumer's log."""

import datetime as dt
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute
import pyarrow.parquet

from penstock.errors import PenstockError


@dataclass(frozen=True, slots=True)
class CommitTiming:
    at_ms: int
    records: int
    files: tuple[Path, ...]


def commits_of(table: Path) -> list[CommitTiming]:
    """The commits of one table that added files, oldest first."""
    found = []
    for log in sorted((table / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        added = [action["add"] for action in actions if "add" in action]
        at_ms = next((a["commitInfo"]["timestamp"] for a in actions if "commitInfo" in a), 0)
        if added:
            records = sum(json.loads(one["stats"])["numRecords"] for one in added)
            found.append(CommitTiming(at_ms, records, tuple(table / one["path"] for one in added)))
    return found


def records_per_s(log_file: Path) -> float:
    """Records per second over all batches but the first, from the end of the first one on.

    It reads the consumer's log, because a batch over several tables has several commits. If there
    is only one batch, its own duration counts.
    """
    rows = []
    for line in log_file.read_text(encoding="utf-8").splitlines():
        row = json.loads(line) if line.startswith("{") else {}
        if row.get("event") == "batch_carried":
            at_s = dt.datetime.fromisoformat(row["timestamp"]).timestamp()
            rows.append((at_s, row["records"], row["seconds"]))
    if not rows:
        raise PenstockError("The consumer carried nothing.")
    if len(rows) == 1:
        return float(rows[0][1] / rows[0][2])
    return float(sum(records for _, records, _ in rows[1:]) / (rows[-1][0] - rows[0][0]))


def latencies_s(table: Path, *, skip: int) -> Iterator[float]:
    """Seconds from production to commit of every record, without the first `skip` commits."""
    for commit in commits_of(table)[skip:]:
        for file in commit.files:
            # Read as a single file: as a dataset, folder names would become columns.
            column = pyarrow.parquet.ParquetFile(file).read(columns=["timestamp"])["timestamp"]
            produced = pyarrow.compute.cast(column, "int64").to_pylist()
            yield from (commit.at_ms / 1000 - at / 1e6 for at in produced)
