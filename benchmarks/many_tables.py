"""What a consumer of a thousand quiet tables costs: `python benchmarks/many_tables.py`

No broker and no Spark: what is measured is what grows with the number of tables.

- the ledger of every table is read once, as at a start: the time for each, and the peak memory of
  a process that keeps all tables open, or a few (`lake.open_tables`);
- a look that finds nothing, in the consumer's core: processor time with 1,000 partitions, and with
  24, for each partition. The exit code is 1 when it costs more for each of many than for each of
  few, or when memory is not bounded by the setting.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from penstock.consumer.core import inputs
from penstock.consumer.core.effects import ReadEnds
from penstock.consumer.core.inputs import LedgerEntry
from penstock.consumer.core.ownership import Ownership
from penstock.consumer.core.settings import core_settings
from penstock.consumer.core.state_machine import begin, step
from penstock.messages import PartitionToStart, StartConsumingCommand
from penstock.model import ConsumerId, Epoch, TopicPartition
from penstock.pipeline import Pipeline
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.settings import Settings
from penstock.settings.sections import LakeSettings

FIELDS = ",".join(
    f'{{"name":"{name}","type":"string","nullable":true,"metadata":{{}}}}'
    for name in ("topic", "key", "value", "headers", "timestamp", "partition", "offset")
)
SCHEMA = f'{{"type":"struct","fields":[{FIELDS}]}}'
FEW_OPEN = 50
LOOKS = 200
# For each partition; fixed costs make it lower with many.
COST_RATIO_MAX = 1.2


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def lake_of(root: Path, open_tables: int) -> LakeSettings:
    return LakeSettings(root=str(root), group="g", open_tables=open_tables)


def make_tables(root: Path, count: int) -> None:
    for number in range(count):
        table = LakeTable(lake_of(root, 1), f"topic-{number:05d}")
        table.open_for(SCHEMA, ())
        for end in range(1, 4):
            move = LedgerMove(
                TopicPartition(table.name, 0), "g/id/0", end - 1 if end > 1 else None, end
            )
            table.commit([move], [], batch=f"b{end}")


def read_all(root: Path, count: int, open_tables: int) -> None:
    """In a process of its own: seconds for each table, and the memory it took, in MB."""
    pipeline = Pipeline(Settings(lake=lake_of(root, open_tables)), None)
    partitions = {TopicPartition(f"topic-{one:05d}", 0): "id" for one in range(count)}
    first = dict(list(partitions.items())[:1])
    pipeline.read_ledger(first, "authority")
    before_mb, began_s = _memory_mb(), time.monotonic()
    view = pipeline.read_ledger(partitions, "authority")
    if set(view.next_offsets.values()) != {3}:
        raise AssertionError("a ledger was not read")
    say(f"{(time.monotonic() - began_s) / count} {_memory_mb() - before_mb}")


def _memory_mb() -> float:
    (line,) = [one for one in Path("/proc/self/status").read_text().splitlines() if "VmRSS" in one]
    return int(line.split()[1]) / 1024


def look_s(count: int) -> float:
    """Processor time of one look that finds nothing, for each partition."""
    partitions = [TopicPartition(f"topic-{one:05d}", 0) for one in range(count)]
    state, _ = begin(core_settings(Settings(), None), Ownership(ConsumerId(1), 1), now_ms=0)
    command = StartConsumingCommand(
        consumer_id=1,
        incarnation=1,
        controller_epoch=1,
        plan_number=1,
        partitions=tuple(
            PartitionToStart(topic=one.topic, partition=0, epoch="1.1") for one in partitions
        ),
    )
    state, _ = step(state, inputs.MessagesRead(0, (command,)))
    asked = dict.fromkeys(partitions, Epoch(1, 1))
    found = {one: LedgerEntry("id", 10, 10) for one in partitions}
    state, _ = step(state, inputs.LedgerRead(0, asked, found))
    state, effects = step(state, inputs.SparkStarted(0))
    ends, now_ms, looks, used_s = dict.fromkeys(partitions, 10), 0, 0, 0.0
    while looks < LOOKS:
        began_s = time.process_time()
        if any(isinstance(one, ReadEnds) for one in effects):
            state, effects = step(state, inputs.EndsRead(now_ms, ends))
            looks += 1
        else:
            now_ms = max(now_ms + 1, state.wake_ms or 0)
            state, effects = step(state, inputs.Tick(now_ms))
        used_s += time.process_time() - began_s
    return used_s / LOOKS / count


def run(root: Path, count: int) -> int:
    began_s = time.monotonic()
    make_tables(root, count)
    say(f"{count} tables made in {time.monotonic() - began_s:.1f} s")
    memory_mb = {}
    for most in (count, FEW_OPEN):
        given = [sys.executable, __file__, "--read", str(root), str(count), str(most)]
        said = subprocess.check_output(given, text=True).split()
        seconds, memory_mb[most] = float(said[0]), float(said[1])
        say(
            f"all ledgers, {most:5} open at most: {seconds * 1000:.2f} ms a table, "
            f"{memory_mb[most]:6.1f} MB, {memory_mb[most] / count * 1024:.1f} kB a table"
        )
    few_s, many_s = look_s(24), look_s(count)
    say(
        f"a look that finds nothing: {many_s * count * 1000:.2f} ms with {count} partitions, "
        f"{many_s / few_s:.2f} times as much for each as with 24 ({few_s * 24 * 1000:.2f} ms)"
    )
    missed = {
        "a look costs more for each of many partitions": many_s > COST_RATIO_MAX * few_s,
        "memory is not bounded": memory_mb[FEW_OPEN] > memory_mb[count] / 2,
    }
    for what in [what for what, is_missed in missed.items() if is_missed]:
        say(f"MISSED {what}")
    return int(any(missed.values()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--folder", type=Path, help="where the tables are made, such as /dev/shm")
    parser.add_argument("--read", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read:
        root, count, most = arguments.read
        read_all(Path(root), int(count), int(most))
        return 0
    folder = Path(tempfile.mkdtemp(prefix="penstock-many-tables-", dir=arguments.folder))
    try:
        return run(folder, arguments.tables)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
