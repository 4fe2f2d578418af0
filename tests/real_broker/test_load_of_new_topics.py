"""The load generator and topics that were only just made."""

import threading
import time
from collections.abc import Iterable

import pytest

from penstock.kafka_io.administration import Administration
from penstock.kafka_io.failures import TopicMissingError
from penstock.kafka_io.offset_lookup import LogPosition, OffsetLookup, OffsetLookups
from penstock.kafka_io.producer import RecordProducer
from penstock.laboratory.broker import EmbeddedKafka
from penstock.laboratory.load import LoadGenerator, Target
from penstock.laboratory.load.shapes import Constant
from penstock.model import TopicPartition

pytestmark = pytest.mark.broker


def test_a_topic_that_is_not_there_yet_is_waited_for(kafka: EmbeddedKafka) -> None:
    """Begun before its topic was made, the load fails no record, and tells of each one."""
    targets = [Target(TopicPartition("made-late", number), Constant(50_000.0)) for number in (0, 1)]
    told: list[tuple[TopicPartition, int]] = []

    def outcome(partition: TopicPartition, number: int, error: Exception | None) -> None:
        assert error is None
        told.append((partition, number))

    generator = LoadGenerator(kafka.settings, targets, run_id="late", on_outcome=outcome)
    results = []
    thread = threading.Thread(target=lambda: results.append(generator.run(1.0)))
    thread.start()
    time.sleep(1.0)  # it has asked and found nothing
    Administration(kafka.settings).create_topic("made-late", partitions=2)
    thread.join()
    assert results[0].records_failed == 0, results[0].first_failure
    assert results[0].records_acknowledged > 50
    counts = [results[0].records_by_partition[str(one.partition)] for one in targets]
    assert sorted(told) == [
        (one.partition, number)
        for one, count in zip(targets, counts, strict=True)
        for number in range(count)
    ]


def test_a_partition_added_a_moment_ago_is_written_to(kafka: EmbeddedKafka) -> None:
    """A producer that knew the topic as smaller asks again instead of giving up."""
    administration = Administration(kafka.settings)
    administration.create_topic("grown-late", partitions=1)
    producer = RecordProducer(kafka.settings)
    errors: list[Exception] = []
    arrived: list[int] = []

    def delivered(error: Exception | None, size: int) -> None:
        arrived.append(size) if error is None else errors.append(error)

    producer.send("grown-late", 0, b"one", on_delivery=delivered)
    assert producer.flush(60) == 0
    administration.grow_topic("grown-late", 3)
    producer.send("grown-late", 2, b"two", on_delivery=delivered)
    assert producer.flush(60) == 0
    assert not errors
    assert arrived == [3, 3]


def test_a_topic_that_never_comes_is_an_error(kafka: EmbeddedKafka) -> None:
    """The wait is bounded, and the error says what is missing."""
    producer = RecordProducer(kafka.settings)
    with pytest.raises(TopicMissingError, match="no-such-0"):
        producer.wait_until_known([TopicPartition("no-such", 0)], timeout_s=0.5)


def test_a_leader_that_does_not_answer_yet_is_waited_for(
    kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen on a busy machine: known by name, it refused the first batch and took the second."""
    Administration(kafka.settings).create_topic("led-late", partitions=2)
    right, asked = OffsetLookups.look_up, list[int]()

    def look_up(
        lookups: OffsetLookups, places: Iterable[TopicPartition], position: LogPosition
    ) -> OffsetLookup:
        """Of the two partitions the second one answers at the third look."""
        asked.append(1)
        return right(lookups, [p for p in places if p.partition == 0 or len(asked) > 2], position)

    monkeypatch.setattr(OffsetLookups, "look_up", look_up)
    places = [TopicPartition("led-late", number) for number in range(2)]
    RecordProducer(kafka.settings).wait_until_known(places)
    assert len(asked) == 3
