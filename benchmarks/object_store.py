"""How fast the pass-through carries records into an object store, against the same to a disk.

`python benchmarks/object_store.py [--mebibytes N] [--connector]` starts a broker, the tests' S3
server (`make s3-server` compiles it) and Spark (`local[2]`), fills a topic with 1 kB records and
carries the same ranges into a lake on a file system and into one in S3, in turns, so that a busy
machine is busy for both. The server keeps its objects on the same disk and takes its share of the
same cores. It prints the ratio of both, the medians of commits of small batches, and with
`--connector` also what Spark's connector did before, which moves files when a job is whole. The
exit code is 1 when the target of the issue is missed.
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

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from kit.lake.s3_server import BUCKET, KEY, SECRET, S3Server, running_s3_server
from penstock.jars import JarSet, fetch
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.producer import RecordProducer
from penstock.laboratory.broker import EmbeddedKafka
from penstock.laboratory.load import RecordForm
from penstock.laboratory.load.records import RecordMaker
from penstock.model import OffsetRange, TopicPartition
from penstock.pipeline import Pipeline, PlannedRange, Writer, start_session
from penstock.settings import Settings
from penstock.settings.sections import KafkaSettings, LakeSettings, SparkSettings
from penstock.verification import verify

ROUNDS, WARM_UP_ROUNDS = 4, 2
PARTITIONS = 24
RECORD_BYTES = 1000
SMALL_BATCHES, SMALL_RECORDS = 10, 20
RATIO_MIN = 0.6
FILE_SYSTEM, S3, CONNECTOR = "file system", "S3", "S3 by the connector"


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@contextmanager
def timed(into: list[float]) -> Iterator[None]:
    began = time.monotonic()
    yield
    into.append(time.monotonic() - began)


class Lake:
    """A pipeline with a lake of its own, in the session that all share."""

    def __init__(self, settings: Settings, session: Any) -> None:
        self.settings = settings
        self.admin = Administration(settings.kafka)
        self.pipeline = Pipeline(settings, session)
        self.times: list[float] = []

    def plan(self, topic: str, start: int, end: int) -> list[PlannedRange]:
        topic_id = self.admin.topics([topic])[topic].topic_id
        places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        ledger = self.pipeline.next_offsets(dict.fromkeys(places, topic_id))
        return [
            PlannedRange(OffsetRange(place, start, end), topic_id, ledger[place])
            for place in places
        ]

    def carry(self, planned: Sequence[PlannedRange]) -> Any:
        result = self.pipeline.carry(planned, writer=Writer(1, 1))
        if result.failures or result.dropped:
            raise SystemExit(f"not carried: {result.failures}")
        return result


def fill(kafka: KafkaSettings, topic: str, records: int) -> None:
    """`records` on every partition, each unlike the others."""
    Administration(kafka).create_topic(topic, partitions=PARTITIONS)
    maker = RecordMaker(RecordForm(record_bytes=RECORD_BYTES, keys="id"), topic, seed=1)
    producer = RecordProducer(kafka, **{"batch.size": 262_144, "linger.ms": 20})
    at_ms = time.time_ns() // 1_000_000
    for number in range(records):
        for partition in range(PARTITIONS):
            place = TopicPartition(topic, partition)
            key, value = maker.record(place, number, at_ms)
            producer.send(topic, partition, value, key=key)
    producer.flush(120)


def lakes(
    kafka: KafkaSettings, folder: Path, s3: S3Server, spark: SparkSettings, session: Any
) -> dict[str, Lake]:
    stored = {"root": f"s3://{BUCKET}/lake", "storage_options": s3.storage_options}
    made = {
        FILE_SYSTEM: Settings(
            kafka=kafka, lake=LakeSettings(root=str(folder / "lake")), spark=spark
        ),
        S3: Settings(kafka=kafka, lake=LakeSettings.model_validate(stored), spark=spark),
    }
    if spark.object_store:
        slow = LakeSettings.model_validate({**stored, "root": f"s3://{BUCKET}/connector"})
        by_jvm = spark.model_copy(update={"pass_through": False})
        made[CONNECTOR] = Settings(kafka=kafka, lake=slow, spark=by_jvm)
    return {name: Lake(one, session) for name, one in made.items()}


def run(made: dict[str, Lake], records: int) -> int:
    kafka = made[S3].settings.kafka
    per_partition = records // PARTITIONS
    step = per_partition // (WARM_UP_ROUNDS + ROUNDS)
    say(f"filling {records} records, {step * PARTITIONS * RECORD_BYTES / 1e6:.0f} MB a batch")
    fill(kafka, "one", per_partition)
    for number in range(WARM_UP_ROUNDS + ROUNDS):
        for lake in made.values():
            planned = lake.plan("one", number * step, number * step + step)
            with timed(lake.times):
                lake.carry(planned)
        say("  ".join(f"{name} {lake.times[-1]:.2f} s" for name, lake in made.items()))
    speed = {
        name: step * PARTITIONS * RECORD_BYTES / statistics.median(lake.times[WARM_UP_ROUNDS:])
        for name, lake in made.items()
    }
    fill(kafka, "small", SMALL_BATCHES * SMALL_RECORDS)
    commits: dict[str, list[float]] = {name: [] for name in made}
    for number in range(SMALL_BATCHES):
        for name, lake in made.items():
            start = number * SMALL_RECORDS
            planned = lake.plan("small", start, start + SMALL_RECORDS)
            commits[name].append(lake.carry(planned).timings.commit_s)
    for name, value in speed.items():
        commit_ms = statistics.median(commits[name]) * 1000
        say(f"{name:20} {value / 1e6:8.1f} MB/s   commit of a small batch {commit_ms:6.1f} ms")
    verdict = verify(made[S3].settings, ["one", "small"])
    say(f"exact in S3: {verdict.is_exact}")
    ratio = speed[S3] / speed[FILE_SYSTEM]
    is_met = ratio >= RATIO_MIN
    say(f"{'ok  ' if is_met else 'MISS'} {ratio:5.2f} of a file system (target {RATIO_MIN})")
    return int(not is_met or not verdict.is_exact)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mebibytes", type=int, default=300)
    parser.add_argument("--connector", action="store_true")
    given = parser.parse_args()
    sets = [JarSet.BROKER, JarSet.SPARK, *([JarSet.S3] if given.connector else [])]
    for one in sets:
        fetch(one)
    os.environ.update(AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET)
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        with EmbeddedKafka() as kafka, running_s3_server(folder / "s3") as s3:
            jars = {"object_store": "s3", "options": s3.spark_options} if given.connector else {}
            spark = SparkSettings.model_validate({"master": "local[2]", **jars})
            session = start_session(spark)
            try:
                made = lakes(kafka.settings, folder, s3, spark, session)
                return run(made, given.mebibytes * 2**20 // RECORD_BYTES)
            finally:
                session.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    sys.exit(main())
