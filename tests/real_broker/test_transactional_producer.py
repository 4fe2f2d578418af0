"""The laboratory's transactional producer on a real broker."""

import pytest

from penstock.kafka_io.administration import Administration
from penstock.kafka_io.committed_records import all_records
from penstock.kafka_io.transactional_producer import (
    KeyedRecord,
    TransactionalProducer,
    TransactionOutcome,
)
from penstock.laboratory.broker import EmbeddedKafka
from penstock.model import TopicPartition

pytestmark = pytest.mark.broker


def test_only_committed_transactions_are_read_and_a_successor_aborts_what_is_open(
    kafka: EmbeddedKafka,
) -> None:
    """It says of each transaction what became of it; one who was overtaken goes on."""
    Administration(kafka.settings).create_topic("in-transactions", partitions=1)

    def records(text: str) -> list[KeyedRecord]:
        return [KeyedRecord("in-transactions", 0, b"key", f"{text} {n}".encode()) for n in (1, 2)]

    first = TransactionalProducer(kafka.settings, "campaign-test", patience_s=60)
    assert first.transact(records("a"), is_committed=True) is TransactionOutcome.COMMITTED
    assert first.transact(records("b"), is_committed=False) is TransactionOutcome.ABORTED
    second = TransactionalProducer(kafka.settings, "campaign-test", patience_s=60)
    assert second.transact(records("c"), is_committed=True) is TransactionOutcome.COMMITTED
    fenced = first.transact(records("d"), is_committed=True)
    assert fenced is not TransactionOutcome.COMMITTED
    assert first.transact(records("e"), is_committed=True) is TransactionOutcome.COMMITTED
    read = all_records(kafka.settings, TopicPartition("in-transactions", 0))
    assert [one.value for one in read] == [b"a 1", b"a 2", b"c 1", b"c 2", b"e 1", b"e 2"]
