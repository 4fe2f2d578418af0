"""What the controller makes of the records on its topics: heartbeats, and consumers' messages."""

import queue
import time
from typing import Any

import pytest

from penstock.controller.core.inputs import (
    ConsumerMessageRead,
    HeartbeatReturned,
    Input,
    MessageRefused,
)
from penstock.controller.process import inbound
from penstock.controller.process.inbound import InboundReaders, Inbox
from penstock.kafka_io.partition_reader import KafkaRecord
from penstock.messages import (
    ConsumerPhase,
    ConsumerReport,
    ControllerHeartbeat,
    LeadershipClaim,
    Message,
    Pause,
    Refusal,
    RefusalCode,
    ServiceAnswer,
    ServiceOutcome,
    encode,
)
from penstock.model import TopicPartition
from penstock.settings import Settings
from penstock.telemetry import get_logger

NAMES = Settings().topics.names
OWN, CONSUMERS = TopicPartition(NAMES.controller, 0), TopicPartition(NAMES.consumer, 0)
SERVICE = TopicPartition(NAMES.service, 0)
EPOCH, START, END = 7, 40, 60


class PlayedTopics:
    """Gives the records of the test, and counts the questions for a log's end."""

    def __init__(self, _: object, since: dict[TopicPartition, int]) -> None:
        self.starts = dict.fromkeys(since, START)
        self.records: list[KafkaRecord] = []
        self.asked = self.counted = 0
        self.mailboxes = 4

    def read(self, _: float) -> KafkaRecord | None:
        return self.records.pop(0) if self.records else None

    def end_of(self, place: TopicPartition) -> int:
        assert place == OWN
        self.asked += 1
        return END

    def partitions_of(self, topic: str) -> int:
        assert topic == OWN.topic
        self.counted += 1
        return self.mailboxes


class Stage:
    def __init__(self) -> None:
        self.inbox: Inbox = queue.Queue()
        self.unreadable: list[tuple[int, str]] = []
        self.readers = InboundReaders(
            Settings(),
            self.inbox,
            get_logger(),
            controller_epoch=EPOCH,
            service_since=0,
            on_unreadable_request=lambda record, refusal: self.unreadable.append(
                (record.offset, refusal.code)
            ),
        )
        self.topics: Any = self.readers._topics

    def reads(
        self, place: TopicPartition, message: Message, offset: int = START, group: str = "penstock"
    ) -> list[Input]:
        """What the loop gets when this record was read."""
        encoded = encode(message, group=group)
        record = KafkaRecord(place, offset, 0, None, encoded.value, encoded.headers)
        self.topics.records.append(record)
        self.readers._read_messages()
        found = []
        while not self.inbox.empty():
            made = self.inbox.get()
            assert not isinstance(made, Exception)
            found.append(made(0))
        return found


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(inbound, "FollowedTopics", PlayedTopics)
    return Stage()


def beat(number: int, epoch: int = EPOCH) -> ControllerHeartbeat:
    return ControllerHeartbeat(controller_epoch=epoch, heartbeat_number=number)


def report(epoch: int, consumer: int = 1) -> ConsumerReport:
    """One for each epoch: the same report twice is read once."""
    return ConsumerReport(
        consumer_id=consumer,
        incarnation=1,
        sequence=epoch,
        controller_epoch=epoch,
        plan_number=1,
        report_number=epoch,
        phase=ConsumerPhase.RUNNING,
    )


def test_a_heartbeat_returns_after_both_topics(stage: Stage) -> None:
    """Only then all that consumers of either release wrote before it has been read."""
    assert stage.reads(CONSUMERS, beat(1)) == []
    assert stage.reads(OWN, beat(1), 41) == [HeartbeatReturned(0, EPOCH, 1, 41)]
    assert stage.reads(OWN, beat(2), 42) == []
    assert stage.reads(CONSUMERS, beat(2)) == [HeartbeatReturned(0, EPOCH, 2, 42)]
    assert stage.reads(CONSUMERS, beat(1, epoch=99)) == []
    assert stage.reads(OWN, beat(1, epoch=44), 45) == [HeartbeatReturned(0, 44, 1, 45)]


@pytest.mark.parametrize("place", [CONSUMERS, OWN])
def test_consumers_of_both_releases_are_heard(stage: Stage, place: TopicPartition) -> None:
    """On the topic of their own, and where they wrote before."""
    (found,) = stage.reads(place, report(EPOCH))
    assert isinstance(found, ConsumerMessageRead)
    assert found.message == report(EPOCH)


def test_an_epoch_is_compared_with_the_log_of_the_claims(stage: Stage) -> None:
    """Not with the message's own offset; its end is asked for only when it matters, and rarely."""

    def known_end(epoch: int) -> object:
        (found,) = stage.reads(CONSUMERS, report(epoch), offset=9_000)
        assert isinstance(found, ConsumerMessageRead)
        return found.offset

    assert (known_end(EPOCH), stage.topics.asked) == (START, 0)
    assert stage.reads(OWN, LeadershipClaim(), 50) == []
    assert (known_end(50), stage.topics.asked) == (50, 0)
    assert (known_end(51), stage.topics.asked) == (END, 1)
    assert (known_end(8_000), stage.topics.asked) == (END, 1), "not twice within a second"


def test_a_consumer_without_a_mailbox_does_not_exist(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question to it would fail, with all others of its transaction: for ever, by one message."""
    (found,) = stage.reads(CONSUMERS, report(EPOCH, consumer=2**31 - 1))
    told = "a message names consumer 2147483647, which has no mailbox: refused"
    assert found == MessageRefused(0, told)
    (found,) = stage.reads(CONSUMERS, report(EPOCH, consumer=4))
    assert isinstance(found, MessageRefused), "partition 0 is the controller's"
    (found,) = stage.reads(CONSUMERS, report(EPOCH, consumer=3))
    assert isinstance(found, ConsumerMessageRead)
    assert stage.topics.counted == 1, "not twice within a second"
    monkeypatch.setattr(inbound, "MAILBOXES_ASKED_EVERY_S", 0.0)
    stage.topics.mailboxes = 9
    (found,) = stage.reads(CONSUMERS, report(EPOCH, consumer=4))
    assert isinstance(found, ConsumerMessageRead), "the group has grown"
    assert stage.topics.counted == 2
    stage.topics.mailboxes = 1
    stage.reads(CONSUMERS, report(EPOCH, consumer=99))
    (found,) = stage.reads(CONSUMERS, report(EPOCH + 1, consumer=5))
    assert isinstance(found, ConsumerMessageRead), "one that has not heard of them yet"


def test_a_message_comes_with_the_time_of_the_clock(stage: Stage) -> None:
    """By it the core knows an incarnation that cannot be."""
    before_ms = time.time_ns() // 1_000_000
    (found,) = stage.reads(CONSUMERS, report(EPOCH))
    assert isinstance(found, ConsumerMessageRead)
    assert found.unix_ms is not None
    assert before_ms <= found.unix_ms <= time.time_ns() // 1_000_000


def test_messages_of_another_group_are_told_and_its_requests_are_answered(stage: Stage) -> None:
    """Not its answers: two controllers on one prefix would answer each other for ever."""
    (found,) = stage.reads(CONSUMERS, report(EPOCH), group="other")
    assert isinstance(found, MessageRefused)
    assert "ConsumerReport on the consumer topic, of group other" in found.explanation
    stage.reads(SERVICE, Pause(request_id="theirs"), 41, group="other")
    assert stage.unreadable == [(41, RefusalCode.OTHER_GROUP)]
    answer = ServiceAnswer(
        request_id="theirs", controller_epoch=3, outcome=ServiceOutcome.REFUSED, detail="no"
    )
    (found,) = stage.reads(SERVICE, answer, 42, group="other")
    assert isinstance(found, MessageRefused)
    assert stage.unreadable == [(41, RefusalCode.OTHER_GROUP)]


def test_speeds_are_those_of_this_group(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another group's are refused by the reader, and told."""
    asked: dict[str, Any] = {}

    class Reader:
        def __init__(self, *_: object, **given: Any) -> None:
            asked.update(given)
            stage.readers._stop.set()

        def close(self) -> None: ...

    monkeypatch.setattr(inbound, "MeasurementReader", Reader)
    stage.readers._read_speeds()
    assert asked["group"] == "penstock"
    asked["on_refusal"](Refusal(RefusalCode.OTHER_GROUP, "of group other", 1, None))
    made = stage.inbox.get_nowait()
    assert not isinstance(made, Exception)
    told = "a message of another group was refused: unknown on the monitor topic, of group other"
    assert made(0) == MessageRefused(0, told)
