"""The consumer's targets, measured on real parts: `python benchmarks/consumer.py [WHAT...]`.

WHAT is any of `latency`, `idle`, `partitions`, `memory` (the default is the first three; memory
takes ten minutes, or `--minutes N`). Speeds are compared within one run, because machines are
shared and differ. Exit code 1 when a target is missed.
"""

import argparse
import dataclasses
import json
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import typer

from penstock.kafka_io.administration import Administration
from penstock.laboratory.broker import EmbeddedKafka
from penstock.laboratory.load import LoadGenerator, parse_target
from penstock.laboratory.studies.consumer.commits import latencies_s
from penstock.laboratory.studies.consumer.drain import Filling, drain, fill
from penstock.laboratory.studies.consumer.studied_consumer import StudiedConsumer
from penstock.model import TopicPartition
from penstock.pipeline.connect_server import ConnectServer
from penstock.processes import ProcessIdentity
from penstock.settings import Settings
from penstock.settings.sections import LakeSettings, SparkSettings, TopicsSettings

PARTITIONS = 24
WARM_UP_COMMITS = 5


@dataclasses.dataclass(frozen=True)
class Measured:
    name: str
    value: float
    target: float
    unit: str
    is_at_most: bool = True

    @property
    def is_met(self) -> bool:
        return self.value <= self.target if self.is_at_most else self.value >= self.target


def settings_for(kafka: EmbeddedKafka, master: str, folder: Path) -> Settings:
    return Settings(
        kafka=kafka.settings,
        topics=TopicsSettings(prefix=f"bench-{folder.name}"),
        lake=LakeSettings(root=str(folder / "lake")),
        spark=SparkSettings(master=master),
    )


def resident_mb(process: ProcessIdentity) -> float:
    """The driver: the process and its JVM, if it has one; not the workers that Spark starts."""
    kib = 0
    wanted = {process.pid}
    for entry in sorted(Path("/proc").glob("[0-9]*"), key=lambda one: int(one.name)):
        try:
            status = (entry / "status").read_text(encoding="utf-8")
        except (FileNotFoundError, ProcessLookupError):
            continue
        fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        if _is_worker(entry):
            continue
        if int(entry.name) in wanted or int(fields["PPid"]) in wanted:
            wanted.add(int(entry.name))
            kib += int(fields.get("VmRSS", "0 kB").split()[0])
    return kib / 1024


def _is_worker(entry: Path) -> bool:
    try:
        return b"pyspark.daemon" in (entry / "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return True  # it is gone


def cpu_s(process: ProcessIdentity) -> float:
    stat = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8")
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def steady_load(
    kafka: EmbeddedKafka, topic: str, duration_s: float, bytes_per_s: float
) -> threading.Thread:
    text = f"{topic}={bytes_per_s / PARTITIONS:.0f}B/s"
    generator = LoadGenerator(
        kafka.settings, parse_target(text, {topic: PARTITIONS}, seed=1), run_id="bench"
    )
    thread = threading.Thread(target=generator.run, args=(duration_s,))
    thread.start()
    return thread


def under_load(
    kafka: EmbeddedKafka, master: str, duration_s: float
) -> tuple[list[Measured], list[float]]:
    """1 MB/s over 24 partitions: how late a record lands, what a commit costs, what it weighs."""
    with tempfile.TemporaryDirectory(prefix="bench-") as text:
        folder = Path(text)
        settings = settings_for(kafka, master, folder)
        topic = f"steady-{folder.name}"
        Administration(kafka.settings).create_topic(topic, partitions=PARTITIONS)
        with StudiedConsumer(settings, folder) as studied:
            studied.command_start([TopicPartition(topic, number) for number in range(PARTITIONS)])
            load = steady_load(kafka, topic, duration_s, 1e6)
            memory = []
            while load.is_alive():
                studied.listen(5.0)
                if studied.process is not None:
                    memory.append(resident_mb(studied.process))
            load.join()
            studied.listen(3.0)
            cycles = [one.cycle for one in studied.reports if one.cycle and one.cycle.batches]
        late = list(latencies_s(folder / "lake" / topic, skip=WARM_UP_COMMITS))
    settled = cycles[3:] or cycles
    commit_ms = sum(one.commit_ms for one in settled) / sum(one.batches for one in settled)
    quantiles = statistics.quantiles(late, n=100)
    return [
        Measured("record in the lake after, median", statistics.median(late), 2.0, "s"),
        Measured("record in the lake after, 99 %", quantiles[98], float("inf"), "s"),
        Measured("commit", commit_ms, 30.0, "ms"),
    ], memory


def idle(kafka: EmbeddedKafka, master: str) -> list[Measured]:
    """Twenty-four quiet partitions for 20 s, and what the start before it took."""
    with tempfile.TemporaryDirectory(prefix="bench-") as text:
        folder = Path(text)
        settings = settings_for(kafka, master, folder)
        topic = f"quiet-{folder.name}"
        Administration(kafka.settings).create_topic(topic, partitions=PARTITIONS)
        with StudiedConsumer(settings, folder) as studied:
            studied.command_start([TopicPartition(topic, number) for number in range(PARTITIONS)])
            studied.listen(8.0)
            if studied.process is None:
                raise AssertionError("no consumer")
            used, began = cpu_s(studied.process), time.monotonic()
            studied.listen(20.0)
            share = (cpu_s(studied.process) - used) / (time.monotonic() - began)
            memory = resident_mb(studied.process)
    return [
        Measured("processor time of a start", used, float("inf"), "s"),
        Measured("idle consumer's share of a core", share * 100, 2.0, "%"),
        Measured("idle consumer's memory", memory, 250.0, "MB"),
    ]


def many_partitions(kafka: EmbeddedKafka, master: str, megabytes: int) -> list[Measured]:
    """240 partitions in 24 topics against 24 in one, in turn, the best of two each."""
    speeds: dict[str, list[float]] = {"24": [], "240": []}
    fillings = {
        "24": fill(kafka.settings, Filling(1, 24, megabytes * 10**6)),
        "240": fill(kafka.settings, Filling(24, 10, megabytes * 10**6)),
    }
    with tempfile.TemporaryDirectory(prefix="bench-") as text:
        settings = settings_for(kafka, master, Path(text))
        for _ in range(2):
            for name, filled in fillings.items():
                drained = drain(settings, filled)
                speeds[name].append(drained.decoded_mb_per_s)
                typer.echo(f"  {name} partitions: {drained}", err=True)
    ratio = max(speeds["240"]) / max(speeds["24"])
    return [
        Measured("24 partitions of one topic", max(speeds["24"]), 0.0, "MB/s", is_at_most=False),
        Measured("240 partitions in 24 topics, of that", ratio, 0.6, "", is_at_most=False),
    ]


def memory_over(kafka: EmbeddedKafka, master: str, minutes: float) -> list[Measured]:
    """Ten minutes of load: how much memory, and whether it grows."""
    measured, memory = under_load(kafka, master, minutes * 60)
    third = max(1, len(memory) // 3)
    early, late = statistics.median(memory[third : 2 * third]), statistics.median(memory[-third:])
    limit = 250.0 if master.startswith("sc://") else 1000.0
    return [
        *measured,
        Measured(f"memory with {master.split(':', maxsplit=1)[0]}", max(memory), limit, "MB"),
        Measured("memory, last third to second third", late / early, 1.05, ""),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["latency", "idle", "partitions"])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--local", action="store_true", help="Spark inside the consumer, local[2]")
    arguments = parser.parse_args()
    found: list[Measured] = []
    with EmbeddedKafka() as kafka, ConnectServer(SparkSettings()) as server:
        master = "local[2]" if arguments.local else server.master
        if "latency" in arguments.what:
            found += under_load(kafka, master, 60.0)[0]
        if "idle" in arguments.what:
            found += idle(kafka, master)
        if "partitions" in arguments.what:
            found += many_partitions(kafka, master, arguments.megabytes)
        if "memory" in arguments.what:
            found += memory_over(kafka, master, arguments.minutes)
    for one in found:
        verdict = "" if one.target in {0.0, float("inf")} else (" ok" if one.is_met else " MISSED")
        typer.echo(f"{one.name:45} {one.value:10.2f} {one.unit:5} (target {one.target:g}){verdict}")
    typer.echo(json.dumps([dataclasses.asdict(one) for one in found]))
    sys.exit(0 if all(one.is_met for one in found) else 1)


if __name__ == "__main__":
    main()
