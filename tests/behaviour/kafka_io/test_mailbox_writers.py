"""What a mailbox hands on, by who wrote it."""

from typing import Any

import pytest

from penstock.errors import UnreachableError
from penstock.kafka_io import mailbox
from penstock.kafka_io.mailbox import Mailbox, MailboxTrouble, NotFromLeader
from penstock.kafka_io.partition_reader import KafkaRecord
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings

COMMANDS, QUERIES = TopicPartition("commands", 3), TopicPartition("queries", 3)


def record(place: TopicPartition, offset: int) -> KafkaRecord:
    return KafkaRecord(place, offset, 0, None, b"{}", ())


class PlayedReader:
    """Gives the records of the test, once."""

    records: tuple[KafkaRecord, ...] = ()

    def __init__(self, *_: Any) -> None:
        self.positions = {COMMANDS: 99, QUERIES: 99}

    def read(self, _: float) -> list[KafkaRecord]:
        given, PlayedReader.records = PlayedReader.records, ()
        return list(given)


class PlayedAdministration:
    def __init__(self, *_: Any) -> None: ...

    def look_up_offsets(self, *_: Any) -> Any:
        return type("Found", (), {"failures": {}, "offsets": {COMMANDS: 0}})


def read(monkeypatch: pytest.MonkeyPatch, is_from_leader: Any) -> list[Any]:
    monkeypatch.setattr(mailbox, "PartitionReader", PlayedReader)
    monkeypatch.setattr(mailbox, "Administration", PlayedAdministration)
    PlayedReader.records = (record(COMMANDS, 1), record(COMMANDS, 2), record(QUERIES, 1))
    return Mailbox(KafkaSettings(), COMMANDS, QUERIES, is_from_leader=is_from_leader).read(0.1)


def test_what_the_leader_did_not_write_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands and queries: otherwise everybody who may write to the topic could give commands."""
    found = read(monkeypatch, lambda place, offset: (place, offset) == (COMMANDS, 2))
    assert found == [
        NotFromLeader(record(COMMANDS, 1)),
        record(COMMANDS, 2),
        NotFromLeader(record(QUERIES, 1)),
    ]


def test_what_nobody_knows_the_writer_of_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller sends it again; a forged one is not obeyed because the broker is away."""

    def unknown(*_: Any) -> bool:
        raise UnreachableError("No broker answers.")

    found = read(monkeypatch, unknown)
    assert [type(one) for one in found] == [MailboxTrouble] * 3
