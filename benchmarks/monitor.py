"""What the monitor costs at 5,000 partitions and a one-second period: processor time and memory.

`python benchmarks/monitor.py` starts a broker, makes 5,000 partitions, writes to 200 of them, runs
`penstock monitor` beside it for a minute and reads what the kernel counted for that process. On a
busy machine rounds may be missed: processor time is judged for each measurement published, at one a
second. The exit code is 1 when a bound is broken: 15 % of one core, 150 MB, one measurement a
second.
"""

import argparse
import os
import sys
import time
from pathlib import Path
from threading import Event, Thread

from penstock.kafka_io.administration import Administration
from penstock.laboratory.broker import EmbeddedKafka
from penstock.laboratory.broker.properties import BrokerPlan
from penstock.laboratory.load import LoadGenerator, RecordForm, Target
from penstock.laboratory.load.shapes import Constant
from penstock.messages import PARTITIONS_PER_MESSAGE_MAX
from penstock.model import TopicPartition
from penstock.processes import start_child, stop_all
from penstock.settings.sections import TopicsSettings
from penstock.topics import control_topics

TOPICS, PARTITIONS_EACH = 50, 100
WRITTEN_EACH = 4
CORE_PART_MAX = 0.15
MEMORY_MB_MAX = 150.0
MEASUREMENTS_PER_S_MIN = 0.98
WARM_UP_S = 35.0


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> float:
    """The most it ever held."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / 1e6


def published(kafka: EmbeddedKafka) -> float:
    """Measurements on the topic so far; each is in several parts."""
    where = TopicPartition(TopicsSettings().names.monitor, 0)
    messages = Administration(kafka.settings).end_offsets([where])[where]
    return messages / (TOPICS * PARTITIONS_EACH / PARTITIONS_PER_MESSAGE_MAX)


def measure(kafka: EmbeddedKafka, seconds: float) -> tuple[float, float, float]:
    """Processor seconds a measurement, memory, and measurements a second."""
    command = [sys.executable, "-m", "penstock", "monitor"]
    command += ["--bootstrap-server", kafka.bootstrap_servers]
    monitor = start_child(command, log_file=Path(kafka.directory) / "monitor.log")
    try:
        time.sleep(WARM_UP_S)  # until the window is full: that is the steady state
        begun_s, used_s, before = time.monotonic(), cpu_s(monitor.pid), published(kafka)
        time.sleep(seconds)
        used_s = cpu_s(monitor.pid) - used_s
        count = published(kafka) - before
        return used_s / count, memory_mb(monitor.pid), count / (time.monotonic() - begun_s)
    finally:
        stop_all([monitor], grace_s=10)


def wait_for(administration: Administration, names: list[str]) -> None:
    """A topic that was just made is not known everywhere at once."""
    while not set(names) <= set(administration.cluster().partition_counts):
        time.sleep(0.2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    seconds = parser.parse_args().seconds
    with EmbeddedKafka(BrokerPlan(heap_mib=1024)) as kafka:
        administration = Administration(kafka.settings)
        for topic in control_topics(TopicsSettings()):
            administration.create_topic(
                topic.name, partitions=topic.partitions, settings=topic.settings
            )
        names = [f"bench-{number:02d}" for number in range(TOPICS)]
        for name in names:
            administration.create_topic(name, partitions=PARTITIONS_EACH)
        wait_for(administration, names)
        targets = [
            Target(TopicPartition(name, number), Constant(2000.0))
            for name in names
            for number in range(WRITTEN_EACH)
        ]
        stop = Event()
        load = LoadGenerator(kafka.settings, targets, run_id="bench", form=RecordForm(500))
        writer = Thread(target=load.run, args=(3600.0, stop))
        writer.start()
        try:
            core_part, memory, each_s = measure(kafka, seconds)
        finally:
            stop.set()
            writer.join()
    sys.stdout.write(
        f"{TOPICS * PARTITIONS_EACH} partitions, {each_s:.2f} measurements a second\n"
        f"processor {core_part:6.1%} of one core at one a second (at most {CORE_PART_MAX:.0%})\n"
        f"memory    {memory:6.1f} MB at its most (at most {MEMORY_MB_MAX:.0f} MB)\n"
    )
    is_held = each_s >= MEASUREMENTS_PER_S_MIN
    return int(core_part > CORE_PART_MAX or memory > MEMORY_MB_MAX or not is_held)


if __name__ == "__main__":
    sys.exit(main())
