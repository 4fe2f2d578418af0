"""How much of a core a controller uses while nothing happens, and how that grows.

    python benchmarks/controller_cpu.py [SECONDS] [PARTITIONS...]

A real controller leads a group on a real broker. Its consumers and its monitor are played by this
process: they answer every command, report every two seconds and measure every second, and no speed
ever changes. Printed is the processor time of the controller's process over some seconds of calm
(60 unless told), as a share of one core. Target: at most 2 % with 18 partitions, and less than
linear growth up to 10,000; the exit code is 1 where one is missed.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, cycle
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from kit.deployment.in_memory import InMemoryDeployment
from penstock.controller.process import ControllerProcess
from penstock.kafka_io.control_topics import make_control_topics
from penstock.kafka_io.followed_topics import FollowedTopics
from penstock.kafka_io.measurement_topic import MeasurementPublisher
from penstock.kafka_io.partition_reader import PartitionReader
from penstock.kafka_io.producer import RecordProducer
from penstock.laboratory.broker import EmbeddedKafka
from penstock.messages import (
    ConsumerPhase,
    ConsumerReport,
    FromConsumer,
    PartitionSpeed,
    ReportedPartition,
    StartConsumingCommand,
    StartConsumingEvent,
    StartedPartition,
    StateQuery,
    StateQueryResponse,
    StopConsumingCommand,
    StopConsumingEvent,
    StoppedPartition,
    WriteSpeedMeasurement,
    cut,
    decode,
    encode,
)
from penstock.model import TopicPartition
from penstock.processes import STOP_GRACE_S, start_child, stop
from penstock.settings import Settings, changed_settings, load_settings

CALM_S = 60.0
SIZES = {18: 2, 1_000: 10, 10_000: 100}
LEAST_SHARE_MAX = 0.02
REPORT_S = 2.0
MEASURE_S = 1.0
SETTLED_AFTER_S = 10.0
MAILBOX_WAIT_S = 30.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def group_settings(
    bootstrap_servers: str, folder: str, partitions: int, consumers: int
) -> Settings:
    return changed_settings(
        Settings(),
        {
            "kafka.bootstrap_servers": bootstrap_servers,
            "topics.prefix": f"quiet-{partitions}",
            "controller.directory": folder,
            "controller.spare_consumers": 0,
            "controller.consumers_max": consumers,
            "controller.creations_per_minute_max": consumers,
            "packing.partitions_per_consumer_max": -(-partitions // consumers),
        },
    )


class PlayedGroup:
    """Consumers that obey at once, and a monitor that always measures the same."""

    def __init__(self, settings: Settings, partitions: int, consumers: int) -> None:
        self._names = settings.topics.names
        self._numbers = range(1, consumers + 1)
        self._owned: dict[int, dict[TopicPartition, str]] = {n: {} for n in self._numbers}
        self._epoch = self._plan = 1
        self._sequence = count(1)
        self._reports = count(1)
        self._turns = cycle(self._numbers)
        self._measurements = count(1)
        self._speeds = [
            PartitionSpeed(topic="orders", partition=number, write_speed_bytes_per_s=10.0)
            for number in range(partitions)
        ]
        self._producer = RecordProducer(settings.kafka)
        self._publisher = MeasurementPublisher(settings.kafka, settings.topics)
        mailboxes = [
            TopicPartition(topic, number)
            for topic in (self._names.controller, self._names.query)
            for number in self._numbers
        ]
        reader = PartitionReader(settings.kafka)
        for one in mailboxes:
            reader.log_range(one, wait_s=MAILBOX_WAIT_S)
        reader.close()
        self._mailboxes = FollowedTopics(settings.kafka, dict.fromkeys(mailboxes, 0))
        self.changed_s = time.monotonic()

    def run(self, until_s: float) -> None:
        """Play until then, with reports spread over their period."""
        spread = REPORT_S / len(self._numbers)
        report_s = measure_s = time.monotonic()
        while (now_s := time.monotonic()) < until_s:
            if now_s >= measure_s:
                self._measure()
                measure_s += MEASURE_S
            while report_s <= now_s:
                self._report(next(self._turns))
                report_s += spread
            wait_s = max(0.0, min(measure_s, report_s, until_s) - time.monotonic())
            record = self._mailboxes.read(wait_s)
            if record is not None:
                self._obey(record.value, record.headers)

    @property
    def carried(self) -> int:
        return sum(len(owned) for owned in self._owned.values())

    def close(self) -> None:
        self._mailboxes.close()
        self._publisher.close(1.0)

    def _measure(self) -> None:
        pieces, sequence = cut(self._speeds), next(self._measurements)
        self._publisher.publish(
            WriteSpeedMeasurement(
                monitor_incarnation=1,
                sequence=sequence,
                part=part,
                parts=len(pieces),
                published_at_unix_ms=time.time_ns() // 1_000_000,
                age_ms=0,
                window_ms=30_000,
                partitions=piece,
            )
            for part, piece in enumerate(pieces, start=1)
        )

    def _head(self, consumer: int) -> dict[str, int]:
        return {
            "consumer_id": consumer,
            "incarnation": 1,
            "sequence": next(self._sequence),
            "controller_epoch": self._epoch,
            "plan_number": self._plan,
        }

    def _report(self, consumer: int) -> None:
        rows = tuple(
            ReportedPartition(
                topic=one.topic,
                partition=one.partition,
                epoch=epoch,
                next_offset=1,
                end_offset=1,
                read_speed_log_bytes_per_s=10.0,
                records_per_s=1.0,
            )
            for one, epoch in self._owned[consumer].items()
        )
        self._say(
            ConsumerReport(
                **self._head(consumer),
                report_number=next(self._reports),
                phase=ConsumerPhase.RUNNING,
                behind_records=0,
                behind_log_bytes=0,
                deployment_version=1,
                owned=rows,
            )
        )

    def _obey(self, value: bytes | None, headers: tuple[tuple[str, bytes | None], ...]) -> None:
        message = decode(value, headers)
        if isinstance(message, StateQuery):
            self._epoch, self._plan = message.controller_epoch, message.plan_number
            self._say(
                StateQueryResponse(
                    **self._head(message.consumer_id),
                    query_controller_epoch=message.controller_epoch,
                    query_number=message.query_number,
                )
            )
        elif isinstance(message, StartConsumingCommand | StopConsumingCommand):
            self.changed_s = time.monotonic()
            self._epoch, self._plan = message.controller_epoch, message.plan_number
            consumer, rows = message.consumer_id, message.partitions
            for row in rows:
                if isinstance(message, StartConsumingCommand):
                    self._owned[consumer][row.topic_partition] = row.epoch
                else:
                    self._owned[consumer].pop(row.topic_partition, None)
            named = [{"topic": r.topic, "partition": r.partition, "epoch": r.epoch} for r in rows]
            if isinstance(message, StartConsumingCommand):
                started = tuple(StartedPartition(**one) for one in named)
                self._say(StartConsumingEvent(**self._head(consumer), partitions=started))
            else:
                stopped = tuple(StoppedPartition(**one) for one in named)
                self._say(StopConsumingEvent(**self._head(consumer), partitions=stopped))

    def _say(self, message: FromConsumer) -> None:
        encoded = encode(message)
        self._producer.send(self._names.consumer, 0, encoded.value, headers=encoded.headers)
        self._producer.poll()


@contextmanager
def controller(folder: str, settings_file: Path) -> Iterator[int]:
    """The process id of a controller in a process of its own."""
    command = [sys.executable, __file__, "--lead", str(settings_file)]
    process = start_child(command, log_file=Path(folder) / "controller.log")
    try:
        yield process.pid
    finally:
        stop(process, grace_s=STOP_GRACE_S)


def cpu_s(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def share_of_a_core(broker: EmbeddedKafka, partitions: int, consumers: int, calm_s: float) -> float:
    with tempfile.TemporaryDirectory() as folder:
        settings = group_settings(broker.bootstrap_servers, folder, partitions, consumers)
        make_control_topics(settings, highest_consumer_id=consumers)
        file = Path(folder) / "settings.json"
        file.write_text(settings.model_dump_json(exclude_defaults=True))
        played = PlayedGroup(settings, partitions, consumers)
        with controller(folder, file) as pid:
            while played.carried < partitions or (
                time.monotonic() - played.changed_s < SETTLED_AFTER_S
            ):
                played.run(time.monotonic() + 1.0)
            before_s, began_s = cpu_s(pid), time.monotonic()
            played.run(began_s + calm_s)
            used_s, took_s = cpu_s(pid) - before_s, time.monotonic() - began_s
        played.close()
    return used_s / took_s


def lead(settings_file: str) -> None:
    settings = load_settings(Path(settings_file)).settings
    ControllerProcess(settings, InMemoryDeployment()).run()


def is_met(shares: dict[int, float]) -> bool:
    """Whether the least group is quiet, and none uses more for each partition than the least."""
    least = min(shares)
    is_sublinear = all(share / shares[least] <= n / least for n, share in shares.items())
    return (least > min(SIZES) or shares[least] <= LEAST_SHARE_MAX) and is_sublinear


def main() -> int:
    calm_s = float(sys.argv[1]) if len(sys.argv) > 1 else CALM_S
    sizes = [int(text) for text in sys.argv[2:]] or list(SIZES)
    sys.stdout.write("| partitions | consumers | share of a core |\n|---|---|---|\n")
    shares: dict[int, float] = {}
    with EmbeddedKafka() as broker:
        for partitions in sizes:
            share = share_of_a_core(broker, partitions, SIZES[partitions], calm_s)
            shares[partitions] = share
            sys.stdout.write(f"| {partitions} | {SIZES[partitions]} | {100 * share:.1f} % |\n")
            sys.stdout.flush()
    return 0 if is_met(shares) else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--lead"]:
        lead(sys.argv[2])
    else:
        sys.exit(main())
