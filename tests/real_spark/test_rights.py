"""On a real broker that refuses what is not granted: the documented rights, no less and no more."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient

from documents.kafka_rights import RIGHTS, KafkaRight
from kit.kafka.guarded_broker import GuardedBroker, guarded_broker
from kit.lake.lake import produce
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.commit_topic import CommitTopicReader, CommitTopicWriter
from penstock.messages import CommitterPresence
from penstock.model import TopicPartition
from penstock.pipeline.connect_server import ConnectServer
from penstock.settings import Settings, load_settings
from penstock.verification import carried_so_far, verify

RECORDS = 200
NAMES = {"prefix": "guarded", "group": "quiet", "topics": "orders"}
# Asked for first, and refused without harm: the rights on topics that were granted do as well.
FALLS_BACK = {("Cluster", "IDEMPOTENT_WRITE"), ("Cluster", "CREATE")}


class Roles:
    """The processes of the group, each as its own user."""

    def __init__(self, broker: GuardedBroker, folder: Path, master: str) -> None:
        self._broker = broker
        self._folder = folder
        self._common = {
            "PENSTOCK_TOPICS__PREFIX": NAMES["prefix"],
            "PENSTOCK_LAKE__GROUP": NAMES["group"],
            "PENSTOCK_LAKE__ROOT": str(folder / "lake"),
            "PENSTOCK_CONTROLLER__DIRECTORY": str(folder / "group"),
            "PENSTOCK_CONTROLLER__SPARE_CONSUMERS": "0",
            # A clean end is part of this test; that it is quick is not.
            "PENSTOCK_CONSUMER__GRACE": "150s",
            "PENSTOCK_CONTROLLER__CONSUMER_GRACE": "170s",
            "PENSTOCK_CONSUMER__STATE_ROOT": str(folder / "state"),
            "PENSTOCK_SPARK__MASTER": master,
        }
        servers = {"PENSTOCK_KAFKA__BOOTSTRAP_SERVERS": broker.settings.bootstrap_servers}
        self.settings: Settings = load_settings(environment=self._common | servers).settings

    def environment(self, user: str) -> Mapping[str, str]:
        return {**os.environ, **self._common, **self._broker.environment(user)}

    def run(self, user: str, *command: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "penstock", *command],
            env=self.environment(user),
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, f"{user}: {done.stderr}"

    @contextmanager
    def running(self, user: str, *command: str) -> Iterator[None]:
        """Runs until the end of the block; then it is asked to end, and must exit cleanly."""
        log_file = self._folder / f"{user}.log"
        with (
            log_file.open("wb") as log,
            subprocess.Popen(
                [sys.executable, *command],
                env=self.environment(user),
                cwd=self._folder,
                stdout=log,
                stderr=log,
            ) as process,
        ):
            try:
                yield
                process.send_signal(signal.SIGTERM)
                code = process.wait(timeout=240)
                assert code == 0, log_file.read_text(encoding="utf-8")[-2000:]
            finally:
                process.kill()


def until(condition: Callable[[], bool], what: str, within_s: float = 300) -> None:
    """Each look makes clients of its own: looking often would be most of the work."""
    deadline_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline_s, f"not within {within_s} s: {what}"
        time.sleep(1)


def offsets_of_the_group(broker: GuardedBroker) -> dict[int, int]:
    client = AdminClient({"bootstrap.servers": broker.settings.bootstrap_servers})
    asked = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(NAMES["group"])])
    found = asked[NAMES["group"]].result(timeout=90).topic_partitions
    return {one.partition: one.offset for one in found or []}


def say_and_hear(settings: Settings) -> None:
    """What a consumer does on the commit topic where a table has many writers."""
    given = (settings.kafka, settings.topics, settings.lake.group)
    lost: list[Exception] = []
    writer, reader = CommitTopicWriter(*given, lost.append), CommitTopicReader(*given)
    said = CommitterPresence(table="orders", consumer_id=1, incarnation=1, commit_ms=5)
    reader.follow(said.mailbox)
    writer.send(said)
    writer.flush(90)
    until(lambda: reader.read(1.0) == [said], "what was said on the commit topic")
    reader.close()
    assert not lost


@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.timeout(300)
def test_each_role_works_with_exactly_the_documented_rights(
    broker_jars: None, spark_server: ConnectServer, tmp_path: Path
) -> None:
    """Topics made and grown, speeds published, records carried, requests answered."""
    granted = [one.named(**NAMES) for one in RIGHTS]
    users = sorted({one.role for one in RIGHTS})
    with guarded_broker(tmp_path / "broker", users) as broker, ExitStack() as stack:
        broker.grant(granted)
        roles = Roles(broker, tmp_path, spark_server.master)
        roles.run("controller", "topics", "create")
        roles.run("controller", "topics", "create", "--consumers", "40")
        together = ("--set", "lake.commits=together")
        roles.run("controller", "topics", "create", "--consumers", "40", *together)
        Administration(broker.settings).create_topic("orders", partitions=2)
        produce(broker.settings, "orders", {0: [b"a"] * RECORDS, 1: [b"b"] * RECORDS})
        stack.enter_context(roles.running("monitor", "-m", "penstock", "monitor"))
        stack.enter_context(roles.running("consumer", "-m", "penstock", "consumer", "--id", "1"))
        main = Path(__file__).parents[1] / "kit" / "controller" / "controller_of_one.py"
        controller = stack.enter_context(ExitStack())
        controller.enter_context(roles.running("controller", str(main)))
        orders = [TopicPartition("orders", number) for number in (0, 1)]
        ends = Administration(broker.settings).end_offsets(orders)
        until(lambda: carried_so_far(roles.settings) == ends, "every record in the lake")
        until(lambda: len(offsets_of_the_group(broker)) == 2, "offsets for other tools")
        say_and_hear(load_settings(environment=roles.environment("consumer")).settings)
        roles.run("operator", "pause", "--reason", "tried")
        elsewhere = f"controller.directory={tmp_path / 'elsewhere'}"
        roles.run("operator", "history", "--set", elsewhere)
        controller.close()  # the next one reads what this one left in Kafka
        stack.enter_context(roles.running("controller", str(main)))
        roles.run("operator", "resume")
        stack.close()
        assert verify(roles.settings, ["orders"], on_progress=lambda _: None).is_exact
        _compare(granted, broker)


def _compare(granted: list[KafkaRight], broker: GuardedBroker) -> None:
    """None was missing, and every granted one was used."""
    asked = broker.asked()
    refused = {
        one for one in asked if not one.is_allowed and (one.kind, one.operation) not in FALLS_BACK
    }
    assert not refused
    unused = [
        right
        for right in granted
        if not any(
            one.is_allowed
            and one.user == right.role
            and right.covers(one.kind, one.resource, one.operation)
            for one in asked
        )
    ]
    assert not unused
