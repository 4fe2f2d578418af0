"""What a commit costs on large tables and long logs, against the same on an empty table.

`python benchmarks/table_log.py [--rounds N] [--smaller N] [--folder F]` makes tables whose logs
say that they have 100,000 and 1,000,000 files (checkpoints are written directly, no file exists),
logs of 100,000 and 1,000,000 entries, and one of 100,000 without a checkpoint. It prints, for
each: how long the first look takes, the median time of begin and commit in rounds that take all
tables in turns, so that a busy machine is busy for all, and the peak memory of a process that does
the same on this table alone. The exit code is 1 when a target of the issue is missed: 1.5 times
the empty table's time, and 20 MB more.
"""

import argparse
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from penstock.model import TopicPartition
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.pipeline.written_files import WrittenFile
from penstock.settings.sections import LakeSettings

TIME_RATIO_MAX = 1.5
MEMORY_MORE_MAX_MB = 20.0
LEDGER_ENTRIES = 96  # 24 partitions with an offset, an epoch in two parts, and a leader's epoch
ROUNDS_FOR_MEMORY = 50
FIELDS = [
    {"name": name, "type": kind, "nullable": True, "metadata": {}}
    for name, kind in (("topic", "string"), ("offset", "long"), ("value", "binary"))
]
SCHEMA = json.dumps({"type": "struct", "fields": FIELDS})
STATS = json.dumps(
    {
        "numRecords": 1000,
        "minValues": {"topic": "orders", "offset": 1_000_000},
        "maxValues": {"topic": "orders", "offset": 1_001_000},
        "nullCount": {"topic": 0, "offset": 0, "value": 0},
    }
)
KEY_VALUES = pa.map_(pa.string(), pa.string())
ADD = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", KEY_VALUES),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
    ]
)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def lake_of(root: Path) -> LakeSettings:
    return LakeSettings(root=str(root), group="g")


def make_empty(root: Path, name: str) -> Path:
    LakeTable(lake_of(root), name).open_for(SCHEMA, ())
    return root / name / "_delta_log"


def written(number: int) -> WrittenFile:
    path = f"data/g/1-1/{number}.id.0.{number}/topic-id/part-0.parquet"
    return WrittenFile(path, 100_000, 1, 1000, {}, STATS)


def entry(number: int) -> str:
    """A commit as a consumer makes it, as it was made before this run."""
    name = f"g/old/{number % LEDGER_ENTRIES}"
    file = written(number)
    actions = [
        {"commitInfo": {"timestamp": 1, "operation": "WRITE", "penstockBatch": str(number)}},
        {
            "add": {
                "path": file.path,
                "partitionValues": {},
                "size": file.size_bytes,
                "modificationTime": 1,
                "dataChange": True,
                "stats": STATS,
            }
        },
        {"txn": {"appId": name, "version": number}},
    ]
    return "".join(f"{json.dumps(action)}\n" for action in actions)


def write_checkpoint(log: Path, version: int, files: int) -> None:
    """As deltalake orders it: rows of all kinds in one row group, which is the worst for us."""
    first = [json.loads(line) for line in (log / f"{0:020d}.json").read_text().splitlines()]
    metadata = next(one["metaData"] for one in first if "metaData" in one)
    protocol = next(one["protocol"] for one in first if "protocol" in one)
    few = [
        {"metaData": {**metadata, "configuration": list(metadata["configuration"].items())}},
        {"protocol": protocol},
        *(
            {"txn": {"appId": f"g/old/{number}", "version": 7, "lastUpdated": None}}
            for number in range(LEDGER_ENTRIES)
        ),
    ]
    schema = pa.schema(
        [
            ("txn", pa.struct({"appId": pa.string(), "version": pa.int64()})),
            ("add", ADD),
            (
                "metaData",
                pa.struct(
                    [
                        ("id", pa.string()),
                        ("schemaString", pa.string()),
                        ("partitionColumns", pa.list_(pa.string())),
                        ("configuration", KEY_VALUES),
                        ("format", pa.struct([("provider", pa.string())])),
                    ]
                ),
            ),
            (
                "protocol",
                pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())]),
            ),
        ]
    )
    path = log / f"{version:020d}.checkpoint.parquet"
    rows = pa.Table.from_pylist(few, schema=schema)
    at_once = 100_000
    tables = [rows]
    for start in range(0, files, at_once):
        count = min(at_once, files - start)
        added = [{"add": _add(start + number)} for number in range(count)]
        tables.append(pa.Table.from_pylist(added, schema=schema))
    pyarrow.parquet.write_table(pa.concat_tables(tables), path, row_group_size=2**21)
    hint = {"version": version, "size": files + len(few)}
    (log / "_last_checkpoint").write_text(json.dumps(hint))


def _add(number: int) -> dict[str, object]:
    return {
        "path": f"data/g/1-1/{number}.id.0.{number}/topic-id/part-0.parquet",
        "partitionValues": [],
        "size": 100_000,
        "modificationTime": 1,
        "dataChange": True,
        "stats": STATS,
    }


def make_files(root: Path, name: str, files: int) -> None:
    log = make_empty(root, name)
    (log / f"{1:020d}.json").write_text(entry(1))
    write_checkpoint(log, 1, files)


def make_entries(root: Path, name: str, entries: int, *, checkpoint: bool) -> None:
    log = make_empty(root, name)
    for number in range(1, entries + 1):
        (log / f"{number:020d}.json").write_text(entry(number))
    if checkpoint:
        write_checkpoint(log, entries - 30, 1000)


class Writer:
    """One consumer's way to one table."""

    def __init__(self, root: Path, name: str) -> None:
        self.table = LakeTable(lake_of(root), name)
        began = time.monotonic()
        self.at = self.table.next_offsets(["g/id/0"])["g/id/0"]
        self.first_look_s = time.monotonic() - began
        self.times_s: list[float] = []

    def begin_and_commit(self) -> None:
        end = (self.at or 0) + 1000
        moves = [LedgerMove(TopicPartition("orders", 0), "g/id/0", self.at, end)]
        began = time.monotonic()
        self.table.require_current(moves)
        self.table.open_for(SCHEMA, ())
        self.table.commit(moves, [written(end)], batch=f"{end}-{time.time_ns()}")
        self.times_s.append(time.monotonic() - began)
        self.at = end


def peak_memory_mb(root: Path, name: str) -> float:
    """In a process of its own, which opens this table alone and commits to it."""
    done = subprocess.run(
        [sys.executable, __file__, "--peak-of", name, str(root)],
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout)


def print_peak(root: Path, name: str) -> None:
    writer = Writer(root, name)
    for _ in range(ROUNDS_FOR_MEMORY):
        writer.begin_and_commit()
    # Not `ru_maxrss`, which begins with the memory of the process that started this one.
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    say(str(int(peak) / 1024))


def tables_to_make(smaller: int) -> dict[str, Callable[[Path, str], object]]:
    many, most = 100_000 // smaller, 1_000_000 // smaller
    return {
        "empty": make_empty,
        f"{many:,} files": lambda root, name: make_files(root, name, many),
        f"{most:,} files": lambda root, name: make_files(root, name, most),
        f"{many:,} entries": lambda root, name: make_entries(root, name, many, checkpoint=True),
        f"{most:,} entries": lambda root, name: make_entries(root, name, most, checkpoint=True),
        f"{many:,} entries, no checkpoint": lambda root, name: make_entries(
            root, name, many, checkpoint=False
        ),
    }


def run(root: Path, rounds: int, smaller: int) -> int:
    names = {}
    for number, (what, make) in enumerate(tables_to_make(smaller).items()):
        make(root, f"t{number}")
        names[what] = f"t{number}"
    memory = {what: peak_memory_mb(root, name) for what, name in names.items()}
    writers = {what: Writer(root, name) for what, name in names.items()}
    turns, chance = list(writers.values()), random.Random(1)
    for _ in range(rounds):
        chance.shuffle(turns)  # what one commit leaves to the disk, the next one waits for
        for writer in turns:
            writer.begin_and_commit()
    empty_s = statistics.median(writers["empty"].times_s)
    missed = []
    say(f"{'table':34} {'first look':>10} {'commit':>9} {'ratio':>6} {'peak':>8} {'more':>8}")
    for what, writer in writers.items():
        commit_s = statistics.median(writer.times_s)
        ratio, more_mb = commit_s / empty_s, memory[what] - memory["empty"]
        say(
            f"{what:34} {writer.first_look_s * 1000:7.1f} ms {commit_s * 1000:6.2f} ms "
            f"{ratio:6.2f} {memory[what]:5.0f} MB {more_mb:+5.1f} MB"
        )
        if ratio > TIME_RATIO_MAX:
            missed.append(f"{what}: a commit takes {ratio:.2f} times as long")
        if more_mb > MEMORY_MORE_MAX_MB:
            missed.append(f"{what}: {more_mb:.1f} MB more")
    for one in missed:
        say(f"MISSED {one}")
    return 1 if missed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--smaller", type=int, default=1, help="divide all sizes by this")
    parser.add_argument("--folder", type=Path, help="where the tables are made, such as /dev/shm")
    parser.add_argument("--peak-of", nargs=2, metavar=("TABLE", "ROOT"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peak_of:
        name, root = arguments.peak_of
        print_peak(Path(root), name)
        return 0
    folder = Path(tempfile.mkdtemp(prefix="penstock-table-log-", dir=arguments.folder))
    try:
        return run(folder, arguments.rounds, arguments.smaller)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
