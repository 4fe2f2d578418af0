"""A consumer's mailbox on a real broker: order across two topics, limits, lost messages."""

import time

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient

from kit.lake.lake import new_topic_name
from penstock.kafka_io import mailbox as mailbox_module
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.group_offsets import GroupOffsets
from penstock.kafka_io.mailbox import Mailbox
from penstock.kafka_io.partition_reader import KafkaRecord
from penstock.laboratory.broker import EmbeddedKafka
from penstock.model import ControlTopicNames, TopicPartition

pytestmark = pytest.mark.broker


class Box:
    """A mailbox of consumer 1, and a producer in a transaction as the controller's is."""

    def __init__(self, kafka: EmbeddedKafka, *, transactional: bool = True) -> None:
        self.name = new_topic_name("box")
        self.names = ControlTopicNames(self.name)
        self.settings = kafka.settings
        self.kafka = Administration(kafka.settings)
        for role in ("controller", "query"):
            self.kafka.create_topic(self.names.of_role(role), partitions=2)
        self.commands = TopicPartition(self.names.controller, 1)
        self.queries = TopicPartition(self.names.query, 1)
        properties = {"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 0}
        if transactional:
            properties["transactional.id"] = self.name
        self.producer = Producer(properties)
        if transactional:
            self.producer.init_transactions(60)

    def put(self, role: str, *values: str) -> None:
        for value in values:
            self.producer.produce(self.names.of_role(role), value.encode(), partition=1)

    def open(self, since: dict[TopicPartition, int] | None = None) -> Mailbox:
        box = Mailbox(self.settings, self.commands, self.queries)
        box.open(since or {})
        return box


def read(box: Mailbox, count: int, timeout_s: float = 90.0) -> list[str]:
    """The next items as text; a trouble is `!`."""
    found: list[str] = []
    deadline = time.monotonic() + timeout_s
    while len(found) < count and time.monotonic() < deadline:
        found += [
            (one.value or b"").decode() if isinstance(one, KafkaRecord) else "!"
            for one in box.read(0.2)
        ]
    return found


def test_a_query_comes_after_the_commands_before_it(kafka: EmbeddedKafka) -> None:
    """Two topics in one transaction: the query is last, although it is alone in its topic."""
    box = Box(kafka)
    box.producer.begin_transaction()
    box.put("controller", *(f"command {number}" for number in range(50)))
    box.put("query", "query")
    box.producer.commit_transaction(60)
    reader = box.open()
    try:
        found = read(reader, 51)
        assert len(found) == 51
        assert found[-1] == "query"
    finally:
        reader.close()


def test_what_was_aborted_is_never_read(kafka: EmbeddedKafka) -> None:
    """A controller that was fenced leaves nothing behind; a query is not held up by it."""
    box = Box(kafka)
    box.producer.begin_transaction()
    box.put("controller", "never")
    box.producer.flush(60)
    box.producer.abort_transaction(60)
    box.producer.begin_transaction()
    box.put("query", "query")
    box.producer.commit_transaction(60)
    reader = box.open()
    try:
        assert read(reader, 1) == ["query"]
        assert reader.read(0.3) == []
    finally:
        reader.close()


def test_goes_on_where_the_last_incarnation_stopped_but_not_from_long_ago(
    kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stored position counts if it makes sense; without one a bounded part is read."""
    box = Box(kafka, transactional=False)
    box.put("controller", *(str(number) for number in range(30)))
    assert box.producer.flush(60) == 0
    monkeypatch.setattr(mailbox_module, "BACKLOG_MAX", 10)
    for since, first, count in (({}, "20", 10), ({box.commands: 27}, "27", 3)):
        reader = box.open(since)
        try:
            found = read(reader, count)
            assert (found[0], len(found)) == (first, count)
            assert reader.positions[box.commands] == 30
        finally:
            reader.close()
    beyond = box.open({box.commands: 999})
    try:
        assert read(beyond, 10)[0] == "20"
    finally:
        beyond.close()


def test_messages_that_retention_removed_are_reported_and_reading_goes_on(
    kafka: EmbeddedKafka,
) -> None:
    """The loss is reported once, then the messages that are left are read."""
    box = Box(kafka, transactional=False)
    box.put("controller", *(str(number) for number in range(10)))
    assert box.producer.flush(60) == 0
    reader = box.open()
    try:
        assert len(read(reader, 10)) == 10
        client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        place = ClientPartition(box.commands.topic, 1, 5)
        for future in client.delete_records([place]).values():
            future.result(60)
        reader._reader._consumer.seek(ClientPartition(box.commands.topic, 1, 2))
        assert read(reader, 6) == ["!", "5", "6", "7", "8", "9"]
    finally:
        reader.close()


def test_several_processes_write_offsets_of_one_group(kafka: EmbeddedKafka) -> None:
    """Nobody joins the group, so each process writes the offsets of its own partitions."""
    topic = new_topic_name("lag")
    Administration(kafka.settings).create_topic(topic, partitions=2)
    places = [TopicPartition(topic, number) for number in range(2)]
    failures: list[str] = []
    writers = [GroupOffsets(kafka.settings, topic, on_failure=failures.append) for _ in places]
    for writer, place in zip(writers, places, strict=True):
        writer.write({place: 5})
        writer.write({place: 7})
        writer.finish(90)
    assert failures == []
    tool = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": topic})
    try:
        found = tool.committed([ClientPartition(topic, number) for number in range(2)], timeout=60)
        assert [one.offset for one in found] == [7, 7]
    finally:
        tool.close()


def test_an_offset_that_cannot_be_written_is_reported_and_kept(kafka: EmbeddedKafka) -> None:
    """For a missing partition the failure is reported, the offset kept until `forget`."""
    failures: list[str] = []
    writer = GroupOffsets(kafka.settings, new_topic_name("g"), on_failure=failures.append)
    missing = TopicPartition(new_topic_name("missing"), 0)
    writer.write({missing: 3})
    writer.wait(90)
    assert failures
    assert writer._pending == {missing: 3}
    writer.forget(missing)
    assert writer._pending == {}


def test_offsets_are_written_when_the_coordinator_is_back(broker_jars: None) -> None:
    """A write that finds no answer is kept; it does not end the process when one comes late."""
    topic = new_topic_name("lag")
    with EmbeddedKafka() as kafka:
        Administration(kafka.settings).create_topic(topic, partitions=1)
        hasty = kafka.settings.model_copy(update={"answer_timeout": 1.0})
        writer = GroupOffsets(hasty, topic, on_failure=print)
        writer.write({TopicPartition(topic, 0): 4})
        writer.wait(90)
        for node in kafka.nodes:
            kafka.pause(node)
        writer.write({TopicPartition(topic, 0): 5})
        writer.wait(3)  # longer than the time-out
        writer.write({TopicPartition(topic, 0): 6})
        for node in kafka.nodes:
            kafka.resume(node)
        deadline_s = time.monotonic() + 180
        while (writer._pending or writer._sent) and time.monotonic() < deadline_s:
            writer.finish(5)
        tool = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": topic})
        try:
            assert tool.committed([ClientPartition(topic, 0)], timeout=60)[0].offset == 6
        finally:
            tool.close()
