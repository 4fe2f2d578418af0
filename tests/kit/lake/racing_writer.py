"""A process that commits batches to one table beside others: `python -m kit.lake.racing_writer`.

Every batch carries the offsets from the ledger's on, as a consumer does, and is dropped when
another writer was quicker. The arguments are the lake's root, this writer's number, how many
batches, and where to die by SIGKILL: `never`, `before` the commit's entry is put, or `after`.
"""

import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from penstock.model import TopicPartition
from penstock.pipeline.failures import StaleWriterError
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.pipeline.log_commit import WaitingEntry
from penstock.pipeline.written_files import written_files
from penstock.settings.sections import LakeSettings

SCHEMA = (
    '{"type":"struct","fields":['
    '{"name":"partition","type":"long","nullable":true,"metadata":{}},'
    '{"name":"offset","type":"long","nullable":true,"metadata":{}}]}'
)
PARTITIONS = 3


def open_table(root: str) -> LakeTable:
    table = LakeTable(LakeSettings(root=root, group="g"), "orders")
    table.open_for(SCHEMA, ())
    return table


def carry(table: LakeTable, partition: int, records: int, name: str) -> bool:
    """One batch from where the ledger is; False if another writer carried it first."""
    entry = f"g/id/{partition}"
    expected = table.next_offsets([entry])[entry]
    start = expected or 0
    folder = f"data/g/1-1/{name}.id.{partition}.{'new' if expected is None else expected}"
    path = Path(table.storage.uri) / folder / "topic-id" / "part-0.parquet"
    path.parent.mkdir(parents=True)
    offsets = list(range(start, start + records))
    rows = pa.table({"partition": [partition] * records, "offset": offsets})
    pyarrow.parquet.write_table(rows, path)
    move = LedgerMove(TopicPartition("orders", partition), entry, expected, start + records)
    try:
        table.commit([move], written_files(table.storage, folder), batch=folder)
    except StaleWriterError:
        table.storage.delete_folder(folder)
        return False
    return True


def carry_many(table: LakeTable, writer: int, batches: int) -> int:
    """Batches of all partitions in turns; how many of them were committed."""
    chance = random.Random(writer)
    return sum(
        carry(table, chance.randrange(PARTITIONS), chance.randint(1, 4), f"{writer}{number:06d}")
        for number in range(batches)
    )


def _die(moment: str, after_puts: int) -> None:
    put, left = WaitingEntry.put_at, iter([*[False] * after_puts, True])

    def dies(self: WaitingEntry, version: int) -> Any:
        is_last = next(left, False)
        if is_last and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        done = put(self, version)
        if is_last:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    WaitingEntry.put_at = dies  # type: ignore[method-assign]


def main() -> None:
    root, writer, batches, moment = sys.argv[1:]
    if moment != "never":
        _die(moment, after_puts=5)
    sys.stdout.write(f"{carry_many(open_table(root), int(writer), int(batches))}\n")


if __name__ == "__main__":
    main()
