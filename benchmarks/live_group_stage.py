"""A live group to measure: real broker, real Spark, real processes, and a load with a dial.

What happened is read afterwards from what the consumers said on the controller's topic, with the
broker's times, and from the lake's log: not from what the controller believes.
"""

import json
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from penstock.kafka_io.administration import Administration
from penstock.laboratory.broker import EmbeddedKafka, small_broker
from penstock.laboratory.demo.observation import ConsumptionChange
from penstock.laboratory.demo.run import consumption_changes
from penstock.laboratory.load import LoadGenerator, Target
from penstock.local_group import LocalGroup
from penstock.model import TopicPartition
from penstock.processes import send_signal
from penstock.settings import load_settings

LOOK_EVERY_S = 0.05
CAPACITY_BYTES_PER_S = 300_000.0


@dataclass(slots=True)
class Dial:
    """A load that the benchmark sets: the time of a step is known exactly."""

    speed: float = 0.0

    def speed_bytes_per_s(self, elapsed_s: float) -> float:  # noqa: ARG002 -- set_speed decides
        return self.speed

    def set_speed(self, speed: float) -> int:
        """The unix time of the step, in milliseconds."""
        self.speed = speed
        return now_ms()


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass
class Stage:
    """One group with one topic; `dials[i]` is the speed of partition i."""

    partitions: int
    options: Mapping[str, str] = field(default_factory=dict)
    topic: str = "measured"
    dials: list[Dial] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="penstock-bench-")
        root = Path(self._folder.name)
        flags = {
            "controller.directory": str(root / "group"),
            "lake.root": str(root / "lake"),
            "lake.log_retention": "1d",  # the times of all commits are read from the log
            "packing.capacity": f"{CAPACITY_BYTES_PER_S:.0f}B/s",
            "spark.server_memory": "1GiB",
            **self.options,
        }
        given = [text for name, value in flags.items() for text in ("--set", f"{name}={value}")]
        settings = load_settings(flags=flags, environment={}).settings
        self.group = LocalGroup(settings, given, start_broker=small_broker, embedded_spark=True)
        self.group.start()
        self.dials = self.dials or [Dial() for _ in range(self.partitions)]
        Administration(self.group.settings.kafka).create_topic(
            self.topic, partitions=self.partitions
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._load, name="load")
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        self.group.stop()
        self._folder.cleanup()

    def _load(self) -> None:
        targets = [
            Target(TopicPartition(self.topic, number), dial)
            for number, dial in enumerate(self.dials)
        ]
        LoadGenerator(self.group.settings.kafka, targets, run_id="bench").run(1e9, self._stop)

    def set_all(self, speed: float) -> int:
        for dial in self.dials:
            dial.set_speed(speed)
        return now_ms()

    def status(self) -> dict[str, Any]:
        self.group.repair()
        try:
            text = (self.group.directory / "status.json").read_text(encoding="utf-8")
            found: dict[str, Any] = json.loads(text)
        except (OSError, ValueError):
            return {}  # not written yet
        return found

    def until(
        self, condition: Callable[[dict[str, Any]], bool], what: str, within_s: float = 120.0
    ) -> dict[str, Any]:
        deadline_s = time.monotonic() + within_s
        while time.monotonic() < deadline_s:
            status = self.status()
            if status and condition(status):
                return status
            time.sleep(LOOK_EVERY_S)
        raise TimeoutError(f"not within {within_s} s: {what}\n{json.dumps(self.status())[:3000]}")

    def calm(
        self, workers: int | None = None, spares: int = 0, workers_min: int = 0
    ) -> dict[str, Any]:
        """Every partition owned, nothing on the move, the spares up."""

        def is_calm(status: dict[str, Any]) -> bool:
            rows = status["partitions"].values()
            ready = [one for one in status["consumers"] if one["status"] == "ready"]
            working = [one for one in ready if one["partitions"]]
            return (
                status["phase"] == "Sentinel"
                and len(rows) == self.partitions
                and all(one["status"] == "owned" for one in rows)
                and not status["moves"]
                and len(ready) - len(working) >= spares
                and (workers is None or len(working) == workers)
                and len(working) >= workers_min
            )

        return self.until(
            is_calm, f"calm with {workers or workers_min} workers and {spares} spares"
        )

    def rest(self, seconds: float) -> None:
        """Time passes; what dies is started again, as `penstock up` would."""
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            self.group.repair()
            time.sleep(LOOK_EVERY_S)

    def kill(self, server: str) -> int:
        """Kill the `broker` or the `Spark server` with -9; the port that it will have again."""
        spark, broker = self.group.spark_server, self.group.broker
        if spark is None or spark.process is None or not isinstance(broker, EmbeddedKafka):
            raise AssertionError("this group starts its servers itself")
        (node,) = broker.nodes.values()
        process, port = node.process, node.plan.port
        if server != "broker":
            process, port = spark.process, spark.port
        if not send_signal(process, signal.SIGKILL):
            raise AssertionError(f"the {server} was dead before it was killed")
        return port

    def decided(self, code: str, since_ms: int) -> int:
        """How often the controller has decided this since then."""
        status = self.status()
        age_ms = status["at_unix_ms"] - since_ms
        return sum(one["code"] == code and one["age_ms"] <= age_ms for one in status["history"])

    def said(self) -> list[ConsumptionChange]:
        """Everything consumers said about starts and stops, oldest first."""
        return sorted(consumption_changes(self.group.settings), key=lambda one: one.at_ms)

    def commits(self) -> dict[str, list[int]]:
        """By partition: when it was carried further, as the lake's log has it."""
        log = Path(self.group.settings.lake.root) / self.topic / "_delta_log"
        found: dict[str, list[int]] = {}
        for file in sorted(log.glob("*.json")):
            lines = file.read_text(encoding="utf-8").splitlines()
            actions = [json.loads(line) for line in lines]
            at_ms = next(a["commitInfo"]["timestamp"] for a in actions if "commitInfo" in a)
            for action in actions:
                if "txn" in action:
                    number = action["txn"]["appId"].rpartition("/")[2]
                    if number.isdigit():  # not an epoch's entry, which stands beside the offset's
                        found.setdefault(f"{self.topic}-{number}", []).append(at_ms)
        return found


def owners_after(said: Sequence[ConsumptionChange], owners: dict[str, int]) -> dict[str, int]:
    for one in said:
        if one.is_start:
            owners[one.partition] = one.consumer
        elif owners.get(one.partition) == one.consumer:
            del owners[one.partition]
    return owners


def within_capacity_s(
    said: Sequence[ConsumptionChange], stepped_ms: int, speeds: Mapping[str, float], capacity: float
) -> float | None:
    """Seconds from a step until nobody carries more than its capacity, for good; None if never."""
    owners = owners_after([one for one in said if one.at_ms <= stepped_ms], {})
    settled_ms = stepped_ms if _is_within(owners, speeds, capacity) else None
    for one in (one for one in said if one.at_ms > stepped_ms):
        owners_after([one], owners)
        if not _is_within(owners, speeds, capacity):
            settled_ms = None
        elif settled_ms is None:
            settled_ms = one.at_ms
    return None if settled_ms is None else (settled_ms - stepped_ms) / 1000


def _is_within(owners: Mapping[str, int], speeds: Mapping[str, float], capacity: float) -> bool:
    loads: dict[int, float] = {}
    for partition, speed in speeds.items():
        if partition not in owners:
            return False
        consumer = owners[partition]
        loads[consumer] = loads.get(consumer, 0.0) + speed
    return max(loads.values(), default=0.0) <= capacity
