"""Who wrote a record, and how often the broker is asked about it."""

import struct
from typing import Any

import pytest
from kafka.errors import (
    CoordinatorNotAvailableError,
    KafkaConnectionError,
    TransactionalIdAuthorizationFailedError,
    TransactionalIdNotFoundError,
)

from penstock.errors import UnreachableError
from penstock.kafka_io import leaders_records
from penstock.kafka_io.leaders_records import LeadersRecords, may_ask_who_leads
from penstock.kafka_io.record_batches import BatchWriter, batch_writers
from penstock.kafka_io.stored_batches import StoredBatches
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings

PLACE = TopicPartition("commands", 3)
LEADER, OTHER = 7, 8


def batch(first: int, count: int, producer_id: int, attributes: int = 0x10) -> bytes:
    """The header of a batch, with a little content."""
    content = b"content"
    header = struct.pack(
        ">qiibIhiqqqhii",
        *(first, 49 + len(content), 0, 2, 0, attributes, count - 1, 0, 0, producer_id, 0, 0, count),
    )
    return header + content


def test_the_header_of_a_batch_names_its_writer() -> None:
    """Markers of transactions are left out, and so is what comes after a broken header."""
    stored = batch(5, 2, LEADER) + batch(7, 1, LEADER, 0x30) + batch(8, 3, OTHER, 0)
    assert batch_writers(stored + batch(11, 1, LEADER)[:40]) == [
        BatchWriter(5, 6, LEADER, is_transactional=True),
        BatchWriter(8, 10, OTHER, is_transactional=False),
    ]
    assert batch_writers(stored[:16] + b"\x01" + stored[17:]) == []


class Broker:
    """Answers what a real one would, and counts the questions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *writers: BatchWriter) -> None:
        self.now_s = 100.0
        self.asked = 0
        self.leader: int | Exception = LEADER
        self.troubles: list[str] = []
        self.records = LeadersRecords(
            KafkaSettings(), "the-id", on_trouble=self.troubles.append, monotonic=lambda: self.now_s
        )
        monkeypatch.setattr(StoredBatches, "_fetched", lambda *_: list(writers))
        monkeypatch.setattr(leaders_records, "_describe", self._describe)

    def _describe(self, *_: Any) -> int:
        self.asked += 1
        if isinstance(self.leader, Exception):
            raise self.leader
        return self.leader

    def has(self, offset: int) -> bool:
        return self.records.has(PLACE, offset)


WRITERS = (
    BatchWriter(0, 1, LEADER, is_transactional=True),
    BatchWriter(2, 2, LEADER, is_transactional=False),
    BatchWriter(3, 3, OTHER, is_transactional=True),
)


def test_only_a_transaction_of_the_leading_producer_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same producer outside of a transaction does not, nor another one in a transaction."""
    broker = Broker(monkeypatch, *WRITERS)
    assert [broker.has(offset) for offset in range(4)] == [True, True, False, False]


def test_a_transaction_of_no_producer_counts_never(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anybody is known to lead, the leader is as unknown as the writer of such a record."""
    broker = Broker(monkeypatch, *batch_writers(batch(0, 1, producer_id=-1)))
    assert not broker.has(0)
    broker.leader = TransactionalIdNotFoundError()
    assert not broker.has(0)
    broker.now_s += 60
    broker.leader = TransactionalIdAuthorizationFailedError()
    assert not broker.has(0)


def test_a_flood_of_forged_records_is_no_flood_of_questions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another producer may be a new leader's, so the broker is asked again, once a second."""
    broker = Broker(monkeypatch, *WRITERS)
    assert [broker.has(3) for _ in range(50)] == [False] * 50
    assert broker.asked == 1
    broker.now_s += 1
    broker.leader = OTHER
    assert broker.has(3)
    assert not broker.has(0), "the former producer's id was given up: it leads no more"
    assert broker.asked == 2


def test_without_an_answer_every_transaction_counts_and_it_is_told_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The right may come later: it is tried again now and then."""
    broker = Broker(monkeypatch, *WRITERS)
    broker.leader = TransactionalIdAuthorizationFailedError()
    assert [broker.has(offset) for offset in (0, 2, 3, 3)] == [True, False, True, True]
    assert (broker.asked, len(broker.troubles)) == (1, 1)
    broker.now_s += 60
    broker.has(0)
    assert (broker.asked, len(broker.troubles)) == (2, 1)
    broker.now_s += 60
    broker.leader = LEADER
    assert [broker.has(offset) for offset in (0, 3)] == [True, False]


def test_an_unknown_transactional_id_has_written_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody leads, so nothing is obeyed."""
    broker = Broker(monkeypatch, *WRITERS)
    broker.leader = TransactionalIdNotFoundError()
    assert not broker.has(0)


def test_while_the_broker_is_away_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mailbox drops the record, and the controller sends it again."""
    broker = Broker(monkeypatch, *WRITERS)
    broker.leader = KafkaConnectionError()
    with pytest.raises(UnreachableError, match="asking who wrote a command"):
        broker.has(0)
    with pytest.raises(UnreachableError, match="no longer has offset 9"):
        broker.has(9)


def test_a_question_without_an_answer_opens_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the broker says who leads, no record counts: neither the first nor those after it."""
    broker = Broker(monkeypatch, *WRITERS)
    broker.leader = CoordinatorNotAvailableError()
    for offset in (3, 3, 0):
        with pytest.raises(UnreachableError):
            broker.has(offset)
    assert broker.asked == 1, "a flood of forged records is no flood of questions here either"
    broker.now_s += 1
    broker.leader = LEADER
    assert [broker.has(offset) for offset in (3, 0)] == [False, True]


def test_a_right_that_was_taken_away_leaves_the_known_leader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Others do not count then, though the broker answers no more."""
    broker = Broker(monkeypatch, *WRITERS)
    assert broker.has(0)
    broker.leader = TransactionalIdAuthorizationFailedError()
    broker.now_s += 60
    assert [broker.has(offset) for offset in (3, 0)] == [False, True]


def test_the_doctor_asks_whether_it_may_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """An id that nobody has used yet is no missing right."""
    broker = Broker(monkeypatch)
    assert may_ask_who_leads(KafkaSettings(), "the-id")
    broker.leader = TransactionalIdNotFoundError()
    assert may_ask_who_leads(KafkaSettings(), "the-id")
    broker.leader = TransactionalIdAuthorizationFailedError()
    assert not may_ask_who_leads(KafkaSettings(), "the-id")
    broker.leader = KafkaConnectionError()
    with pytest.raises(UnreachableError):
        may_ask_who_leads(KafkaSettings(), "the-id")
