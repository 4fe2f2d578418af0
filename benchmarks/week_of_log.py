"""A week of one table's log in compressed time: `python benchmarks/week_of_log.py [--folder F]`

One consumer makes as many commits as one a second gives in a week, as quickly as it can. What keeps
the log short runs beside it, as often for each commit as on a real day or more seldom: a child
process makes checkpoints and removes entries, and another joins the files of six hours (it only
names them: no data file exists). Retention is shortened with the time.

For each day it prints the commit's median and 99th percentile, this process's memory and open
files, and how many files the log has. The exit code is 1 when the last day's are not as flat as the
targets say, compared with the second day's: the first one has the start in it.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from table_log import SCHEMA, Writer, lake_of, say, written

from penstock.pipeline.checkpoint_files import hinted_rows
from penstock.pipeline.checkpoints import PROGRAM
from penstock.pipeline.lake_commit import LakeTable
from penstock.pipeline.log_entries import RemovedFile, encoded_path
from penstock.pipeline.storage import TableStorage

DAYS = 7
COMMITS_A_DAY = 86_400
JOINS_A_DAY = 4
# A day has 1,728 checkpoints of 50 commits; a child is not so much quicker than a clock.
CHECKPOINT_COMMITS = 2_000
TIME_RATIO_MAX, MEMORY_MORE_MAX_MB, OPEN_FILES_MORE_MAX = 1.5, 5.0, 2
NAME = "orders"


@dataclass(frozen=True, slots=True)
class Day:
    commit_s: float
    commit_p99_s: float
    memory_mb: float
    open_files: int
    log_files: int
    table_files: int


class Checkpoints:
    """One child at a time, beside the commits."""

    def __init__(self, root: Path) -> None:
        self._storage = TableStorage(lake_of(root), NAME)
        self._child: subprocess.Popen[bytes] | None = None
        self._commits = 0

    def committed(self) -> None:
        self._commits += 1
        if self._commits < CHECKPOINT_COMMITS:
            return
        if self._child is not None and self._child.poll() is None:
            return
        self.finish()
        self._commits = 0
        self._child = subprocess.Popen([sys.executable, "-P", PROGRAM], stdin=subprocess.PIPE)
        if self._child.stdin is None:
            raise AssertionError("the child has no stdin")
        with self._child.stdin as asked:
            asked.write(json.dumps(self._request()).encode())

    def _request(self) -> dict[str, Any]:
        rows = hinted_rows(self._storage) or 0
        return {"uri": self._storage.uri, "options": {}, "is_local": True, "rows": rows}

    def finish(self) -> None:
        if self._child is not None and self._child.wait() != 0:
            raise AssertionError("a checkpoint failed")
        self._child = None


def join_files(root: Path, number: int) -> None:
    """Name one file in place of all: what compaction does to a log. In a process of its own."""
    table = LakeTable(lake_of(root), NAME)
    now_ms = time.time_ns() // 1_000_000
    removed = [
        RemovedFile(encoded_path(file.path), file.size_bytes, {}, now_ms) for file in table.active()
    ]
    joined = written(10**12 + number)
    table.commit([], [joined], batch=f"join-{number}", removed=removed)


def day_of(root: Path, writer: Writer, commits: int, number: int) -> Day:
    checkpoints = Checkpoints(root)
    writer.times_s.clear()
    for turn in range(JOINS_A_DAY):
        for _ in range(commits // JOINS_A_DAY):
            writer.begin_and_commit()
            checkpoints.committed()
        checkpoints.finish()
        joined = [sys.executable, __file__, "--join", str(root), str(number * JOINS_A_DAY + turn)]
        subprocess.run(joined, check=True)
    times_s = sorted(writer.times_s)
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return Day(
        statistics.median(times_s),
        times_s[int(0.99 * len(times_s))],
        int(fields["VmRSS"].split()[0]) / 1024,
        len(list(Path("/proc/self/fd").iterdir())),
        len(list((root / NAME / "_delta_log").iterdir())),
        int(subprocess.check_output([sys.executable, __file__, "--files-of", str(root)])),
    )


def make_table(root: Path) -> None:
    LakeTable(lake_of(root), NAME).open_for(SCHEMA, ())
    DeltaTable(root / NAME).alter.set_table_properties(
        {
            "delta.logRetentionDuration": "interval 1 seconds",
            "delta.deletedFileRetentionDuration": "interval 1 seconds",
        }
    )


def run(root: Path, commits_a_day: int) -> int:
    subprocess.run([sys.executable, __file__, "--make", str(root)], check=True)
    writer = Writer(root, NAME)
    days = []
    say(f"{'day':>3} {'commit':>9} {'p99':>9} {'memory':>9} {'open':>5} {'log':>7} {'files':>6}")
    for number in range(DAYS):
        days.append(day := day_of(root, writer, commits_a_day, number))
        say(
            f"{number + 1:3} {day.commit_s * 1000:6.2f} ms {day.commit_p99_s * 1000:6.2f} ms "
            f"{day.memory_mb:6.1f} MB {day.open_files:5} {day.log_files:7} {day.table_files:6}"
        )
    second, last = days[1], days[-1]
    missed = {
        "commit time": last.commit_s > TIME_RATIO_MAX * second.commit_s,
        "memory": last.memory_mb > second.memory_mb + MEMORY_MORE_MAX_MB,
        "open files": last.open_files > second.open_files + OPEN_FILES_MORE_MAX,
    }
    for what in [what for what, is_missed in missed.items() if is_missed]:
        say(f"MISSED {what} is not flat")
    return int(any(missed.values()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where the table is made, such as /dev/shm")
    parser.add_argument("--smaller", type=int, default=1, help="divide a day's commits by this")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--join", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--files-of", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.make:
        make_table(arguments.make)
        return 0
    if arguments.join:
        join_files(Path(arguments.join[0]), int(arguments.join[1]))
        return 0
    if arguments.files_of:
        say(str(len(LakeTable(lake_of(arguments.files_of), NAME).active())))
        return 0
    folder = Path(tempfile.mkdtemp(prefix="penstock-week-", dir=arguments.folder))
    try:
        return run(folder, COMMITS_A_DAY // arguments.smaller)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
