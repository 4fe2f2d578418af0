"""What keeping a table costs with 10,000, 100,000 and 1,000,000 files: memory and processor time.

`python benchmarks/table_upkeep.py [--files N ...] [--folder F] [--on-disk]` makes tables whose logs
say that they have so many files of full size and fifty commits since the last checkpoint. Then it
runs the child processes of a consumer on them as the consumer does: one checkpoint, one look for
files to join (with a join of forty small files that are there), and one sweep. It prints the peak
memory and the processor time of each, and how much more memory that is than on the smallest table.
With `--on-disk` all files exist (empty), so that the sweep lists them. The exit code is 1 when a
child takes 200 MB more than on the smallest table.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from table_log import LEDGER_ENTRIES, STATS, lake_of, make_empty, say

from penstock.model import TopicPartition
from penstock.pipeline.checkpoint_files import hinted_rows
from penstock.pipeline.checkpoint_schema import ADD, CHECKPOINT, array_of, stored
from penstock.pipeline.checkpoints import PROGRAM as CHECKPOINTS
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.pipeline.log_replay import LogReplay, replay
from penstock.pipeline.table_keeper import PROCESSOR_S_MAX
from penstock.pipeline.table_keeper import PROGRAM as KEEPER
from penstock.pipeline.written_files import written_files

MORE_MAX_MB = 200.0
COMMITS = 50
SMALL_FILES = 40
AT_ONCE = 50_000
FULL_SIZE_BYTES = 120_000_000
TABLE = "orders"
# Runs a program to its end and prints what it took. Not `ru_maxrss`, which begins with the memory
# of the process that started this one.
_MEASURED = """
import runpy, sys, time
from pathlib import Path
try:
    runpy.{run}({program!r}, run_name="__main__")
finally:
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    sys.stderr.write(f"\\n{{int(peak) / 1024}} {{time.process_time()}}\\n")
"""


def make_table(root: Path, files: int, *, on_disk: bool) -> LakeTable:
    log = make_empty(root, TABLE)
    # Of each join that made one of the files.
    moved = {"txn": {"appId": "g/compaction/0", "version": files}}
    (log / f"{1:020d}.json").write_text(f"{json.dumps(moved)}\n")
    table = LakeTable(lake_of(root), TABLE)
    found = replay(table.storage)
    write_checkpoint(log, found, files)
    if on_disk:
        for number in range(files):
            file = log.parent / _path(number)
            file.parent.mkdir(parents=True)
            file.touch()
    for number in range(COMMITS):
        _commit(table, number, with_file=number < SMALL_FILES)
    return table


def write_checkpoint(log: Path, found: LogReplay, files: int) -> None:
    """Of version 1, with so many files."""
    few: list[dict[str, Any]] = [{"protocol": found.protocol}, {"metaData": found.metadata}]
    few += [{"txn": one} for one in found.transactions.values()]
    few += [{"txn": {"appId": f"g/old/{number}", "version": 7}} for number in range(LEDGER_ENTRIES)]
    path = log / f"{1:020d}.checkpoint.parquet"
    now_ms = time.time_ns() // 1_000_000
    with pyarrow.parquet.ParquetWriter(path, CHECKPOINT, use_dictionary=False) as writer:
        stated = [
            {name: stored(action, CHECKPOINT.field(name).type) for name, action in one.items()}
            for one in few
        ]
        writer.write_table(pa.Table.from_pylist(stated, schema=CHECKPOINT))
        for start in range(0, files, AT_ONCE):
            numbers = range(start, min(files, start + AT_ONCE))
            adds = array_of((_add(number, now_ms) for number in numbers), ADD)
            columns = [
                adds if one.name == "add" else pa.nulls(len(adds), one.type) for one in CHECKPOINT
            ]
            writer.write_table(pa.table(columns, schema=CHECKPOINT))
    hint = {"version": 1, "size": files + len(few)}
    (log / "_last_checkpoint").write_text(json.dumps(hint))


def _path(number: int) -> str:
    return f"data/g/compaction/{number}.compaction.0.{number}/topic-id/part-{number}.parquet"


def _add(number: int, now_ms: int) -> dict[str, Any]:
    return {
        "path": _path(number),
        "partitionValues": {},
        "size": FULL_SIZE_BYTES,
        "modificationTime": now_ms,
        "dataChange": False,
        "stats": STATS.replace("1000000", f"{1000 * number}").replace("1001000", f"{number}999"),
    }


def _commit(table: LakeTable, number: int, *, with_file: bool) -> None:
    """A batch of one small file."""
    at = table.next_offsets(["g/id/0"])["g/id/0"]
    end = (at or 0) + 10
    folder = f"data/g/1-1/{number}.id.0.{'new' if at is None else at}"
    if with_file:
        file = Path(table.storage.uri) / folder / "topic-id" / "part-0.parquet"
        file.parent.mkdir(parents=True)
        rows = {"topic": ["orders"] * 10, "offset": range(10), "value": [b"v" * 100] * 10}
        pyarrow.parquet.write_table(pa.table(rows), file)
    move = LedgerMove(TopicPartition("orders", 0), "g/id/0", at, end)
    files = written_files(table.storage, folder) if with_file else []
    table.commit([move], files, batch=folder)


def measured(run: str, program: str, request: dict[str, Any]) -> tuple[float, float, str]:
    """Peak memory in MB, processor time in seconds, and what the child said."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", _MEASURED.format(run=run, program=program)],
        check=True,
        capture_output=True,
        text=True,
        input=json.dumps(request),
    )
    peak_mb, processor_s = done.stderr.strip().splitlines()[-1].split()
    return float(peak_mb), float(processor_s), done.stdout


def measure(root: Path, files: int, *, on_disk: bool) -> dict[str, tuple[float, float]]:
    table = make_table(root, files, on_disk=on_disk)
    storage = table.storage
    asked = {"uri": storage.uri, "options": {}, "is_local": True, "rows": hinted_rows(storage)}
    found = {"checkpoint": measured("run_path", str(CHECKPOINTS), asked)[:2]}
    if (table.versions()[1] or 0) <= 1:
        raise AssertionError("no checkpoint was made")
    for what, sweeps in (("look and join", []), ("sweep", [TABLE])):
        request = {
            "lake": lake_of(root).model_dump(mode="json"),
            "tables": [TABLE],
            "sweeps": sweeps,
            "processor_s_max": PROCESSOR_S_MAX,
        }
        peak_mb, processor_s, said = measured("run_module", KEEPER, request)
        if '"report"' not in said:
            raise AssertionError(said)
        if '"files_after": ' + str(files + 1) not in said:
            raise AssertionError(f"the small files were not joined: {said}")
        found[what] = peak_mb, processor_s
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--folder", type=Path, help="where the tables are made, such as /dev/shm")
    parser.add_argument("--on-disk", action="store_true", help="make the files, too, empty")
    arguments = parser.parse_args()
    first: dict[str, tuple[float, float]] = {}
    missed = []
    say(f"{'child':16} {'files':>10} {'peak':>9} {'more':>9} {'processor':>10}")
    for files in arguments.files:
        folder = Path(tempfile.mkdtemp(prefix="penstock-table-upkeep-", dir=arguments.folder))
        try:
            found = measure(folder, files, on_disk=arguments.on_disk)
        finally:
            shutil.rmtree(folder)
        first = first or found
        for what, (peak_mb, processor_s) in found.items():
            more_mb = peak_mb - first[what][0]
            say(f"{what:16} {files:10,} {peak_mb:6.0f} MB {more_mb:+6.0f} MB {processor_s:8.2f} s")
            if more_mb > MORE_MAX_MB:
                missed.append(f"{what}, {files:,} files: {more_mb:.0f} MB more")
    for one in missed:
        say(f"MISSED {one}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
