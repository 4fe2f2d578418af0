"""How fast one pipeline carries records, against what the same machine can do without it.

`python benchmarks/pipeline.py [--mebibytes N]` starts a broker and Spark (`local[2]`), fills topics
with 1 kB records and prints ratios measured in one run, rounds interleaved so that a busy machine
is busy for all. The exit code is 1 when a target of the issue is missed.

- `noop`: Spark reads the same ranges and throws them away.
- `python`: a plain consumer (confluent-kafka) writes the same columns to Parquet with pyarrow.
- `streaming`: Spark Structured Streaming, the whole topic in one run: to Delta when `--delta-jars`
  names Delta's connector for this Spark (delta-spark_4.2_2.13 and delta-storage, 4.4.0, and what
  they need), otherwise to plain Parquet, which has no log to write and so less to do.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ClientPartition

from penstock.jars import JarSet, fetch, jar_paths
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.producer import RecordProducer
from penstock.laboratory.broker import EmbeddedKafka
from penstock.laboratory.load import RecordForm
from penstock.laboratory.load.records import RecordMaker
from penstock.model import OffsetRange, TopicPartition
from penstock.pipeline import Pipeline, PlannedRange, Writer, start_session
from penstock.pipeline.read_range import read_ranges
from penstock.settings import Settings
from penstock.settings.sections import LakeSettings, SparkSettings

ROUNDS = 3
WARM_UP_ROUNDS = 3  # Java needs some seconds of the same work before it is as fast as it gets
PARTITIONS, TOPICS = 24, 24
RECORD_BYTES = 1000
SMALL_BATCHES = 20
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@contextmanager
def timed(into: list[float]) -> Iterator[None]:
    began = time.monotonic()
    yield
    into.append(time.monotonic() - began)


class Bench:
    def __init__(
        self, kafka: EmbeddedKafka, folder: Path, records: int, delta_jars: list[str]
    ) -> None:
        options = {}
        if delta_jars:
            connector = [str(path) for path in jar_paths(JarSet.SPARK)]
            options = {**DELTA, "spark.jars": ",".join([*connector, *delta_jars])}
        self.sink = "delta" if delta_jars else "parquet"
        self.settings = Settings(
            kafka=kafka.settings,
            lake=LakeSettings(root=str(folder / "lake")),
            spark=SparkSettings(master="local[2]", options=options),
        )
        self.folder = folder
        self.admin = Administration(kafka.settings)
        self.records = records
        self.session = start_session(self.settings.spark)
        self.pipeline = Pipeline(self.settings, self.session)

    def fill(self, topic: str, partitions: int, records: int) -> None:
        """`records` on every partition, each unlike the others."""
        self.admin.create_topic(topic, partitions=partitions)
        maker = RecordMaker(RecordForm(record_bytes=RECORD_BYTES, keys="id"), topic, seed=1)
        producer = RecordProducer(self.settings.kafka, **{"batch.size": 262_144, "linger.ms": 20})
        at_ms = time.time_ns() // 1_000_000
        for number in range(records):
            for partition in range(partitions):
                place = TopicPartition(topic, partition)
                key, value = maker.record(place, number, at_ms)
                producer.send(topic, partition, value, key=key)
        producer.flush(120)

    def plan(self, topic: str, partitions: int, start: int, end: int) -> list[PlannedRange]:
        topic_id = self.admin.topics([topic])[topic].topic_id
        places = [TopicPartition(topic, number) for number in range(partitions)]
        ledger = self.pipeline.next_offsets(dict.fromkeys(places, topic_id))
        return [
            PlannedRange(OffsetRange(place, start, end), topic_id, ledger[place])
            for place in places
        ]

    def noop(self, planned: Sequence[PlannedRange]) -> None:
        raw = read_ranges(self.session, self.settings.kafka, planned, self.settings.spark.tasks)
        raw.coalesce(self.settings.spark.tasks).write.format("noop").mode("overwrite").save()

    def carry(self, planned: Sequence[PlannedRange]) -> Any:
        result = self.pipeline.carry(planned, writer=Writer(1, 1))
        if result.failures or result.dropped:
            raise SystemExit(f"not carried: {result.failures}")
        return result

    def python(self, planned: Sequence[PlannedRange]) -> None:
        """What somebody without Spark would write."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.settings.kafka.bootstrap_servers,
                "group.id": "bench",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "queued.max.messages.kbytes": 262_144,
            }
        )
        consumer.assign(
            [
                ClientPartition(one.partition.topic, one.partition.partition, one.range.start)
                for one in planned
            ]
        )
        ends = {(one.partition.topic, one.partition.partition): one.range.end for one in planned}
        left = sum(len(one.range) for one in planned)
        writer = None
        path = self.folder / f"python-{time.time_ns()}.parquet"
        while left:
            rows = [
                one
                for one in consumer.consume(50_000, timeout=1.0)
                if one.offset() < ends[one.topic(), one.partition()]
            ]
            table = _arrow(rows)
            writer = writer or pa.parquet.ParquetWriter(path, table.schema, compression="zstd")
            writer.write_table(table)
            left -= len(rows)
        if writer is not None:
            writer.close()
        consumer.close()

    def streaming(self, topic: str, per_partition: int) -> float:
        """The whole topic once through Structured Streaming; records a second."""
        place = self.folder / f"streaming-{time.time_ns()}"
        began = time.monotonic()
        query = (
            self.session.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self.settings.kafka.bootstrap_servers)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .option("includeHeaders", "true")
            .load()
            .writeStream.format(self.sink)
            .option("checkpointLocation", str(place / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(place / "data"))
        )
        query.awaitTermination()
        return per_partition * PARTITIONS / (time.monotonic() - began)


def _arrow(rows: Sequence[Any]) -> Any:
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    return pa.table(
        {
            "key": pa.array([one.key() for one in rows], pa.binary()),
            "value": pa.array([one.value() for one in rows], pa.binary()),
            "topic": pa.array([one.topic() for one in rows], pa.string()),
            "partition": pa.array([one.partition() for one in rows], pa.int32()),
            "offset": pa.array([one.offset() for one in rows], pa.int64()),
            "timestamp": pa.array([one.timestamp()[1] for one in rows], pa.timestamp("ms")),
            "timestampType": pa.array([one.timestamp()[0] for one in rows], pa.int32()),
            "headers": pa.array([one.headers() for one in rows], headers),
        }
    )


def run(bench: Bench) -> int:
    per_partition = bench.records // PARTITIONS
    rounds = WARM_UP_ROUNDS + ROUNDS
    step = per_partition // rounds
    say(f"filling {bench.records} records")
    bench.fill("one", PARTITIONS, per_partition)
    times: dict[str, list[float]] = {name: [] for name in ("noop", "penstock", "python")}
    for round_number in range(rounds):
        start = round_number * step
        planned = bench.plan("one", PARTITIONS, start, start + step)
        with timed(times["noop"]):
            bench.noop(planned)
        with timed(times["penstock"]):
            bench.carry(planned)
        with timed(times["python"]):
            bench.python(planned)
        say("  ".join(f"{name} {some[-1]:.2f} s" for name, some in times.items()))
    speed = {
        name: step * PARTITIONS / statistics.median(some[WARM_UP_ROUNDS:])
        for name, some in times.items()
    }
    speed["streaming"] = bench.streaming("one", per_partition)
    for name, value in speed.items():
        say(f"{name:10} {value * RECORD_BYTES / 1e6:8.1f} MB/s")
    many = many_topics(bench, step * PARTITIONS)
    say(f"{'24 topics':10} {many * RECORD_BYTES / 1e6:8.1f} MB/s")
    latency, commit = small_batches(bench)
    ours = speed["penstock"]
    checks = [
        ("of Spark into nothing", ours / speed["noop"], 0.8),
        ("of a plain Python consumer", ours / speed["python"], 1.0),
        (f"of Structured Streaming to {bench.sink}", ours / speed["streaming"], 2.0),
        ("240 partitions in 24 topics, of 24 in one", many / ours, 0.6),
        ("30 ms over the median commit", 0.030 / commit, 1.0),
    ]
    say(f"small batch: {latency * 1000:.0f} ms, of it the commit {commit * 1000:.1f} ms (medians)")
    for name, ratio, target in checks:
        say(f"{'ok  ' if ratio >= target else 'MISS'} {ratio:5.2f} {name} (target {target})")
    return int(any(ratio < target for _, ratio, target in checks))


def many_topics(bench: Bench, records: int) -> float:
    """Batches of as many records as the 24 partitions of one topic had."""
    per_partition = records // (TOPICS * 10)
    names = [f"many-{number}" for number in range(TOPICS)]
    for name in names:
        bench.fill(name, 10, per_partition * (WARM_UP_ROUNDS + ROUNDS))
    times: list[float] = []
    for number in range(WARM_UP_ROUNDS + ROUNDS):
        start = number * per_partition
        planned = [
            one for name in names for one in bench.plan(name, 10, start, start + per_partition)
        ]
        with timed(times):
            bench.carry(planned)
        say(f"24 topics {times[-1]:.2f} s")
    return per_partition * 10 * TOPICS / statistics.median(times[WARM_UP_ROUNDS:])


def small_batches(bench: Bench) -> tuple[float, float]:
    bench.fill("small", PARTITIONS, SMALL_BATCHES * 20)
    times: list[float] = []
    commits = []
    for number in range(SMALL_BATCHES):
        planned = bench.plan("small", PARTITIONS, number * 20, number * 20 + 20)
        with timed(times):
            commits.append(bench.carry(planned).timings.commit_s)
    return statistics.median(times), statistics.median(commits)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mebibytes", type=int, default=600)
    parser.add_argument("--delta-jars", nargs="*", default=[])
    given = parser.parse_args()
    wanted = given.mebibytes * 2**20 // RECORD_BYTES
    fetch(JarSet.BROKER)
    fetch(JarSet.SPARK)
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        with EmbeddedKafka() as kafka:
            bench = Bench(kafka, folder, wanted, given.delta_jars)
            try:
                return run(bench)
            finally:
                bench.session.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    sys.exit(main())
