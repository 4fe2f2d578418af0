"""The reader under all readers, on a real broker: ends, gaps, and failures of one partition."""

import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient

from kit.lake.lake import new_topic_name
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.committed_records import all_records, committed_records
from penstock.kafka_io.failures import TopicMissingError
from penstock.kafka_io.followed_topics import FollowedTopics
from penstock.kafka_io.partition_reader import (
    EndReached,
    FailureKind,
    KafkaRecord,
    Outcome,
    PartitionReader,
    ReadFailure,
)
from penstock.laboratory.broker import EmbeddedKafka
from penstock.model import OffsetRange, TopicPartition

pytestmark = pytest.mark.broker


@pytest.fixture
def topic(kafka: EmbeddedKafka) -> str:
    name = new_topic_name("read")
    Administration(kafka.settings).create_topic(name, partitions=2)
    return name


@pytest.fixture
def reader(kafka: EmbeddedKafka) -> Iterator[PartitionReader]:
    with closing(PartitionReader(kafka.settings)) as made:
        yield made


def write(kafka: EmbeddedKafka, topic: str, count: int, *, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 5})
    for number in range(count):
        producer.produce(topic, str(number).encode(), partition=partition, headers=[("h", b"1")])
    assert producer.flush(60) == 0


def write_transactions(kafka: EmbeddedKafka, topic: str) -> None:
    """Offsets 0 to 2 and their marker are committed, 4 and 5 and their marker are aborted."""
    properties = {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": topic}
    producer = Producer(properties)
    producer.init_transactions(60)
    for values in (("a", "b", "c"), ("never", "never")):
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, value.encode(), partition=0)
        producer.flush(60)
        if values[0] == "never":
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)


def remove_before(kafka: EmbeddedKafka, topic: str, offset: int) -> None:
    client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for future in client.delete_records([ClientPartition(topic, 0, offset)]).values():
        future.result(60)


def read_until(
    reader: PartitionReader, kind: type[Outcome], timeout_s: float = 90
) -> list[Outcome]:
    """All outcomes up to the first of the kind."""
    found: list[Outcome] = []
    deadline_s = time.monotonic() + timeout_s
    while not any(isinstance(one, kind) for one in found):
        assert time.monotonic() < deadline_s, found
        found += reader.read(0.2)
    return found


def test_only_committed_records_come_and_the_end_lies_behind_the_markers(
    kafka: EmbeddedKafka, topic: str, reader: PartitionReader
) -> None:
    """Aborted records are skipped; the end and the position count the markers of transactions."""
    write_transactions(kafka, topic)
    partition = TopicPartition(topic, 0)
    reader.assign({partition: 0})
    *records, end = read_until(reader, EndReached)
    assert [(one.offset, one.value) for one in records if isinstance(one, KafkaRecord)] == [
        (0, b"a"),
        (1, b"b"),
        (2, b"c"),
    ]
    assert end == EndReached(partition, 7)
    assert reader.positions == {partition: 7}


def test_an_offset_that_is_gone_is_reported_and_the_rest_can_be_read(
    kafka: EmbeddedKafka, topic: str, reader: PartitionReader
) -> None:
    """Retention removed what was asked for; a restart reads the first record that is left."""
    write(kafka, topic, 5)
    write(kafka, topic, 3, partition=1)
    remove_before(kafka, topic, 3)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    reader.assign({first: 1, second: 0})
    failure = read_until(reader, ReadFailure)[-1]
    assert isinstance(failure, ReadFailure)
    assert (failure.partition, failure.kind) == (first, FailureKind.OFFSET_GONE)
    reader.restart(first)
    deadline_s = time.monotonic() + 90
    while reader.positions != {first: 5, second: 3}:
        assert time.monotonic() < deadline_s, reader.positions
        reader.read(0.2)


def test_a_missing_topic_is_an_error_at_once(kafka: EmbeddedKafka, reader: PartitionReader) -> None:
    """Without patience nothing is waited for."""
    begun_s = time.monotonic()
    with pytest.raises(TopicMissingError):
        reader.log_range(TopicPartition(new_topic_name("never"), 0))
    assert time.monotonic() - begun_s < kafka.settings.answer_timeout / 2


def test_a_stretch_with_gaps_is_read_to_its_end(kafka: EmbeddedKafka, topic: str) -> None:
    """Markers and aborted records leave gaps, also at the end of the stretch; nothing waits."""
    write_transactions(kafka, topic)
    partition = TopicPartition(topic, 0)
    for start, end, expected in ((0, 7, [0, 1, 2]), (1, 2, [1]), (3, 7, []), (2, 5, [2])):
        wanted = OffsetRange(partition, start, end)
        begun_s = time.monotonic()
        found = [one.offset for run in committed_records(kafka.settings, wanted) for one in run]
        assert found == expected
        assert time.monotonic() - begun_s < kafka.settings.answer_timeout / 2


def test_a_whole_partition_comes_with_times_and_headers(kafka: EmbeddedKafka, topic: str) -> None:
    """Every record once, from the first that retention left to the last that is there."""
    write(kafka, topic, 5)
    remove_before(kafka, topic, 2)
    found = list(all_records(kafka.settings, TopicPartition(topic, 0)))
    assert [one.value for one in found] == [b"2", b"3", b"4"]
    assert all(one.headers == (("h", b"1"),) for one in found)
    assert all(abs(one.timestamp_ms / 1000 - time.time()) < 600 for one in found)


def test_following_goes_on_behind_what_retention_removed(kafka: EmbeddedKafka, topic: str) -> None:
    """A follower whose next record is removed goes on with the first that is left."""
    write(kafka, topic, 5)
    partition = TopicPartition(topic, 0)
    with closing(FollowedTopics(kafka.settings, {partition: 1})) as followed:
        assert followed.starts == {partition: 1}
        remove_before(kafka, topic, 3)
        followed._reader.assign({partition: 1})  # drops what was fetched ahead
        values: list[bytes | None] = []
        deadline_s = time.monotonic() + 90
        while len(values) < 2:
            assert time.monotonic() < deadline_s, values
            record = followed.read(0.2)
            values += [] if record is None else [record.value]
        assert values == [b"3", b"4"]
