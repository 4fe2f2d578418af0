"""What compaction leaves of a day at 1 MB/s and one commit a second, and what it costs.

`python benchmarks/lake_day.py [--hours H] [--smaller N] [--minutes M] [--folder F] [--spark]`

Files: every second of the day is a commit of one real file, and after every 60 commits files are
joined, as a consumer does it once a minute. Time is compressed: nothing waits for the minute. The
files and `lake.file_size` are smaller by the same factor (64, so that a day takes 1.3 GB), which
changes no count. Printed is the highest number of files after a join, of what the issue allows:
1.5 times the bytes over the file size, plus 300.

Cost: the same with files of full size, for some minutes, each join by a child process as in a
consumer. Printed is the children's processor time, their start included, over the minutes: the
share of a core, of the 10 % that the issue allows. Values are random, so that no codec has it easy.

With `--spark` the same files are also joined by Spark with one task, for decision 0145.

The exit code is 1 when one of the two is missed.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from deltalake import DeltaTable, Schema

from penstock.model import TopicPartition
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.pipeline.table_keeper import TableKeeper
from penstock.pipeline.upkeep import UpkeepWork, keep_up_table
from penstock.pipeline.written_files import WrittenFile, written_files
from penstock.settings.sections import LakeSettings
from penstock.spark_worker.record_columns import RECORD_COLUMNS, ZSTD_LEVEL

BYTES_PER_S = 1_000_000
FILE_SIZE = 128 * 2**20
RECORD_BYTES = 1_000
COMMITS_A_RUN = 60
FILES_MORE_MAX = 300
FILES_RATIO_MAX = 1.5
SHARE_MAX = 0.10
DIFFERENT_FILES = 200
SPARK_JOINS = 4


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def raw_rows(records: int, number: int) -> pa.Table:
    """Records as the pass-through way stores them, with random values."""
    chance = np.random.default_rng(number)
    values = [chance.bytes(RECORD_BYTES) for _ in range(records)]
    columns = {
        "key": [b"%016d" % number for number in range(records)],
        "value": values,
        "topic": ["orders"] * records,
        "partition": [0] * records,
        "offset": list(range(records)),
        "timestamp": [1_700_000_000_000_000 + number for number in range(records)],
        "timestampType": [0] * records,
        "headers": [None] * records,
    }
    arrays = [pa.array(columns[name], kind) for name, kind in RECORD_COLUMNS.items()]
    return pa.table(arrays, names=list(RECORD_COLUMNS))


class Day:
    """A table that gets one commit of one file a second."""

    def __init__(self, root: Path, file_bytes: int, file_size: int) -> None:
        self.lake = LakeSettings(
            root=str(root), group="g", file_size=file_size, removed_file_retention="0s"
        )
        self.table = LakeTable(self.lake, "orders")
        schema = pa.schema(list(RECORD_COLUMNS.items()))
        self.table.open_for(Schema.from_arrow(schema).to_json(), ())
        self._seconds = 0
        # Others each time for longer than a codec looks back, or joined files would shrink.
        self._files = [self._made(number, file_bytes) for number in range(DIFFERENT_FILES)]
        self.described = self._files[0][0]

    def _made(self, number: int, file_bytes: int) -> tuple[WrittenFile, bytes]:
        made = self._path("made")
        made.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(
            raw_rows(max(1, file_bytes // RECORD_BYTES), number),
            made,
            compression="zstd",
            compression_level=ZSTD_LEVEL,
            use_dictionary=["topic", "partition", "timestampType"],
        )
        (described,) = written_files(self.table.storage, "data/g/1-1/made")
        content = made.read_bytes()
        made.unlink()
        return described, content

    def _path(self, folder: str) -> Path:
        return Path(self.table.storage.uri) / f"data/g/1-1/{folder}/topic-id/part-0.parquet"

    def second(self) -> None:
        at = self._seconds
        folder = f"{at}.id.0.{at or 'new'}"
        path = self._path(folder)
        path.parent.mkdir(parents=True)
        described, content = self._files[at % DIFFERENT_FILES]
        path.write_bytes(content)
        inside = path.relative_to(self.table.storage.uri).as_posix()
        now_ms = time.time_ns() // 1_000_000
        file: WrittenFile = replace(described, path=inside, modified_at_ms=now_ms)
        move = LedgerMove(TopicPartition("orders", 0), "g/id/0", at or None, at + 1)
        self.table.commit([move], [file], batch=f"data/g/1-1/{folder}")
        self._seconds = at + 1


def files_of_a_day(root: Path, hours: float, smaller: int) -> float:
    """The highest number of files after a join, of what is allowed."""
    day = Day(root, BYTES_PER_S // smaller, FILE_SIZE // smaller)
    keeping = LakeTable(day.lake, "orders")
    joins = UpkeepWork(finishes_all=False, joins_foreign=False, sweeps=False)
    sweeps = replace(joins, sweeps=True)
    highest, rewritten, arrived = 0.0, 0, 0
    began = time.monotonic()
    for second in range(1, round(hours * 3600) + 1):
        day.second()
        if second % COMMITS_A_RUN:
            continue
        report = keep_up_table(day.lake, keeping, sweeps if second % 3600 == 0 else joins)
        rewritten += report.bytes_rewritten
        files = keeping.active()
        allowed = FILES_RATIO_MAX * sum(one.size_bytes for one in files) / day.lake.file_size
        allowed += FILES_MORE_MAX
        highest = max(highest, len(files) / allowed)
        if second % 3600 == 0:
            arrived = second * day.described.size_bytes
            say(
                f"hour {second // 3600:2}: {len(files):5} files, {allowed:6.0f} allowed, each byte "
                f"rewritten {rewritten / arrived:.2f} times; {time.monotonic() - began:.0f} s"
            )
    (finished,) = [keep_up_table(day.lake, keeping)]
    table = DeltaTable(day.table.storage.uri)
    records = sum(one.records or 0 for one in keeping.active())
    if records != round(hours * 3600) * day.described.records:
        raise AssertionError(f"{records} records are left")
    say(f"finished: {finished.files_after} files at version {table.version()}")
    return highest


def share_of_a_core(root: Path, minutes: int) -> float:
    """Processor time of the children over the minutes."""
    day = Day(root, BYTES_PER_S, FILE_SIZE)
    keeper = TableKeeper(day.lake)
    taken_s = rewritten = 0.0
    for minute in range(1, minutes + 1):
        for _ in range(COMMITS_A_RUN):
            day.second()
        kept = keeper.keep(["orders"])
        if kept.failure is not None:
            raise kept.failure
        taken_s += kept.processor_s
        (report,) = kept.reports
        rewritten += report.bytes_rewritten
        say(
            f"minute {minute:2}: {kept.processor_s:5.2f} s for {report.bytes_rewritten / 1e6:6.1f} "
            f"MB, {report.files_after} files"
        )
    keeper.close()
    say(f"{rewritten / 1e6:.0f} MB in {taken_s:.1f} s of processor time, starts included")
    return taken_s / (minutes * 60)


def spark_joins(source: Path) -> None:
    """Join the files with Spark, one task; print the JVM's processor time for each time."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 -- slow, and only for this

    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = session.getOrCreate()
    (machine,) = [
        one.parent
        for one in Path("/proc").glob("[0-9]*/stat")
        if one.read_text().split(") ")[1].split()[1] == str(os.getpid())
    ]
    before_s = 0.0
    for number in range(SPARK_JOINS):
        rows = spark.read.parquet(f"{source}/files").coalesce(1)
        rows.write.option("compression", "zstd").parquet(f"{source}/joined-{number}")
        fields = (machine / "stat").read_text().split(") ")[1].split()
        now_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        say(f"{now_s - before_s}")
        before_s = now_s
    spark.stop()


def compare_with_spark(root: Path) -> None:
    """Processor time for the join of a minute's files: by Arrow in a child, and by Spark."""
    day = Day(root, BYTES_PER_S, FILE_SIZE)
    for _ in range(COMMITS_A_RUN):
        day.second()
    source = root / "spark"
    (source / "files").mkdir(parents=True)
    for number, file in enumerate(day.table.active()):
        shutil.copy(Path(day.table.storage.uri) / file.path, source / "files" / f"{number}.parquet")
    command = [sys.executable, __file__, "--spark-joins", str(source)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    first, *later = (float(line) for line in done.stdout.split())
    kept = TableKeeper(day.lake).keep(["orders"])
    say(
        f"a minute's files: {kept.processor_s:.2f} s in a child, start included; Spark "
        f"{min(later):.2f} s in a session that is up, {first:.1f} s with its start"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--smaller", type=int, default=64)
    parser.add_argument("--minutes", type=int, default=15)
    parser.add_argument("--folder", type=Path, help="where the tables are made")
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--spark-joins", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.spark_joins:
        spark_joins(arguments.spark_joins)
        return 0
    missed = False
    folder = Path(tempfile.mkdtemp(prefix="penstock-lake-day-", dir=arguments.folder))
    try:
        if arguments.spark:
            compare_with_spark(folder / "compared")
        if arguments.minutes:
            share = share_of_a_core(folder / "cost", arguments.minutes)
            say(f"cost: {share:.1%} of a core, {share / SHARE_MAX:.2f} of what is allowed")
            missed = share > SHARE_MAX
        if arguments.hours:
            highest = files_of_a_day(folder / "day", arguments.hours, arguments.smaller)
            say(f"files: at most {highest:.2f} of what is allowed")
            missed = missed or highest > 1
    finally:
        shutil.rmtree(folder)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
