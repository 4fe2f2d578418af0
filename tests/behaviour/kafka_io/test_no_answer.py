"""A process that stood still: its own wait for an answer ends before the client's."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import TopicPartition as ClientPartition

from penstock.errors import UnreachableError
from penstock.kafka_io import administration, offset_lookup
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.offset_lookup import LogPosition, OffsetLookups
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings

KAFKA = KafkaSettings.model_validate({"answer_timeout": "10ms"})
LED, LEADERLESS = TopicPartition("led", 0), TopicPartition("leaderless", 0)


class SilentClient:
    """Knows the leaders, and answers nothing else."""

    def __init__(self, _: Any = None) -> None:
        pass

    def list_topics(self, timeout: float) -> Any:
        del timeout
        leaders = {LED.topic: 1, LEADERLESS.topic: -1}
        return SimpleNamespace(
            topics={
                name: SimpleNamespace(partitions={0: SimpleNamespace(leader=leader)})
                for name, leader in leaders.items()
            }
        )

    def list_offsets(self, asked: Any, **_: Any) -> dict[ClientPartition, Future[Any]]:
        return {one: Future() for one in asked}

    def describe_topics(self, topics: Any, **_: Any) -> dict[str, Future[Any]]:
        return {name: Future() for name in topics.names}

    def create_topics(self, topics: Any, **_: Any) -> dict[str, Future[Any]]:
        return {one.topic: Future() for one in topics}


class NamedTopics:
    """As the client's own, which does not tell its names."""

    def __init__(self, names: list[str]) -> None:
        self.names = names


@pytest.fixture(autouse=True)
def _no_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (administration, offset_lookup):
        monkeypatch.setattr(module, "CLIENT_MARGIN_S", 0.0)
        monkeypatch.setattr(module, "TopicCollection", NamedTopics)
    monkeypatch.setattr(administration, "AdminClient", SilentClient)


def test_a_look_up_without_an_answer_fails_by_partition() -> None:
    """Nobody answers: each partition says so, and the client is given up for a new one."""
    clients: list[SilentClient] = []

    def connect() -> Any:
        clients.append(SilentClient())
        return clients[-1]

    lookups = OffsetLookups(connect, KAFKA)
    for times in (1, 2):
        found = lookups.look_up([LED, LEADERLESS], LogPosition.END)
        assert set(found.failures) == {LED, LEADERLESS}
        assert {type(one) for one in found.failures.values()} == {UnreachableError}
        assert len(clients) == times


def test_a_question_without_an_answer_is_unreachable() -> None:
    """Also a change of the cluster that waits for its answer."""
    kafka = Administration(KAFKA)
    assert isinstance(kafka.look_up_topics(["led"]).failures["led"], UnreachableError)
    with pytest.raises(UnreachableError):
        kafka.create_topic("new", partitions=1)
