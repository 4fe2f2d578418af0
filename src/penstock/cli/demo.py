"""`penstock demo`: what there is so far, on an embedded broker, in under a minute.

The live group (controller and consumers that follow the load) is not built yet; the demo says so
and shows the ground it will stand on: a real broker, the control topics, a load of known speed, and
the same speed read back from the log.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Mapping

from rich.table import Table

from penstock.broker import EmbeddedKafka
from penstock.cli.console import data_console, say
from penstock.cli.jars import fetch_with_progress
from penstock.cli.topics import make_control_topics
from penstock.errors import PenstockError
from penstock.jars import JarSet
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.log_sizes import LogSizes
from penstock.load import LoadGenerator, LoadResult, Target, parse_target
from penstock.model import TopicPartition
from penstock.settings import Settings

PARTITIONS_PER_TOPIC = 8
DURATION_S = 24.0
LOOK_EVERY_S = 3.0
SHAPES = {
    "orders": "ramp:50kB/s,600kB/s,20s",
    "clicks": "step:400kB/s,100kB/s,12s",
    "payments": "burst:50kB/s,500kB/s,10s,3s",
}


def demo() -> None:
    """Show what there is so far: a broker, its topics, a load, and the speed read from the log."""
    say("Penstock demo. The live group is not built yet: this shows the ground it stands on.")
    fetch_with_progress([JarSet.BROKER])
    say("1. starting a real Apache Kafka 4.3.1 on a free loopback port")
    with EmbeddedKafka() as kafka:
        say(f"   ready at {kafka.bootstrap_servers}")
        settings = Settings(kafka=kafka.settings)
        say("2. making the control topics")
        for line in make_control_topics(settings):
            say(f"   {line}")
        administration = Administration(settings.kafka)
        for topic in SHAPES:
            administration.create_topic(topic, partitions=PARTITIONS_PER_TOPIC)
        say(f"3. writing to {len(SHAPES)} topics of {PARTITIONS_PER_TOPIC} partitions each")
        result = _write_and_watch(settings)
        _conclude(administration, result)


def _write_and_watch(settings: Settings) -> LoadResult:
    counts = dict.fromkeys(SHAPES, PARTITIONS_PER_TOPIC)
    targets: list[Target] = []
    for topic, shape in SHAPES.items():
        targets += parse_target(f"{topic}={shape}", counts, seed=1)
    generator = LoadGenerator(settings.kafka, targets, run_id="demo")
    results: list[LoadResult] = []
    writing = threading.Thread(target=lambda: results.append(generator.run(DURATION_S)))
    with LogSizes(settings.kafka) as sizes:
        writing.start()
        written, logged, seen_at = _written(generator), _by_topic(sizes), time.monotonic()
        say("   MB/s by topic, acknowledged to the producer / read back from the broker's log:")
        while writing.is_alive():
            writing.join(LOOK_EVERY_S)
            now_written, now_logged, now = _written(generator), _by_topic(sizes), time.monotonic()
            seconds = now - seen_at
            say(
                "   "
                + "   ".join(
                    f"{topic:>8} {(now_written[topic] - written[topic]) / seconds / 1e6:5.2f} /"
                    f" {(now_logged[topic] - logged[topic]) / seconds / 1e6:5.2f}"
                    for topic in SHAPES
                )
            )
            written, logged, seen_at = now_written, now_logged, now
    if not results:
        raise PenstockError("The load ended early.")
    return results[0]


def _written(generator: LoadGenerator) -> Mapping[str, float]:
    total: dict[str, float] = defaultdict(float)
    for partition, (_, size_bytes) in generator.acknowledged().items():
        total[partition.topic] += size_bytes
    return total


def _by_topic(sizes: LogSizes) -> Mapping[str, float]:
    total: dict[str, float] = defaultdict(float)
    for partition, size_bytes in sizes.read_bytes(list(SHAPES)).items():
        total[partition.topic] += size_bytes
    return total


def _conclude(administration: Administration, result: LoadResult) -> None:
    """Every record acknowledged must be in the log; the exit code says whether that holds."""
    partitions = [TopicPartition.parse(name) for name in result.records_by_partition]
    in_log = administration.end_offsets(partitions)
    wrong = [one for one in partitions if in_log.get(one) != result.records_by_partition[str(one)]]
    table = Table("", "", box=None, show_header=False)
    table.add_row("records acknowledged", f"{result.records_acknowledged:,}")
    table.add_row("records in the log", f"{sum(in_log.values()):,}")
    table.add_row("partitions that differ", str(len(wrong)))
    table.add_row("mean speed", f"{result.bytes_per_s / 1e6:.2f} MB/s")
    data_console().print(table)
    if wrong or result.records_failed:
        raise PenstockError("What was acknowledged is not what the log holds.")
    say("4. stopping the broker; nothing is left running")
