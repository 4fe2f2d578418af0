"""Consumers as processes, and a controller that a test plays by hand."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import yaml
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient

from kit.consumer.sent_messages import SentMessages
from kit.event_log import EventLog
from kit.lake.delta_rows import count_at, rows_at
from kit.lake.lake import new_topic_name, produce
from penstock.errors import PenstockError
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.control_topics import make_control_topics
from penstock.kafka_io.leading_producer import FencedError, LeadingProducer, Outgoing
from penstock.messages import (
    CommandRefusedEvent,
    ConsumerPhase,
    ConsumerReport,
    FromConsumer,
    Message,
    PartitionToStart,
    PartitionToStop,
    StartConsumingCommand,
    StartConsumingEvent,
    StateQuery,
    StateQueryResponse,
    StopConsumingCommand,
    StopConsumingEvent,
    encode,
)
from penstock.model import TopicPartition
from penstock.settings import Settings
from penstock.verification import verify

MAIN = Path(__file__).parent / "consumer_main.py"
# Where this is over something hangs; a busy machine may take a minute for what else takes a second.
WAIT_S = 180.0
# Less than that, and much more than a consumer needs to end. The controller's has to be longer.
GRACE, CONTROLLERS_GRACE = "150s", "170s"
Kind = TypeVar("Kind", bound=FromConsumer)


def wait_for(what: str, look: Callable[[], Any], timeout_s: float = WAIT_S) -> Any:
    """Look again and again until it is there."""
    deadline = time.monotonic() + timeout_s
    while not (found := look()):
        assert time.monotonic() < deadline, f"waited {timeout_s:.0f} s for {what}"
        time.sleep(0.05)
    return found


@dataclass
class ConsumerChild:
    """One consumer process, its log, and ways to harm it."""

    number: int
    process: subprocess.Popen[bytes]
    log_file: Path
    state_directory: Path

    def __post_init__(self) -> None:
        self._log = EventLog(self.log_file)

    def send(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def end(self, timeout_s: float = WAIT_S) -> int:
        """Ask it to end; its exit code."""
        self.send(signal.SIGTERM)
        return self.process.wait(timeout_s)

    def log(self) -> str:
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def events(self, name: str) -> list[dict[str, Any]]:
        """What it logged under this name."""
        return self._log.events(name)

    def is_paused(self) -> bool:
        stat = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8")
        return stat.rpartition(")")[2].split()[0] == "T"

    def memory_mb(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        line = next(row for row in status.splitlines() if row.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    def cpu_s(self) -> float:
        stat = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8")
        fields = stat.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Group:
    """A lake, control topics and consumers; the test plays the controller."""

    settings: Settings
    folder: Path
    controller_epoch: int = 1
    plan_number: int = 1
    _epochs: int = 0
    _queries: int = 0
    children: list[ConsumerChild] = field(default_factory=list)

    def __post_init__(self) -> None:
        make_control_topics(self.settings, highest_consumer_id=4)
        servers = self.settings.kafka.bootstrap_servers
        # A consumer obeys only what is written under the controller's transactional id.
        leader = self.settings.topics.names.transactional_id(self.settings.lake.group)
        self._leader = LeadingProducer(self.settings.kafka, leader)
        self._sent = SentMessages(servers, self.settings.topics.names.consumer)
        self.heard = self._sent.messages

    def close(self) -> None:
        for child in self.children:
            if child.process.poll() is None:
                child.process.kill()
                child.process.wait(10)
        self._sent.close()

    def print_logs(self) -> None:
        """Show the last log lines of every consumer beside the failure of a test."""
        for child in self.children:
            lines = child.log_file.read_text(encoding="utf-8", errors="replace").splitlines()
            said = [line[:400] for line in lines if '"level": "debug"' not in line]
            sys.stderr.write("\n".join([child.log_file.name, *said[-60:], ""]))

    # --- consumers ---

    def start(
        self, number: int, *, at: str = "", action: str = "kill", count: int = 1, **consumer: Any
    ) -> ConsumerChild:
        """Start consumer `number`; with `at`, it is killed or paused at that point of a batch."""
        content = self.settings.model_dump(mode="json", exclude_defaults=True)
        content.setdefault("consumer", {}).update(consumer)
        content["consumer"].setdefault("state_root", str(self.folder / "state"))
        content["consumer"].setdefault("grace", GRACE)
        content.setdefault("controller", {}).setdefault("consumer_grace", CONTROLLERS_GRACE)
        content["log"] = {"format": "json", "level": "debug"}
        started = len(self.children)
        file = self.folder / f"settings-{number}-{started}.yaml"
        file.write_text(yaml.safe_dump(content), encoding="utf-8")
        if at:
            command = [str(MAIN), at, action, str(count), str(number), str(file)]
        else:
            command = ["-m", "penstock", "consumer", "--id", str(number), "-f", str(file)]
        log_file = self.folder / f"consumer-{number}-{started}.log"
        with log_file.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, *command],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": _python_path()},
            )
        root = Path(content["consumer"]["state_root"])
        child = ConsumerChild(number, process, log_file, root / f"consumer-{number}")
        self.children.append(child)
        return child

    # --- what the controller sends ---

    def send(self, message: Message) -> None:
        encoded = encode(message)
        topic = self.settings.topics.names.of_role(message.topic_role)
        outgoing = Outgoing(topic, message.mailbox, encoded.value, encoded.headers)
        wait_for("the broker to take a message", lambda: self._is_sent(outgoing))

    def _is_sent(self, outgoing: Outgoing) -> bool:
        """A broker that gets no processor takes longer than a transaction may; none was sent."""
        try:
            self._leader.send([outgoing])
        except FencedError:
            raise
        except PenstockError:
            return False
        return True

    def next_epoch(self) -> str:
        self._epochs += 1
        return f"{self.controller_epoch}.{self._epochs}"

    def command_start(self, number: int, partitions: Sequence[TopicPartition]) -> None:
        rows = tuple(
            PartitionToStart(topic=one.topic, partition=one.partition, epoch=self.next_epoch())
            for one in partitions
        )
        self.send(StartConsumingCommand(**self._head(number), partitions=rows))

    def command_stop(self, number: int, partitions: Sequence[TopicPartition]) -> None:
        epoch = f"{self.controller_epoch}.{self._epochs}"
        rows = tuple(
            PartitionToStop(topic=one.topic, partition=one.partition, epoch=epoch)
            for one in partitions
        )
        self.send(StopConsumingCommand(**self._head(number), partitions=rows))

    def ask(self, number: int) -> int:
        self._queries += 1
        query = StateQuery(
            consumer_id=number,
            controller_epoch=self.controller_epoch,
            plan_number=self.plan_number,
            query_number=self._queries,
        )
        self.send(query)
        return self._queries

    def _head(self, number: int) -> dict[str, int]:
        return {
            "consumer_id": number,
            "incarnation": self.incarnation(number),
            "controller_epoch": self.controller_epoch,
            "plan_number": self.plan_number,
        }

    # --- what the consumers send ---

    def listen(self) -> None:
        """Read all messages that are in the topic now."""
        self._sent.read_to_the_end()

    def said(
        self, kind: type[Kind], number: int, after: int = 0, *, incarnation: int | None = None
    ) -> list[Kind]:
        self.listen()
        return [
            one
            for one in self.heard[after:]
            if isinstance(one, kind)
            and one.consumer_id == number
            and incarnation in {None, one.incarnation}
        ]

    def incarnation(self, number: int) -> int:
        """The newest incarnation that sent a message."""

        def newest() -> int:
            reports = self.said(ConsumerReport, number)
            return max((one.incarnation for one in reports), default=0)

        return int(wait_for(f"a report of consumer {number}", newest))

    def wait_new_incarnation(self, number: int, before: int) -> int:
        return int(
            wait_for(
                f"a new incarnation of consumer {number}",
                lambda: (now := self.incarnation(number)) > before and now,
            )
        )

    def started(self, number: int, *, incarnation: int | None = None) -> dict[TopicPartition, int]:
        found = {}
        for event in self.said(StartConsumingEvent, number, incarnation=incarnation):
            for row in event.partitions:
                found[row.topic_partition] = row.next_offset or 0
        return found

    def stopped(self, number: int) -> dict[TopicPartition, Any]:
        return {
            row.topic_partition: row
            for event in self.said(StopConsumingEvent, number)
            for row in event.partitions
        }

    def refusals(self, number: int) -> list[CommandRefusedEvent]:
        return self.said(CommandRefusedEvent, number)

    def report(self, number: int) -> ConsumerReport:
        return self.said(ConsumerReport, number)[-1]

    def reports(self, number: int) -> list[ConsumerReport]:
        return self.said(ConsumerReport, number)

    def group_offsets(self, places: Sequence[TopicPartition]) -> list[int]:
        """What a tool that shows lag would read from the Kafka group."""
        servers = self.settings.kafka.bootstrap_servers
        name = self.settings.lake.group
        reader = Consumer({"bootstrap.servers": servers, "group.id": name})
        try:
            asked = [ClientPartition(one.topic, one.partition) for one in places]
            return [one.offset for one in reader.committed(asked, timeout=60)]
        finally:
            reader.close()

    def delete_records(self, place: TopicPartition, *, before: int) -> None:
        """Delete records as retention would."""
        client = AdminClient({"bootstrap.servers": self.settings.kafka.bootstrap_servers})
        for future in client.delete_records(
            [ClientPartition(place.topic, place.partition, before)]
        ).values():
            future.result(60)

    def time_to_answer_s(self, number: int) -> float:
        """From before a query is sent until its answer is read; nothing here waits in steps."""
        self.listen()
        asked = time.monotonic()
        query = self.ask(number)
        while time.monotonic() - asked < WAIT_S:
            read = self._sent.next_message()
            if isinstance(read, StateQueryResponse) and read.query_number == query:
                return time.monotonic() - asked
        raise AssertionError(f"consumer {number} did not answer")

    def answer(self, number: int, query: int) -> StateQueryResponse:
        def found() -> StateQueryResponse | None:
            answers = self.said(StateQueryResponse, number)
            return next((one for one in answers if one.query_number == query), None)

        answer = wait_for(f"an answer of consumer {number}", found)
        assert isinstance(answer, StateQueryResponse)
        return answer


def _python_path() -> str:
    """The kit, and whatever the tests themselves run with."""
    return os.pathsep.join([str(MAIN.parents[2]), os.environ.get("PYTHONPATH", "")])


MakeGroup = Callable[..., Group]


@contextmanager
def group_of(settings: Settings, folder: Path) -> Iterator[Group]:
    group = Group(settings, folder)
    try:
        yield group
    except BaseException:
        group.print_logs()
        raise
    finally:
        group.close()


def make_topic(
    group: Group, story: str, partitions: int, records: int = 0, *, size: int = 0
) -> tuple[str, list[TopicPartition]]:
    """A topic with `records` in each partition; its name and its partitions."""
    topic = new_topic_name(story)
    Administration(group.settings.kafka).create_topic(topic, partitions=partitions)
    add_records(group, topic, partitions, records, size=size)
    return topic, [TopicPartition(topic, number) for number in range(partitions)]


def add_records(group: Group, topic: str, partitions: int, records: int, *, size: int = 0) -> None:
    pad = "x" * size
    values = [f"value {number} {pad}".encode() for number in range(records)]
    if values:
        produce(group.settings.kafka, topic, dict.fromkeys(range(partitions), values))


def lake_rows(group: Group, topic: str) -> list[tuple[int, int]]:
    """Partition and offset of every row, read by deltalake alone."""
    return rows_at(f"{group.settings.lake.root}/{topic}")


def wait_rows(group: Group, topic: str, rows: int, timeout_s: float = WAIT_S) -> None:
    """Until that many rows are in the lake, each once."""
    what, place = f"{rows} rows of {topic}", f"{group.settings.lake.root}/{topic}"
    wait_for(what, lambda: count_at(place) >= rows, timeout_s)
    found = lake_rows(group, topic)
    assert len(found) == len(set(found)) == rows


def assert_exact(group: Group, *topics: str) -> None:
    """The independent check finds every record once."""
    verdict = verify(group.settings, topics)
    assert verdict.is_exact, verdict


def _has_reported(group: Group, before: int) -> bool:
    return len(group.reports(1)) > before


def keeps_flowing(group: Group, child: ConsumerChild, topic: str, rows: int) -> int:
    """Three times new records of the healthy topic arrive, and reports go on; the rows then."""
    for _ in range(3):
        reports = len(group.reports(1))
        add_records(group, topic, 1, 5)
        rows += 5
        wait_rows(group, topic, rows)
        wait_for("a report", partial(_has_reported, group, reports))
    assert child.process.poll() is None
    assert group.report(1).phase is ConsumerPhase.RUNNING
    assert group.report(1).owned
    return rows
