"""Which of the records of a key is believed: the newest that was written in a transaction."""

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.kafka_io import committed_records, stored_batches
from penstock.kafka_io.committed_records import newest_in_a_transaction
from penstock.kafka_io.partition_reader import KafkaRecord
from penstock.kafka_io.record_batches import BatchWriter
from penstock.model import OffsetRange, TopicPartition
from penstock.settings.sections import KafkaSettings

PLACE = TopicPartition("state", 0)
# The offset, the key, the value, and whether it is of a transaction.
Written = tuple[int, bytes, bytes | None, bool]


class Log:
    """A partition with these records: its reader, and who wrote them."""

    def __init__(self, written: tuple[Written, ...]) -> None:
        self._written = written

    def log_range(self, partition: TopicPartition) -> OffsetRange:
        return OffsetRange(partition, 0, 1 + max((one[0] for one in self._written), default=-1))

    def writer(self, _: TopicPartition, offset: int) -> BatchWriter:
        (is_transactional,) = [one[3] for one in self._written if one[0] == offset]
        return BatchWriter(offset, offset, 7, is_transactional)

    def within(self, _: KafkaSettings, wanted: OffsetRange) -> Iterator[list[KafkaRecord]]:
        for one in self._written:
            if wanted.start <= one[0] < wanted.end:
                yield [KafkaRecord(PLACE, one[0], 0, one[1], one[2], ())]

    def close(self) -> None: ...


@pytest.fixture
def newest(monkeypatch: pytest.MonkeyPatch) -> Any:
    def found(*written: Written) -> tuple[bytes | None, list[int]]:
        log = Log(written)
        monkeypatch.setattr(committed_records, "PartitionReader", lambda *_: log)
        monkeypatch.setattr(committed_records, "committed_records", log.within)
        monkeypatch.setattr(stored_batches, "StoredBatches", lambda *_: log)
        others: list[int] = []
        value = newest_in_a_transaction(KafkaSettings(), PLACE, b"group", on_other=others.append)
        return value, others

    return found


def test_what_was_written_outside_of_a_transaction_is_passed_over(newest: Any) -> None:
    """It is told, and the one before counts; so do neither other keys nor removals."""
    assert newest(
        (3, b"group", b"first", True),
        (5, b"group", b"the controller's", True),
        (6, b"other", b"of another key", True),
        (7, b"group", None, True),
        (8, b"group", b"forged", False),
    ) == (b"the controller's", [8])


def test_it_is_found_far_back_and_may_be_nowhere(newest: Any) -> None:
    """Behind the tail of the log; only forged ones are none."""
    assert newest((1, b"group", b"old", True), (900, b"x", b"y", True)) == (b"old", [])
    assert newest((1, b"group", b"forged", False)) == (None, [1])
    assert newest() == (None, [])
