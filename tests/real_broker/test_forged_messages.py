"""On a real broker: what somebody writes who may write to the control topics and does not lead."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from documents.kafka_rights import RIGHTS, KafkaRight
from kit.kafka.guarded_broker import GuardedBroker, guarded_broker
from kit.kafka.raw_produce import produce_raw
from kit.lake.lake import new_topic_name
from penstock.cli.group_status import read_status
from penstock.cli.service import ask
from penstock.controller.process.prefix_holder import PrefixTakenError, prefix_state
from penstock.errors import NotPermittedError
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.control_topics import make_control_topics
from penstock.kafka_io.leaders_records import LeadersRecords
from penstock.kafka_io.leading_producer import LeadingProducer, Outgoing
from penstock.kafka_io.mailbox import Mailbox, NotFromLeader
from penstock.kafka_io.partition_reader import KafkaRecord
from penstock.kafka_io.producer import RecordProducer
from penstock.laboratory.broker import EmbeddedKafka
from penstock.messages import (
    ConsumerPhase,
    ConsumerReport,
    Message,
    Pause,
    ServiceOutcome,
    encode,
)
from penstock.model import ControlTopicNames, TopicPartition
from penstock.model.epoch import INTEGER_MAX
from penstock.settings import Settings, changed_settings, load_settings
from penstock.settings.secret import Secret
from penstock.settings.sections import KafkaSettings

pytestmark = [pytest.mark.broker, pytest.mark.timeout(240)]

PROGRAM = Path(__file__).parents[1] / "kit" / "controller" / "controller_of_one.py"
FORGED_EPOCH = 999_999_999


def lead(kafka: KafkaSettings, name: str, place: TopicPartition, *values: bytes) -> None:
    """Take the transactional id over, and write each value in a transaction."""
    producer = LeadingProducer(kafka, name)
    for value in values:
        producer.send([Outgoing(place.topic, place.partition, value, ())])


def write(kafka: KafkaSettings, place: TopicPartition, value: bytes) -> None:
    producer = RecordProducer(kafka)
    producer.send(place.topic, place.partition, value)
    assert producer.flush(60) == 0


@pytest.fixture
def place(kafka: EmbeddedKafka) -> TopicPartition:
    topic = new_topic_name("orders-to-obey")
    Administration(kafka.settings).create_topic(topic, partitions=2)
    return TopicPartition(topic, 1)


def records_of(kafka: KafkaSettings, place: TopicPartition, count: int) -> list[Any]:
    """What a mailbox makes of the records, in their order."""
    troubles: list[str] = []
    leaders = LeadersRecords(kafka, place.topic, on_trouble=troubles.append)
    queries = TopicPartition(place.topic, 0)
    mailbox = Mailbox(kafka, place, queries, is_from_leader=leaders.has)
    mailbox.open({})
    found: list[Any] = []
    deadline_s = time.monotonic() + 120
    while len(found) < count and time.monotonic() < deadline_s:
        found += mailbox.read(0.2)
    mailbox.close()
    leaders.close()
    return found + troubles


def test_a_mailbox_knows_who_wrote_what(kafka: EmbeddedKafka, place: TopicPartition) -> None:
    """Every leader's records count; a plain writer's and another transactional id's do not."""
    settings = kafka.settings
    lead(settings, place.topic, place, b"first", b"second")
    write(settings, place, b"forged")
    lead(settings, f"{place.topic}-other", place, b"forged in a transaction")
    lead(settings, place.topic, place, b"of the next controller")
    found = records_of(settings, place, 5)
    assert [(type(one), getattr(one, "record", one).value) for one in found] == [
        (KafkaRecord, b"first"),
        (KafkaRecord, b"second"),
        (NotFromLeader, b"forged"),
        (NotFromLeader, b"forged in a transaction"),
        (KafkaRecord, b"of the next controller"),
    ]


def test_a_transaction_of_no_producer_is_not_the_leaders(
    kafka: EmbeddedKafka, place: TopicPartition
) -> None:
    """Before it knows who leads, a mailbox took a record of nobody for the leader's."""
    now_ms = time.time_ns() // 1_000_000
    name = f"{place.topic}-other"
    produce_raw(kafka.settings, place, b"forged", timestamp_ms=now_ms, transactional_id=name)
    (one,) = records_of(kafka.settings, place, 1)
    assert isinstance(one, NotFromLeader)


def test_while_nobody_has_led_nothing_counts(kafka: EmbeddedKafka, place: TopicPartition) -> None:
    """A transactional id that the broker does not know has written nothing."""
    lead(kafka.settings, f"{place.topic}-other", place, b"forged in a transaction")
    (one,) = records_of(kafka.settings, place, 1)
    assert isinstance(one, NotFromLeader)


def test_without_the_right_to_ask_transactions_count_and_it_is_told(
    broker_jars: None, tmp_path: Path
) -> None:
    """An upgrade does not stop a group whose consumers may not ask who leads yet."""
    with guarded_broker(tmp_path, ["consumer"]) as broker:
        place = TopicPartition("orders-to-obey", 1)
        Administration(broker.settings).create_topic(place.topic, partitions=2)
        lead(broker.settings, place.topic, place, b"first", b"second")
        write(broker.settings, place, b"forged")
        read = KafkaRight("consumer", "Topic", place.topic, "READ", "")
        group = KafkaRight("consumer", "Group", "penstock-", "DESCRIBE", "", is_prefix=True)
        broker.grant([read, group])
        *found, trouble = records_of(as_consumer(broker), place, 3)
        assert [type(one) for one in found] == [KafkaRecord, KafkaRecord, NotFromLeader]
        assert f"Describe on the transactional id {place.topic}" in trouble


def test_a_consumer_writes_only_where_the_controller_listens(
    broker_jars: None, tmp_path: Path
) -> None:
    """With its documented rights: the broker refuses commands, queries, claims and heartbeats."""
    names = ControlTopicNames("guarded")
    given = {"prefix": names.prefix, "group": "quiet", "topics": "orders"}
    with guarded_broker(tmp_path, ["consumer"]) as broker:
        for topic in names.all:
            Administration(broker.settings).create_topic(topic, partitions=3)
        broker.grant([one.named(**given) for one in RIGHTS if one.role == "consumer"])
        consumer = as_consumer(broker)
        own = TopicPartition(names.consumer, 0)
        deadline_s = time.monotonic() + 120
        while (refusal := refusal_of(consumer, own)) is not None:  # rights reach the broker late
            assert time.monotonic() < deadline_s, refusal
        others = set(names.all) - {names.consumer, names.commit}
        assert len(others) == 6
        for topic in sorted(others):
            for partition in (0, 2):  # the controller's own, and another consumer's
                refusal = refusal_of(consumer, TopicPartition(topic, partition))
                assert isinstance(refusal, NotPermittedError), topic
        with pytest.raises(NotPermittedError):
            lead(consumer, names.transactional_id("quiet"), own, b"x")


def refusal_of(kafka: KafkaSettings, place: TopicPartition) -> Exception | None:
    """Why the broker takes no record there; None if it does."""
    told: list[Exception | None] = []
    producer = RecordProducer(kafka)
    producer.send(
        place.topic, place.partition, b"forged", on_delivery=lambda error, _: told.append(error)
    )
    assert producer.flush(60) == 0
    (error,) = told
    return error


def as_consumer(broker: GuardedBroker) -> KafkaSettings:
    return KafkaSettings.model_validate(
        {
            "bootstrap_servers": f"127.0.0.1:{broker.guarded_port}",
            "properties": {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "consumer",
            },
            "sasl_password": Secret(broker.passwords["consumer"]),
        }
    )


# A whole controller


class Leader:
    """A controller process that believes that consumer 1 is there."""

    def __init__(self, kafka: EmbeddedKafka, folder: Path) -> None:
        self._directory = folder / "controller"
        self._log = folder / "controller.log"
        self.flags = {
            "kafka.bootstrap_servers": kafka.bootstrap_servers,
            "topics.prefix": new_topic_name("forged"),
            "controller.directory": str(self._directory),
            "controller.heartbeat_period": "500ms",
            "lake.commits": "together",  # so that the commit topic exists
            "log.format": "json",
        }
        make_control_topics(self.settings)
        variables = {
            "PENSTOCK_" + option.upper().replace(".", "__"): value
            for option, value in self.flags.items()
        }
        with self._log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(PROGRAM)],
                env={**os.environ, **variables},
                stdout=output,
                stderr=output,
            )

    @property
    def settings(self) -> Settings:
        return load_settings(flags=self.flags, environment={}).settings

    @property
    def status(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self._directory / "status.json").read_text())
        except (OSError, ValueError):
            return {}
        return found

    def refusals(self) -> list[str]:
        history = self.status.get("history", [])
        return [one["explanation"] for one in history if one["code"] == "message_refused"]

    def wait(self, what: str, look: Callable[[], object]) -> None:
        deadline_s = time.monotonic() + 120
        while not look():
            log = self._log.read_text(encoding="utf-8")
            assert self.process.poll() is None, log[-2000:]
            assert time.monotonic() < deadline_s, f"{what}\n{log[-2000:]}"
            time.sleep(0.1)

    def hears(self, message: Message, *, group: str = "penstock", role: str = "") -> None:
        encoded = encode(message, group=group)
        producer = RecordProducer(self.settings.kafka)
        topic = self.settings.topics.names.of_role(role or message.topic_role)
        producer.send(topic, message.mailbox, encoded.value, headers=encoded.headers)
        assert producer.flush(60) == 0


@pytest.fixture
def leader(kafka: EmbeddedKafka, tmp_path: Path) -> Iterator[Leader]:
    found = Leader(kafka, tmp_path)
    try:
        found.wait("it leads", lambda: found.status)
        yield found
    finally:
        found.process.kill()
        found.process.wait()


def report(epoch: int, sequence: int) -> ConsumerReport:
    return ConsumerReport(
        consumer_id=1,
        incarnation=1,
        sequence=sequence,
        controller_epoch=epoch,
        plan_number=1,
        report_number=sequence,
        phase=ConsumerPhase.RUNNING,
    )


def test_another_group_on_the_same_prefix_is_refused(leader: Leader) -> None:
    """Its consumers are not adopted, its requests are answered, and the history tells it."""
    leader.hears(report(0, 1), group="other")
    told = "ConsumerReport on the consumer topic, of group other; this is group penstock"
    leader.wait("refused", lambda: any(told in one for one in leader.refusals()))
    others = changed_settings(leader.settings, {"lake.group": "other"})
    answer = ask(others, Pause(request_id="of-another-group"), "90s")
    assert answer.outcome is ServiceOutcome.REFUSED
    assert answer.detail == "other_group: of group other; this is group penstock (lake.group)"
    assert ask(leader.settings, Pause(request_id="own"), "90s").outcome is ServiceOutcome.DONE
    with pytest.raises(PrefixTakenError, match="Another group, penstock, has the control topics"):
        prefix_state(others)


def test_one_forged_message_does_not_stop_control(leader: Leader) -> None:
    """A huge epoch has no claim; a likely one is asked about. Both are told, and it leads on."""
    leader.hears(report(FORGED_EPOCH, 1))
    impossible = f"names controller epoch {FORGED_EPOCH}, which no claim in the log can have"
    leader.wait("refused", lambda: any(impossible in one for one in leader.refusals()))
    own = leader.status["controller_epoch"]
    likely = f"names controller epoch {own + 1}, above our {own}, and the broker says that we lead"
    leader.hears(report(own + 1, 2))
    leader.wait("refused after asking", lambda: any(likely in one for one in leader.refusals()))
    assert leader.process.poll() is None


def test_a_sender_that_cannot_be_is_refused(leader: Leader) -> None:
    """It has no mailbox to be asked in, or was started in the far future: both stopped control."""
    leader.hears(report(0, 1).model_copy(update={"consumer_id": 2**31 - 1}))
    nowhere = "a message names consumer 2147483647, which has no mailbox"
    leader.wait("refused", lambda: any(nowhere in one for one in leader.refusals()))
    leader.hears(report(0, 2).model_copy(update={"incarnation": INTEGER_MAX}))
    future = "a message of consumer 1 names an incarnation that is more than a day ahead"
    leader.wait("refused", lambda: any(future in one for one in leader.refusals()))
    assert ask(leader.settings, Pause(request_id="still"), "90s").outcome is ServiceOutcome.DONE


def test_a_consumer_of_a_former_release_is_heard(leader: Leader) -> None:
    """It writes to partition 0 of the controller topic until it is rolled out."""
    former = report(FORGED_EPOCH + 7, 1)
    leader.hears(former, role="controller")
    told = f"names controller epoch {FORGED_EPOCH + 7}"
    leader.wait("heard", lambda: any(told in one for one in leader.refusals()))


RUBBISH = (
    b"",
    b"{",
    b"\xff\xfe\x00",
    b"[" * 100_000,
    b'{"controller_epoch": ' + b"9" * 5_000 + b"}",
    b"x" * 900_000,
    b"{}",
)
RUBBISH_HEADERS: tuple[tuple[tuple[str, bytes], ...], ...] = (
    (),
    (("event_type", b"\xff"), ("schema_version", b"1.0")),
    (("event_type", b"Pause"), ("event_type", b"Resume")),
    (("event_type", b"ConsumerReport"), ("schema_version", b"1.3"), ("group", b"penstock")),
    (("event_type", b"GroupStatus"), ("group", b"penstock"), ("controller_epoch", b"9" * 200)),
)


def test_rubbish_on_every_control_topic_stops_nobody(leader: Leader, tmp_path: Path) -> None:
    """Malformed, large, deep, with headers of others: it is refused, and requests are answered."""
    settings = leader.settings
    producer = RecordProducer(settings.kafka)
    taken: list[Exception | None] = []
    for topic in settings.topics.names.all:
        for value in RUBBISH:
            for headers in RUBBISH_HEADERS:
                producer.send(
                    *(topic, 0, value),
                    key=b"penstock",
                    headers=headers,
                    on_delivery=lambda error, _: taken.append(error),
                )
    assert producer.flush(60) == 0
    assert taken == [None] * len(settings.topics.names.all) * len(RUBBISH) * len(RUBBISH_HEADERS)
    answer = ask(settings, Pause(request_id="after-rubbish"), "90s")
    assert answer.outcome is ServiceOutcome.DONE
    assert leader.process.poll() is None
    elsewhere = changed_settings(settings, {"controller.directory": str(tmp_path / "elsewhere")})
    assert read_status(elsewhere)["source"] == "kafka"
