"""Writers of one table that commit together: `python -m kit.lake.joint_writers`.

Every writer is a process with one partition, and carries batches from where the ledger is, as a
consumer does. The arguments are the lake's root, the broker, the prefix of the control topics, who
commits (`one`, or `two` at once), who dies by SIGKILL at which point, such as
`1:batches-committed`, or `nobody`, for how many seconds, and the options of an object store, as
JSON. Who died is started again under a new incarnation. On a slow machine all go on until somebody
has died, or until others have committed for one of them.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing import Value
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from penstock.committer import CommitsTogether, together
from penstock.committer.core import duty
from penstock.model import TopicPartition
from penstock.pipeline.batch import Writer
from penstock.pipeline.failures import StaleWriterError
from penstock.pipeline.joint_table import Handed, JointTable
from penstock.pipeline.ledger_moves import LedgerMove
from penstock.pipeline.written_files import written_files
from penstock.settings import Settings
from penstock.settings.sections import KafkaSettings, LakeSettings, TopicsSettings

SCHEMA = (
    '{"type":"struct","fields":['
    '{"name":"partition","type":"long","nullable":true,"metadata":{}},'
    '{"name":"offset","type":"long","nullable":true,"metadata":{}}]}'
)
TOPIC_ID = "AbCdEfGhIjKlMnOpQrStUv"
WRITERS = 4
ROWS = 3
PERIOD_S = 0.1
COMMITTER = duty.committer_of("orders", range(1, WRITERS + 1))
OTHER, THIRD, *_ = (one for one in range(1, WRITERS + 1) if one != COMMITTER)
# A point must be passed so often before somebody dies at it: then all commit together.
PASSES = 10
# So much longer at most does it take until somebody dies, or until the batches of one writer were
# committed by another so often, and so long do all go on after a death.
LATER_S_MAX = 180.0
AFTER_DEATH_S = 3.0


def entry_of(partition: int) -> str:
    return f"g/{TOPIC_ID}/{partition}"


def settings_for(
    root: str, servers: str, prefix: str, options: Mapping[str, str] | None = None
) -> Settings:
    stored = {"root": root, "group": "g", "storage_options": dict(options or {})}
    return Settings(
        kafka=KafkaSettings(bootstrap_servers=servers),
        topics=TopicsSettings(prefix=prefix),
        lake=LakeSettings.model_validate({**stored, "commits": "together"}),
    )


def carry(
    table: JointTable, writer: Writer, number: int, others: CommitsTogether, rows: int = ROWS
) -> bool:
    """One batch from where the ledger is; False if it was refused."""
    partition = writer.consumer_id
    entry = entry_of(partition)
    expected = table.next_offsets([entry])[entry]
    start = expected or 0
    folder = f"data/g/{writer}/{number}.{TOPIC_ID}.{partition}.{start}"
    content = {"partition": [partition] * rows, "offset": list(range(start, start + rows))}
    with table.storage.create_file(f"{folder}/part-0.parquet") as file:
        pyarrow.parquet.write_table(pa.table(content), file)
    place = TopicPartition("orders", partition)
    move = LedgerMove(place, entry, expected, start + rows)
    try:
        table.commit_with_others(
            [move],
            written_files(table.storage, folder),
            batch=folder,
            ranges={entry: (start, start + rows)},
            hand_over=others,
        )
    except StaleWriterError:
        table.storage.delete_folder(folder)
        return False
    return True


def dying_at(point: str | None) -> together.Point:
    left = iter([*[False] * PASSES, True])

    def at_point(name: str) -> None:
        if name == point and next(left, False):
            os.kill(os.getpid(), signal.SIGKILL)

    return at_point


class Counted(CommitsTogether):
    """Tells when others have committed often enough for this writer."""

    def __init__(
        self, settings: Settings, writer: Writer, point: str | None, tell: Callable[[], None]
    ) -> None:
        super().__init__(settings, writer, at_point=dying_at(point))
        self._left = PASSES
        self._tell = tell

    def hand_over(self, *given: Any) -> Handed | None:
        handed = super().hand_over(*given)
        if handed is not None and handed.version is not None:
            self._left -= 1
            if self._left == 0:
                self._tell()
        return handed


@dataclass(frozen=True, slots=True)
class Ending:
    """When all writers end, which each of them may change."""

    not_before_s: float
    shared: Any

    def is_over(self) -> bool:
        return time.monotonic() >= float(self.shared.value)

    def soon(self, after_s: float = 0.0) -> None:
        self.shared.value = max(self.not_before_s, time.monotonic() + after_s)


def run(settings: Settings, writer: Writer, ending: Ending, others: CommitsTogether) -> None:
    table = JointTable(settings.lake, "orders")
    table.open_for(SCHEMA, ())
    number = 0
    while not ending.is_over():
        began_s = time.monotonic()
        carry(table, writer, number, others)
        number += 1
        time.sleep(max(0.0, began_s + PERIOD_S - time.monotonic()))
    others.close()


def _start(
    settings: Settings, writer: Writer, ending: Ending, make_others: Callable[[], CommitsTogether]
) -> int:
    child = os.fork()
    if child:
        return child
    try:
        run(settings, writer, ending, make_others())
        os._exit(0)
    except BaseException as error:  # noqa: BLE001 -- a child must not go on as its parent
        sys.stderr.write(f"{writer}: {error!r}\n")
        os._exit(1)


def main() -> int:
    root, servers, prefix, who, death, seconds, options = sys.argv[1:]
    duty.WRITERS_ALONE_MAX = 1
    if who == "two":
        right = duty.duty_of

        def both(own_id: int, *given: Any) -> duty.Duty:
            found = right(own_id, *given)
            return duty.Duty.COMMITS if found is duty.Duty.OFFERS and own_id == OTHER else found

        vars(together)["duty_of"] = both
    dies, _, point = death.partition(":")
    settings = settings_for(root, servers, prefix, json.loads(options))
    until_s = time.monotonic() + float(seconds)
    ending = Ending(until_s, Value("d", until_s + LATER_S_MAX))

    def start(writer: Writer, dies_at: str | None) -> int:
        # Of the writers that others commit for, one tells; with somebody's death that is the sign.
        is_telling = not point and writer.consumer_id == THIRD
        tell = ending.soon if is_telling else (lambda: None)
        return _start(settings, writer, ending, lambda: Counted(settings, writer, dies_at, tell))

    running = {
        start(writer, point if dies == str(writer.consumer_id) else None): writer
        for writer in (Writer(number, 1) for number in range(1, WRITERS + 1))
    }
    deaths = failures = 0
    while running:
        child, status = os.wait()
        writer = running.pop(child)
        if os.WIFSIGNALED(status):
            deaths += 1
            again = Writer(writer.consumer_id, writer.incarnation + 1)
            ending.soon(AFTER_DEATH_S)
            running[start(again, None)] = again
        failures += os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0
    sys.stdout.write(f"{deaths} {failures}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
