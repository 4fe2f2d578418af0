"""A whole live group for tests, with real broker, Spark and processes, and helpers to watch it."""

import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kit.processes import processes_naming
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.followed_topics import AT_THE_END, FollowedTopics
from penstock.laboratory.broker import small_broker
from penstock.laboratory.load import LoadGenerator, LoadResult, parse_target
from penstock.local_group import LocalGroup
from penstock.messages import StartConsumingCommand, StopConsumingCommand, decode
from penstock.model import ConsumerId, TopicPartition
from penstock.processes import ProcessIdentity, is_alive, send_signal, start_child, stop
from penstock.settings import load_settings
from penstock.verification import VerificationResult, carried_so_far, verify

LOOK_EVERY_S = 0.2
CONVERGE_S = 300.0


def made_group(folder: Path, **changes: str) -> LocalGroup:
    """A group with small consumers and short periods; `changes` are options with `__` for dots."""
    flags = {
        "controller.directory": str(folder / "group"),
        "lake.root": str(folder / "lake"),
        "packing.capacity": "300kB/s",
        "packing.scale_down_period": "6s",
        "controller.consumers_max": "4",
        "controller.silence": "6s",
        "consumer.batch_period": "500ms",
        **{name.replace("__", "."): value for name, value in changes.items()},
    }
    given = [text for name, value in flags.items() for text in ("--set", f"{name}={value}")]
    settings = load_settings(flags=flags, environment={}).settings
    return LocalGroup(settings, given, start_broker=small_broker, embedded_spark=True)


@dataclass(slots=True)
class LiveGroup:
    """The group under test, and how much was produced to each topic."""

    group: LocalGroup
    produced: dict[str, int] = field(default_factory=dict)

    @property
    def administration(self) -> Administration:
        return Administration(self.group.settings.kafka)

    def status(self) -> dict[str, Any]:
        """The newest status; empty while there is none."""
        self.group.repair()
        try:
            content = (self.group.directory / "status.json").read_text(encoding="utf-8")
            found: dict[str, Any] = json.loads(content)
        except (OSError, ValueError):
            return {}
        is_fresh = time.time() - found["at_unix_ms"] / 1000 < 3
        return found if is_fresh else {}

    def until(
        self, condition: Callable[[dict[str, Any]], bool], what: str, within_s: float = CONVERGE_S
    ) -> dict[str, Any]:
        """Wait until the condition holds; the failure shows the last status."""
        deadline_s = time.monotonic() + within_s
        status: dict[str, Any] = {}
        while time.monotonic() < deadline_s:
            status = self.status()
            if status and condition(status):
                return status
            time.sleep(LOOK_EVERY_S)
        history = "\n".join(str(one) for one in status.get("history", [])[-15:])
        log = self.group.log_of("controller").read_text(encoding="utf-8")[-3000:]
        raise AssertionError(f"not within {within_s} s: {what}\n{history}\n{log}")

    def converged(self, topics: dict[str, int] | None = None) -> dict[str, Any]:
        """Wait until every partition has a ready owner and none moves."""
        wanted = {f"{topic}-{n}" for topic, count in (topics or {}).items() for n in range(count)}

        def is_calm(status: dict[str, Any]) -> bool:
            owned = {n for n, one in status["partitions"].items() if one["status"] == "owned"}
            all_owned = owned == set(status["partitions"]) and wanted <= owned
            return status["phase"] == "Sentinel" and not status["moves"] and all_owned

        return self.until(is_calm, "converged")

    def load(
        self, *targets: str, seconds: float, stop: threading.Event | None = None
    ) -> LoadResult:
        """Produce, and count the records."""
        counts = dict(self.administration.cluster().partition_counts)
        chosen = [one for text in targets for one in parse_target(text, counts, seed=1)]
        result = LoadGenerator(
            self.group.settings.kafka, chosen, run_id=f"live-{time.monotonic_ns()}"
        ).run(seconds, stop)
        assert result.records_failed == 0, result.first_failure
        for name, records in result.records_by_partition.items():
            self.produced[name] = self.produced.get(name, 0) + records
        return result

    def drained(self, *topics: str) -> VerificationResult:
        """Wait until the ledger has every produced record, then verify the lake."""
        deadline_s = time.monotonic() + CONVERGE_S
        while time.monotonic() < deadline_s:
            so_far = carried_so_far(self.group.settings, topics)
            ledger = {str(partition): end for partition, end in so_far.items()}
            mine = {n: c for n, c in self.produced.items() if n.rpartition("-")[0] in topics}
            if mine and all(ledger.get(name, 0) >= count for name, count in mine.items()):
                return verify(self.group.settings, list(topics), on_progress=lambda _: None)
            self.group.repair()
            time.sleep(0.5)
        raise AssertionError(f"not drained: {self.produced} against {ledger}")

    def exact(self, topic: str, partitions: int) -> None:
        """The group converges, every record is in the lake once, and no extra process runs."""
        self.converged({topic: partitions})
        verdict = self.drained(topic)
        assert verdict.is_exact, verdict
        assert sum(one.lake for one in verdict.partitions) == sum(
            count for name, count in self.produced.items() if name.rpartition("-")[0] == topic
        )
        self.no_strays()

    def no_strays(self) -> None:
        """Every consumer process of this group belongs to the deployment."""
        deadline_s = time.monotonic() + CONVERGE_S
        while time.monotonic() < deadline_s:
            deployment = self.group.deployment
            known = {deployment.process_of(one).pid for one in deployment.list_consumers()}
            there = set(processes_naming(f"{self.group.directory}/consumer-"))
            if there <= known:
                return
            self.group.repair()
            time.sleep(LOOK_EVERY_S)
        raise AssertionError(f"left running: {sorted(there - known)}")

    @contextmanager
    def loading(
        self, *targets: str, seconds: float, stop: threading.Event | None = None
    ) -> Iterator[None]:
        """Produce on a thread while the block runs; wait for its end and raise its errors."""
        failures: list[BaseException] = []

        def produce() -> None:
            try:
                self.load(*targets, seconds=seconds, stop=stop)
            except BaseException as error:  # noqa: BLE001 -- raised by the main thread below
                failures.append(error)

        thread = threading.Thread(target=produce)
        thread.start()
        try:
            yield
        finally:
            while thread.is_alive():
                self.group.repair()
                thread.join(LOOK_EVERY_S)
        if failures:
            raise failures[0]

    @contextmanager
    def loading_meanwhile(self, *targets: str) -> Iterator[None]:
        """Produce until the block ends, however long a busy machine takes for it."""
        stop = threading.Event()
        with self.loading(*targets, seconds=3600, stop=stop):
            try:
                yield
            finally:
                stop.set()

    @contextmanager
    def commands(self) -> Iterator["Commands"]:
        """The controller's commands from now on."""
        topic = self.group.settings.topics.names.controller
        count = self.administration.cluster().partition_counts[topic]
        mailboxes = {TopicPartition(topic, n): AT_THE_END for n in range(1, count)}
        follower = FollowedTopics(self.group.settings.kafka, mailboxes)
        try:
            yield Commands(follower, self.group)
        finally:
            follower.close()

    def replace_by_crashing_controller(self, phase: str, moment: str) -> ProcessIdentity:
        """Replace the controller by one that kills itself in the given state."""
        stop(self.group.process_of("controller"), grace_s=20)
        command = [
            sys.executable,
            str(Path(__file__).parents[1] / "controller" / "crashing_controller.py"),
        ]
        command += [phase, moment, *self.group.arguments_of("controller")]
        return start_child(command, log_file=self.group.directory / "deadly.log")

    def consumer_process(self, consumer: int) -> ProcessIdentity:
        return self.group.deployment.process_of(ConsumerId(consumer))

    def send(self, process: ProcessIdentity, number: signal.Signals) -> None:
        assert send_signal(process, number)


@dataclass(frozen=True, slots=True)
class Commands:
    """Follows the controller's commands."""

    follower: FollowedTopics
    group: LocalGroup

    def first(
        self,
        kind: type[StartConsumingCommand | StopConsumingCommand],
        topic: str = "",
        within_s: float = CONVERGE_S,
    ) -> ConsumerId:
        """Wait for a command of this type (and topic), and return its consumer."""
        deadline_s = time.monotonic() + within_s
        while time.monotonic() < deadline_s:
            letter = self.follower.read(LOOK_EVERY_S)
            self.group.repair()
            if letter is None:
                continue
            number = letter.partition.partition
            found = decode(letter.value, letter.headers, topic_role="controller", mailbox=number)
            if isinstance(found, kind) and any(
                row.topic == topic or not topic for row in found.partitions
            ):
                return ConsumerId(number)
        raise AssertionError(f"no {kind.__name__} within {within_s} s")


def until_dead(process: ProcessIdentity, within_s: float = CONVERGE_S) -> None:
    deadline_s = time.monotonic() + within_s
    while is_alive(process):
        assert time.monotonic() < deadline_s, "it did not die"
        time.sleep(LOOK_EVERY_S)


def busiest(status: dict[str, Any]) -> int:
    found: int = max(status["consumers"], key=lambda one: len(one["partitions"]))["consumer"]
    return found


def working(status: dict[str, Any]) -> int:
    """The number of consumers that own partitions."""
    return sum(1 for one in status["consumers"] if one["partitions"])
