"""What a consumer makes of the records in its mailbox, by who wrote them and for whom."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.consumer.core.inputs import MessagesRead
from penstock.consumer.process import ConsumerProcess
from penstock.consumer.process.threads import now_ms
from penstock.kafka_io.mailbox import NotFromLeader
from penstock.kafka_io.partition_reader import KafkaRecord
from penstock.messages import Message, Pause, StateQuery, encode
from penstock.model import TopicPartition
from penstock.settings import load_settings

OWN = 3


@pytest.fixture
def fed(tmp_path: Path) -> Any:
    """What the core of consumer 3 is given when these items have come."""
    flags = {"consumer.state_root": str(tmp_path)}
    process: Any = ConsumerProcess(load_settings(flags=flags, environment={}).settings, OWN)
    process._runner = SimpleNamespace(wake_ms=now_ms() + 3_600_000)

    def given(*items: KafkaRecord | NotFromLeader) -> list[MessagesRead]:
        found: list[MessagesRead] = []
        process._feed = found.append
        for one in items:
            process._inbox.put(one)
        process._once()
        return found

    return given


def query(number: int, consumer: int = OWN) -> StateQuery:
    return StateQuery(consumer_id=consumer, controller_epoch=1, plan_number=1, query_number=number)


def record(message: Message, group: str = "penstock") -> KafkaRecord:
    encoded = encode(message, group=group)
    place = TopicPartition("data-engineering-query", OWN)
    return KafkaRecord(place, 0, 0, None, encoded.value, encoded.headers)


def test_what_the_leader_did_not_write_is_given_apart(fed: Any) -> None:
    """Of any group: the core refuses it, and reports it to the controller."""
    (read,) = fed(
        record(query(1)),
        NotFromLeader(record(query(2))),
        NotFromLeader(record(query(3), "other")),
    )
    assert read.messages == (query(1),)
    assert read.not_from_leader == (query(2), query(3))


def test_what_is_not_for_this_consumer_of_this_group_is_not_given(fed: Any) -> None:
    """Another group's, another consumer's, a request, and what is no message."""
    rubbish = KafkaRecord(TopicPartition("data-engineering-query", OWN), 0, 0, None, b"{", ())
    assert (
        fed(
            record(query(1), "other"),
            record(query(1), "Penstock"),
            record(query(1, consumer=4)),
            record(Pause(request_id="x")),
            rubbish,
            NotFromLeader(rubbish),
        )
        == []
    )
