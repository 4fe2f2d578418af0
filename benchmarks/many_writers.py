"""Many consumers on one table, against as many on a table each: `python benchmarks/many_writers.py`

Every writer is a process with a `LakeTable` of its own, and begins and commits batches and makes
checkpoints as a consumer does; the Parquet files are there already, so what is measured is the
commit. In an object store a small object stands for each file: nobody reads it, and the rows are
counted from the log. Three ways are compared on one table: every writer commits for itself as it
comes (`alone`), as seldom as the consumer's cadence says (`cadence`), or one of them commits for
all (`together`): by the code of consumers over a real broker, which begins as in them, once a
writer has seen enough others.

Three loads: `calm`, a batch a second and 0.25 s to write it; `backlog`, 4 s to write each batch and
the next one at once; `storm`, nothing but commits, which no consumer does: it shows the limit.
Writing is waited for and not done, as it would be on other machines. A record's age is the time
from its arrival until its commit is done; records arrive evenly. The first seconds, in which
writers learn of each other, are left out. Where they hand batches over, another line counts how
they were committed.

`--s3` starts the tests' S3 server (`make s3-server` compiles it); `--root s3://... --option
NAME=VALUE` measures another object store. `--put-ms` and `--read-ms` make every put and every read
of the log take so much longer, as an object store would. The exit code is 1 when what consumers do
by default there (`cadence` on a file system, `together` in an object store) misses a target with
the most writers.
"""

import argparse
import math
import os
import random
import resource
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

import many_writers_broker as broker
import pyarrow as pa
import pyarrow.parquet
from deltalake import DeltaTable
from many_writers_handed import Counted
from many_writers_place import FORK, Place, place_of

from penstock.committer import CommitsTogether
from penstock.consumer.core.cadence import batch_period_ms
from penstock.model import TopicPartition
from penstock.pipeline.batch import Writer as WriterName
from penstock.pipeline.checkpoints import CheckpointMaker
from penstock.pipeline.commit_watch import Unwatched
from penstock.pipeline.joint_table import JointTable
from penstock.pipeline.lake_commit import LakeTable, LedgerMove
from penstock.pipeline.storage import StoredFile
from penstock.pipeline.written_files import WrittenFile, describe_file
from penstock.settings.sections import ConsumerSettings

BYTES_PER_S = 1_000_000
ROWS = 1000
SCHEMA = (
    '{"type":"struct","fields":['
    '{"name":"offset","type":"long","nullable":true,"metadata":{}},'
    '{"name":"value","type":"binary","nullable":true,"metadata":{}}]}'
)
WAYS = ("alone", "cadence", "together")
RATIO_MIN = 0.9
# On a file system and in an object store: of a commit, and of the age of a visible record.
P99_S_MAX = {True: (1.0, 5.0), False: (3.0, 10.0)}
# What stands for a data file in an object store.
STAND_IN = b"a data file of 1 MB"
TOPIC_ID = "many-writers-topic-id1"
LONGEST_MS = int(ConsumerSettings().batch_period_longest * 1000)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@dataclass(frozen=True, slots=True)
class Load:
    """How often a writer begins a batch, and how long it writes; 0 s between them: at once."""

    period_s: float
    write_s: float


LOADS = {"calm": Load(1.0, 0.25), "backlog": Load(0.0, 4.0), "storm": Load(0.0, 0.0)}


@dataclass(frozen=True, slots=True)
class Batch:
    """Its first record arrived at `first_s`, its last one at `last_s`."""

    first_s: float
    last_s: float
    commit_s: float
    visible_s: float
    races_lost: int
    carried_bytes: float
    # What came of handing it over; empty where nobody does that.
    handed: str


class Races(Unwatched):
    lost = 0

    def conflicted(self, table: str) -> None:  # noqa: ARG002 -- there is one
        self.lost += 1


class Writer:
    """One consumer, without Kafka and Spark."""

    def __init__(self, place: Place, table: str, number: int, seed: WrittenFile) -> None:
        self._races, self._number, self._seed = Races(), number, seed
        self.checkpoints = CheckpointMaker(place.lake)
        noted = self.checkpoints.committed
        self.table = JointTable(place.lake, table, on_commit=noted, watch=self._races)
        self.together: Counted | None = None
        self._partition = TopicPartition(table, number)
        self._entry = f"g/{TOPIC_ID}/{number}"
        self._at = self.table.next_offsets([self._entry])[self._entry]

    def run(self, load: Load, way: str, until_s: float) -> list[Batch]:
        done: list[Batch] = []
        # Consumers do not begin in step.
        arrived_s = time.monotonic()
        phase = random.Random(f"{way} {self._number}").random()
        time.sleep(phase * (load.period_s or load.write_s))
        while time.monotonic() < until_s:
            began_s = time.monotonic()
            done.append(self._carry(load, arrived_s, began_s))
            arrived_s = began_s
            period_s = load.period_s
            if period_s and way != "alone":
                given_ms = (int(period_s * 1000), LONGEST_MS)
                period_s = batch_period_ms(self.table.commit_round_s, *given_ms) / 1000
            time.sleep(max(0.0, began_s + period_s - time.monotonic()))
        return done

    def _carry(self, load: Load, first_s: float, began_s: float) -> Batch:
        """The four steps of a batch, with files that are there."""
        moves = [LedgerMove(self._partition, self._entry, self._at, (self._at or 0) + ROWS)]
        self.table.require_current(moves)
        self.table.open_for(SCHEMA, ())
        end = moves[0].next_offset
        folder = f"data/g/{self._number}-1/{end}.{TOPIC_ID}.{self._number}.0"
        file = self._written(f"{folder}/part-0.parquet")
        time.sleep(max(0.0, began_s + load.write_s - time.monotonic()))
        carried = began_s - first_s if load.period_s else load.write_s or 1.0
        lost, commit_s = self._races.lost, time.monotonic()
        if self.together is not None:
            self.table.commit_with_others(
                moves,
                [file],
                batch=folder,
                ranges={self._entry: (self._at or 0, end)},
                hand_over=self.together,
            )
        else:
            self.table.commit(moves, [file], batch=folder)
        self._at = end
        visible_s, lost = time.monotonic(), self._races.lost - lost
        handed = "" if self.together is None else self.together.last
        return Batch(first_s, began_s, commit_s, visible_s, lost, carried * BYTES_PER_S, handed)

    def _written(self, path: str) -> WrittenFile:
        """One more name of the file that is there; an object store needs one more object."""
        storage = self.table.storage
        if storage.is_local:
            named = storage.local_path(path)
            named.parent.mkdir(parents=True)
            named.hardlink_to(storage.local_path(self._seed.path))
        else:
            with storage.create_file(path) as file:
                file.write(STAND_IN)
        return replace(self._seed, path=path)


def make_tables(place: Place, tables: Sequence[str], said: Connection) -> None:
    """With a file of 1 MB each, and what a commit says of it."""
    rows = {"offset": list(range(ROWS)), "value": [random.randbytes(1000) for _ in range(ROWS)]}
    for name in tables:
        table = LakeTable(place.lake, name)
        table.open_for(SCHEMA, ())
        path = "data/g/seed/part-0.parquet"
        with table.storage.create_file(path) as file:
            pyarrow.parquet.write_table(pa.table(rows), file)
        stored: StoredFile = table.storage.file_at(path)
        seed = describe_file(table.storage, stored, "data/g/seed")
    said.send(seed)


def count_rows(place: Place, tables: Sequence[str], said: Connection) -> None:
    """By another reader."""
    rows = 0
    for name in tables:
        table = DeltaTable(f"{place.root}/{name}", storage_options=place.options or None)
        added = pa.table(table.get_add_actions(flatten=True))
        rows += sum(added["num_records"].to_pylist())
    said.send(rows)


def write(
    place: Place,
    table: str,
    number: int,
    seed: WrittenFile,
    load: Load,
    way: str,
    seconds: float,
    start: Any,
    broker_at: str | None,
    said: Connection,
) -> None:
    place.slow_down()
    writer = Writer(place, table, number, seed)
    if broker_at is not None:
        settings = broker.settings_for(broker_at).model_copy(update={"lake": place.lake})
        writer.together = Counted(CommitsTogether(settings, WriterName(number, 1)))
    start.wait()
    used_s, since_s = _used_s(), time.monotonic() + place.warm_up_s
    done = writer.run(load, way, since_s + seconds)
    writer.checkpoints.close()
    used_s = (_used_s() - used_s) * seconds / (place.warm_up_s + seconds)
    if writer.together is not None:
        writer.together.close()
    said.send(([one for one in done if one.commit_s >= since_s], len(done), used_s))


def _used_s() -> float:
    """Of this process, and of its children that have ended: checkpoints."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, kinds))


def in_a_child(target: Callable[..., None], *given: Any) -> Any:
    mine, its = FORK.Pipe(duplex=False)
    child = FORK.Process(target=target, args=(*given, its))
    child.start()
    answer = mine.recv()
    child.join()
    return answer


@dataclass(frozen=True, slots=True)
class Result:
    writers: int
    what: str
    batches: list[Batch]
    used_s: float
    seconds: float

    @property
    def carried_bytes(self) -> float:
        return sum(one.carried_bytes for one in self.batches)

    def commit_s(self, share: float) -> float:
        return _quantile([one.visible_s - one.commit_s for one in self.batches], share)

    def age_p99_s(self) -> float:
        """Of records that arrive evenly between the beginnings of two batches."""
        ages = [
            one.visible_s - (one.first_s + (one.last_s - one.first_s) * part / 50)
            for one in self.batches
            for part in range(51)
        ]
        return _quantile(ages, 0.99)

    def races_lost(self) -> tuple[float, int]:
        lost = [one.races_lost for one in self.batches]
        return statistics.mean(lost), max(lost)


def _quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def run(place: Place, writers: int, load: Load, way: str, tables: int, seconds: float) -> Result:
    """`writers` on `tables` tables, in this way."""
    mark = f"{way}-{writers}-{tables}-{time.monotonic_ns()}"
    names = [f"{mark}-{number}" for number in range(tables)]
    seed = in_a_child(make_tables, place, names)
    start = FORK.Event()
    pipes, children = [], []
    broker_at = None
    if way == "together":
        mine, its = FORK.Pipe(duplex=False)
        serving = FORK.Process(target=broker.serve, args=(its,))
        serving.start()
        broker_at = mine.recv()
    for number in range(1, writers + 1):
        mine, its = FORK.Pipe(duplex=False)
        given = (place, names[number % tables], number, seed, load, way, seconds, start)
        child = FORK.Process(target=write, args=(*given, broker_at, its), daemon=True)
        child.start()
        pipes.append(mine)
        children.append(child)
    time.sleep(1.0 + writers * 0.05)  # until all have looked at their table
    start.set()
    said = [pipe.recv() for pipe in pipes]
    for child in children:
        child.join()
    if broker_at is not None:
        serving.terminate()
        serving.join()
    batches = [one for done, _, _ in said for one in done]
    found, made = in_a_child(count_rows, place, names), sum(one for _, one, _ in said)
    if found != made * ROWS:
        raise AssertionError(f"{found} rows are there, {made * ROWS} were committed")
    what = f"{tables} tables" if tables > 1 or writers == 1 else way
    return Result(writers, what, batches, sum(used_s for *_, used_s in said), seconds)


def compare(place: Place, arguments: argparse.Namespace, load_name: str) -> list[str]:
    """Print a line for each; what the default way misses with the most writers."""
    missed: list[str] = []
    load = LOADS[load_name]
    is_store = place.lake.commits_together
    default_way = "together" if is_store else "cadence"
    commit_s_max, age_s_max = P99_S_MAX[not is_store]
    # In a backlog records are old before they are read.
    limits = (commit_s_max, age_s_max if load.period_s else math.inf)
    say(f"load average {', '.join(f'{one:.1f}' for one in os.getloadavg())}")
    say(
        f"{load_name:8} {'':12} {'commits/s':>9} {'bytes':>6} {'commit p50':>11} {'p99':>9} "
        f"{'age p99':>8} {'races lost':>16} {'cores':>6}"
    )
    for writers in arguments.writers:
        apart = run(place, writers, load, "alone", writers, arguments.seconds)
        _show(apart, apart)
        for way in arguments.ways if writers > 1 else ():
            result = run(place, writers, load, way, 1, arguments.seconds)
            _show(result, apart)
            if way == default_way and writers == max(arguments.writers) and load_name != "storm":
                missed += _missed(result, apart, *limits)
    if default_way not in arguments.ways:
        say(f"nothing is judged: {default_way}, the default here, is not among --ways")
    return missed


def _ratio(result: Result, apart: Result) -> float:
    return (result.carried_bytes / result.seconds) / (apart.carried_bytes / apart.seconds)


def _show(result: Result, apart: Result) -> None:
    lost = "{:.2f}, at most {}".format(*result.races_lost())
    say(
        f"{result.writers:8} {result.what:12} {len(result.batches) / result.seconds:9.1f} "
        f"{_ratio(result, apart):6.2f} {result.commit_s(0.5) * 1000:8.1f} ms "
        f"{result.commit_s(0.99) * 1000:6.0f} ms {result.age_p99_s():6.2f} s {lost:>16} "
        f"{result.used_s / result.seconds:6.2f}"
    )
    if counted := Counter(one.handed for one in result.batches if one.handed):
        counts = "; ".join(f"{name}: {count}" for name, count in sorted(counted.items()))
        say(f"{'':8} batches committed {counts}")


def _missed(result: Result, apart: Result, commit_s_max: float, age_s_max: float) -> list[str]:
    ratio, commit_s, age_s = _ratio(result, apart), result.commit_s(0.99), result.age_p99_s()
    found = {
        f"bytes are {ratio:.2f}": ratio < RATIO_MIN,
        f"p99 of a commit is {commit_s:.2f} s": commit_s > commit_s_max,
        f"p99 of the age is {age_s:.2f} s": age_s > age_s_max,
    }
    return [f"{result.writers} writers: {text}" for text, is_missed in found.items() if is_missed]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writers", type=int, nargs="+", default=[1, 8, 16, 50])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--loads", nargs="+", choices=list(LOADS), default=list(LOADS))
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--warm-up", type=float, default=10.0, help="seconds that are left out")
    parser.add_argument("--s3", action="store_true", help="start the S3 server of the tests")
    parser.add_argument("--root", help="a folder or a URL; a new folder when it is left out")
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--put-ms", type=float, default=0.0)
    parser.add_argument("--read-ms", type=float, default=0.0)
    arguments = parser.parse_args()
    missed: list[str] = []
    with place_of(arguments) as place:
        for name in arguments.loads:
            missed += [f"{name}: {one}" for one in compare(place, arguments, name)]
    for one in missed:
        say(f"MISSED {one}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
