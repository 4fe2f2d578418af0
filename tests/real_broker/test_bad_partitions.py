"""On real brokers: what is wrong with one partition does not touch look-ups of the others."""

import gc
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from documents.kafka_rights import KafkaRight
from kit.kafka.guarded_broker import GuardedBroker, guarded_broker
from kit.lake.lake import new_topic_name
from penstock.consumer.process.external_systems import ExternalSystems
from penstock.errors import NotPermittedError
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.failures import NoLeaderError, TopicMissingError
from penstock.kafka_io.offset_lookup import LogPosition, OffsetLookup, OffsetLookups
from penstock.kafka_io.partition_reader import (
    EndReached,
    FailureKind,
    KafkaRecord,
    Outcome,
    PartitionReader,
    ReadFailure,
)
from penstock.kafka_io.producer import RecordProducer
from penstock.laboratory.broker import BrokerPlan, EmbeddedKafka
from penstock.model import TopicPartition
from penstock.pipeline import Writer
from penstock.settings import Settings
from penstock.settings.secret import Secret
from penstock.settings.sections import KafkaSettings

pytestmark = pytest.mark.broker
OPEN, SHUT = TopicPartition("open", 0), TopicPartition("shut", 0)
NOT_READABLE = TopicPartition("not-readable", 0)
MISSING = TopicPartition("missing", 0)
# Long: who waits for an answer that never comes is told from who waits for the processor.
ANSWER_TIMEOUT_S = 60.0


def write(kafka: KafkaSettings, *partitions: TopicPartition, count: int = 3) -> None:
    producer = RecordProducer(kafka)
    for one in partitions:
        for _ in range(count):
            producer.send(one.topic, one.partition, b"record")
    assert producer.flush(60) == 0


def as_user(broker: GuardedBroker, user: str) -> KafkaSettings:
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
    }
    return KafkaSettings.model_validate(
        {
            "bootstrap_servers": f"127.0.0.1:{broker.guarded_port}",
            "properties": properties,
            "sasl_password": Secret(broker.passwords[user]),
            "answer_timeout": f"{ANSWER_TIMEOUT_S:g}s",
        }
    )


def test_a_look_up_without_an_answer_takes_its_client_with_it(
    kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A late answer would abort the process; an answer that says no costs no new client."""
    asked = TopicPartition(new_topic_name("late"), 0)
    Administration(kafka.settings).create_topic(asked.topic, partitions=1)
    clients: list[weakref.ref[AdminClient]] = []

    def connect() -> AdminClient:
        client = AdminClient({"bootstrap.servers": kafka.settings.bootstrap_servers})
        clients.append(weakref.ref(client))
        return client

    def failing(code: int) -> Callable[..., object]:
        answer: Future[object] = Future()
        answer.set_exception(KafkaException(KafkaError(code)))
        return lambda *_: {asked: answer}

    lookups = OffsetLookups(connect, kafka.settings)
    for code, connections in (
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, 1),
        (KafkaError.NOT_LEADER_FOR_PARTITION, 1),
        (KafkaError._TIMED_OUT, 2),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(lookups, "_ask", failing(code))
            assert set(lookups.look_up([asked], LogPosition.END).failures) == {asked}
        assert lookups.look_up([asked], LogPosition.END).offsets == {asked: 0}
        assert len(clients) == connections
    gc.collect()
    assert clients[0]() is None


def test_a_topic_without_the_right_fails_alone(tmp_path: Path, broker_jars: None) -> None:
    """Two topics may not be described; the third is looked up and read all the same."""
    with guarded_broker(tmp_path, ["reader"]) as broker:
        administration = Administration(broker.settings)
        for one in (OPEN, SHUT, NOT_READABLE):
            administration.create_topic(one.topic, partitions=1)
        write(broker.settings, OPEN, SHUT)
        broker.grant(
            [
                KafkaRight("reader", "Topic", "open", "READ", "the test"),
                KafkaRight("reader", "Topic", "not-readable", "DESCRIBE", "the test"),
                KafkaRight("reader", "Group", "penstock-", "DESCRIBE", "the test", is_prefix=True),
            ]
        )
        kafka = as_user(broker, "reader")
        guarded = Administration(kafka)
        for position, offset in (
            (LogPosition.START, 0),
            (LogPosition.END, 3),
            (LogPosition.STABLE_END, 3),
        ):
            begun_s = time.monotonic()
            found = guarded.look_up_offsets([OPEN, SHUT, MISSING], position)
            assert time.monotonic() - begun_s < ANSWER_TIMEOUT_S / 2
            assert found.offsets == {OPEN: offset}
            assert isinstance(found.failures[SHUT], NotPermittedError)
            # Without the right to describe a topic, even its existence is hidden.
            assert isinstance(found.failures[MISSING], NotPermittedError)
        with pytest.raises(NotPermittedError):
            guarded.end_offsets([OPEN, SHUT])
        topics = guarded.look_up_topics(["open", "shut"])
        assert (set(topics.topics), set(topics.failures)) == ({"open"}, {"shut"})
        seen = administration.look_up_offsets([OPEN, MISSING], LogPosition.END)
        assert seen.offsets == {OPEN: 3}
        assert isinstance(seen.failures[MISSING], TopicMissingError)
        _read_beside_a_refused_one(kafka)


def test_a_topic_without_the_right_does_not_hold_up_the_ledger_of_others(
    tmp_path: Path, broker_jars: None
) -> None:
    """One is started, one is put off with its reason, one that is not there is in neither."""
    with guarded_broker(tmp_path, ["reader"]) as broker:
        administration = Administration(broker.settings)
        settings = Settings.model_validate({"lake": {"root": str(tmp_path / "lake")}})
        orders = settings.topics.names.controller
        for name in (orders, OPEN.topic, SHUT.topic):
            administration.create_topic(name, partitions=1)
        write(broker.settings, OPEN, SHUT)
        broker.grant(
            [
                KafkaRight("reader", "Topic", OPEN.topic, "READ", "the test"),
                KafkaRight("reader", "Topic", orders, "READ", "the test"),
            ]
        )
        settings = settings.model_copy(update={"kafka": as_user(broker, "reader")})
        systems = ExternalSystems(settings, Writer(1, 1), lambda _: None)
        beyond = TopicPartition(OPEN.topic, 7)
        found = systems.read_ledger([OPEN, SHUT, beyond])
        assert {one: entry.next_offset for one, entry in found.entries.items()} == {OPEN: 0}
        assert set(found.failures) == {SHUT}
        assert isinstance(found.failures[SHUT], NotPermittedError)
        looked = systems.read_ends([OPEN, SHUT])
        assert looked.ends.offsets == {OPEN: 3}
        assert looked.ends.leader_epochs == {OPEN: 0}
        assert looked.topic_ids == {OPEN.topic: found.entries[OPEN].topic_id}
        assert systems.read_ends([OPEN]).topic_ids == {}, "not at every look"


def _read_beside_a_refused_one(kafka: KafkaSettings) -> None:
    found: list[Outcome] = []
    with closing(PartitionReader(kafka)) as reader:
        reader.assign({OPEN: 1, NOT_READABLE: 0})
        deadline_s = time.monotonic() + 120
        while {type(one) for one in found} != {KafkaRecord, EndReached, ReadFailure}:
            assert time.monotonic() < deadline_s, found
            found += reader.read(0.2)
    assert [one.offset for one in found if isinstance(one, KafkaRecord)] == [1, 2]
    failures = [one for one in found if isinstance(one, ReadFailure)]
    assert {(one.partition, one.kind) for one in failures} == {(NOT_READABLE, FailureKind.LASTING)}
    assert isinstance(failures[0].error, NotPermittedError)


@pytest.mark.timeout(180)
def test_a_partition_without_a_leader_fails_alone_and_at_once(broker_jars: None) -> None:
    """When a broker dies with its partitions, the others are looked up as before."""
    quick = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
    with EmbeddedKafka(BrokerPlan(brokers=3, heap_mib=256, properties=quick)) as cluster:
        kafka = cluster.settings.model_copy(update={"answer_timeout": ANSWER_TIMEOUT_S})
        administration = Administration(kafka)
        administration.create_topic("spread", partitions=6, replication_factor=1)
        partitions = [TopicPartition("spread", number) for number in range(6)]
        write(cluster.settings, *partitions)
        assert administration.end_offsets(partitions) == dict.fromkeys(partitions, 3)
        settings = Settings().model_copy(update={"kafka": kafka})
        systems = ExternalSystems(settings, Writer(1, 1), lambda _: None)
        assert set(systems.read_log_sizes(partitions)) == set(partitions)
        cluster.kill(2)
        found = _wait_for(lambda: administration.look_up_offsets(partitions, LogPosition.END))
        assert 1 <= len(found.failures) <= 3
        assert set(found.offsets) | set(found.failures) == set(partitions)
        assert set(found.offsets.values()) == {3}
        for _ in range(3):
            begun_s = time.monotonic()
            again = administration.look_up_offsets(partitions, LogPosition.END)
            assert time.monotonic() - begun_s < ANSWER_TIMEOUT_S / 2
            assert again.offsets == found.offsets
            assert all(isinstance(one, NoLeaderError) for one in again.failures.values())
            begun_s = time.monotonic()
            assert set(systems.read_log_sizes(partitions)) == set(found.offsets)
            assert set(systems.read_start_offsets(partitions)) == set(found.offsets)
            assert time.monotonic() - begun_s < ANSWER_TIMEOUT_S / 4
        assert systems._sizes is not None
        systems._sizes.close()
        cluster.restart(2)
        whole = _wait_for(
            lambda: administration.look_up_offsets(partitions, LogPosition.END), failures=False
        )
        assert whole.offsets == dict.fromkeys(partitions, 3)


def _wait_for(look_up: Callable[[], OffsetLookup], *, failures: bool = True) -> OffsetLookup:
    """Until leaders are missing, or all are there again; elections take seconds."""
    deadline_s = time.monotonic() + 240
    while True:
        found = look_up()
        assert set(found.offsets.values()) <= {3}, found
        is_settled = all(isinstance(one, NoLeaderError) for one in found.failures.values())
        if bool(found.failures) == failures and is_settled:
            return found
        assert time.monotonic() < deadline_s, found
        time.sleep(0.5)
