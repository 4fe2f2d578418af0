"""Every record of Kafka is in the lake once, whatever two writers do at the same time."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from deltalake import DeltaTable

from kit.lake.lake import Carrier, new_topic_name, produce
from penstock.model import OffsetRange, TopicPartition
from penstock.pipeline import PlannedRange, StaleWriterError, pass_through_writer
from penstock.pipeline.failures import LakeRefusedError
from penstock.pipeline.storage import TableStorage
from penstock.spark_worker.task import task_of
from penstock.spark_worker.work import PassThroughWork

pytestmark = [pytest.mark.broker, pytest.mark.spark]
MakeCarrier = Callable[..., Carrier]


def _topic(carrier: Carrier, story: str, partitions: int, records: int = 0) -> str:
    topic = new_topic_name(story)
    carrier.kafka.create_topic(topic, partitions=partitions)
    if records:
        values = [f"value {number}".encode() for number in range(records)]
        produce(carrier.settings.kafka, topic, dict.fromkeys(range(partitions), values))
    return topic


def test_raw_columns_and_headers_land_unchanged(make_carrier: MakeCarrier) -> None:
    """Key, value, headers, time and place of a record are the table's columns by default."""
    carrier = make_carrier()
    topic = _topic(carrier, "raw", 2, 3)
    result = carrier.carry_all(topic)
    assert result.records == 6
    assert result.decoded_bytes == sum(2 * len(f"0-{n}value {n}") for n in range(3))
    rows = DeltaTable(f"{carrier.settings.lake.root}/{topic}").to_pyarrow_table().to_pylist()
    one = next(row for row in rows if (row["partition"], row["offset"]) == (1, 2))
    assert (one["key"], one["value"], one["topic"]) == (b"1-2", b"value 2", topic)
    assert one["headers"] == [{"key": "trace", "value": b"abc"}]
    assert one["timestamp"].tzinfo is not None
    assert carrier.verify(topic).is_exact


def test_several_topics_in_one_batch(make_carrier: MakeCarrier) -> None:
    """Ranges of several topics go into one table each, in one call."""
    carrier = make_carrier()
    topics = [_topic(carrier, f"several{number}", 2, 5) for number in range(3)]
    planned = [one for topic in topics for one in carrier.plan(topic)]
    result = carrier.carry(planned)
    assert result.records == 30
    assert len(result.carried) == 6
    assert len(carrier.verify(*topics).partitions) == 6
    assert carrier.verify(*topics).is_exact


def test_topics_can_share_a_table_divided_by_date(make_carrier: MakeCarrier) -> None:
    """Two topics in one table partitioned by date: one commit, folders by date."""
    first, second = new_topic_name("shared"), new_topic_name("shared")
    table = {"table": "both", "partition_by": ["date"]}
    carrier = make_carrier(tables={first: table, second: table})
    for topic in (first, second):
        carrier.kafka.create_topic(topic, partitions=1)
        produce(carrier.settings.kafka, topic, {0: [b"a", b"b"]})
    carrier.carry([*carrier.plan(first), *carrier.plan(second)])
    stored = DeltaTable(f"{carrier.settings.lake.root}/both")
    assert stored.version() == 1
    assert stored.metadata().partition_columns == ["date"]
    rows = stored.to_pyarrow_table().to_pylist()
    assert {row["topic"] for row in rows} == {first, second}
    assert all(row["date"] == row["timestamp"].date() for row in rows)
    assert carrier.verify(first, second).is_exact


def test_goes_on_where_the_ledger_says(make_carrier: MakeCarrier) -> None:
    """A second writer starts at the very offset the first one committed."""
    first, second = make_carrier(1), make_carrier(2)
    topic = _topic(first, "goes-on", 1, 10)
    first.carry(first.plan(topic, at_most=4))
    planned = second.plan(topic)
    assert planned[0].range.start == 4
    second.carry(planned)
    verdict = first.verify(topic)
    assert verdict.is_exact
    assert verdict.partitions[0].lake == 10


@pytest.mark.parametrize("end", [3, 5, 8], ids=["shorter", "equal", "longer"])
def test_a_zombie_cannot_commit(make_carrier: MakeCarrier, end: int) -> None:
    """A writer that planned before another one committed is refused, however long its range."""
    zombie, owner = make_carrier(1), make_carrier(2)
    topic = _topic(zombie, "zombie", 2, 10)
    place = TopicPartition(topic, 0)
    held = [PlannedRange(OffsetRange(place, 0, end), zombie.topic_id(topic))]
    owner.carry([PlannedRange(OffsetRange(place, 0, 5), owner.topic_id(topic))])
    before = zombie.verify(topic)
    result = zombie.carry(held)
    assert isinstance(result.failures[place], StaleWriterError)
    assert not result.carried
    assert zombie.verify(topic) == before
    owner.carry_all(topic)
    assert owner.verify(topic).is_exact


@pytest.mark.parametrize("end", [3, 5, 8], ids=["shorter", "equal", "longer"])
def test_a_zombie_that_wakes_before_its_commit(make_carrier: MakeCarrier, end: int) -> None:
    """Paused with all files written, it is refused at the commit and its files go."""
    zombie, owner = make_carrier(1), make_carrier(2)
    topic = _topic(zombie, "wakes", 1, 10)
    place, topic_id = TopicPartition(topic, 0), zombie.topic_id(topic)

    def take_over(point: str) -> None:
        if point == "before-commit":
            owner.carry([PlannedRange(OffsetRange(place, 0, 5), topic_id)])

    zombie.pipeline._at_point = take_over
    result = zombie.carry([PlannedRange(OffsetRange(place, 0, end), topic_id)])
    assert isinstance(result.failures[place], StaleWriterError)
    owner.carry_all(topic)
    verdict = owner.verify(topic)
    assert verdict.is_exact
    assert verdict.partitions[0].lake == 10
    folder = zombie.pipeline.table(topic).storage
    assert not folder.files_below(f"data/{zombie.settings.lake.group}/{zombie.writer}")


def test_a_stale_partition_drops_the_batch_but_not_the_others(make_carrier: MakeCarrier) -> None:
    """One lost partition fails; the rest of its table's batch is dropped, to be planned again."""
    zombie, owner = make_carrier(1), make_carrier(2)
    topic = _topic(zombie, "drops", 2, 4)
    planned = zombie.plan(topic)
    owner.carry(owner.plan(topic, partitions=[0]))
    result = zombie.carry(planned)
    assert set(result.failures) == {TopicPartition(topic, 0)}
    assert result.dropped == {TopicPartition(topic, 1)}
    assert zombie.carry(zombie.plan(topic, partitions=[1])).records == 4
    assert zombie.verify(topic).is_exact


def test_two_writers_race_for_one_partition(make_carrier: MakeCarrier) -> None:
    """Of two writers at the same offset exactly one wins each round, and nothing is repeated."""
    carriers = [make_carrier(1), make_carrier(2)]
    topic = _topic(carriers[0], "race", 2, 40)
    wins: list[int] = []
    meet = threading.Barrier(len(carriers))

    def run(carrier: Carrier) -> None:
        for _ in range(5):
            planned = carrier.plan(topic, at_most=8)
            meet.wait(300)
            result = carrier.carry(planned)
            wins.append(len(result.carried))
            lost = list(result.failures.values())
            assert all(isinstance(error, StaleWriterError) for error in lost)
            meet.wait(300)

    threads = [threading.Thread(target=run, args=(carrier,)) for carrier in carriers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    carriers[0].carry_all(topic)
    verdict = carriers[0].verify(topic)
    assert verdict.is_exact
    assert sum(one.lake for one in verdict.partitions) == 80
    assert sum(wins) == 5 * 2, "each round each of the two partitions has one winner"


def test_transactions_leave_holes_that_are_no_loss(make_carrier: MakeCarrier) -> None:
    """Aborted records are absent, markers leave gaps, and a range of nothing still advances."""
    carrier = make_carrier()
    topic = _topic(carrier, "holes", 1)
    kafka = carrier.settings.kafka
    produce(kafka, topic, {0: [b"1", b"2"]}, transaction=True)
    produce(kafka, topic, {0: [b"never", b"ever"]}, transaction=False)
    produce(kafka, topic, {0: [b"3"]}, transaction=True)
    assert carrier.carry(carrier.plan(topic, at_most=3)).records == 2
    nothing = carrier.carry(carrier.plan(topic, at_most=3))
    assert (nothing.records, nothing.files) == (0, 0)
    assert nothing.carried == {TopicPartition(topic, 0): 6}
    assert carrier.carry_all(topic).records == 1
    verdict = carrier.verify(topic)
    assert verdict.is_exact
    assert (verdict.partitions[0].kafka, verdict.partitions[0].ledger) == (3, 8)


def test_nulls_empty_and_huge_records(make_carrier: MakeCarrier) -> None:
    """A tombstone, an empty value and a value just below the limit are carried whole."""
    carrier = make_carrier()
    topic = _topic(carrier, "huge", 1)
    huge = b"x" * 999_000
    produce(carrier.settings.kafka, topic, {0: [None, b"", huge]})
    carrier.carry_all(topic)
    rows = DeltaTable(f"{carrier.settings.lake.root}/{topic}").to_pyarrow_table().to_pylist()
    values = {row["offset"]: row["value"] for row in rows}
    assert values == {0: None, 1: b"", 2: huge}
    assert carrier.verify(topic).is_exact


def test_files_are_ordinary_for_other_readers(make_carrier: MakeCarrier) -> None:
    """Times are whole microseconds in UTC (never INT96), so that every Delta reader agrees."""
    carrier = make_carrier()
    topic = _topic(carrier, "ordinary", 1, 3)
    carrier.carry_all(topic)
    stored = DeltaTable(f"{carrier.settings.lake.root}/{topic}")
    schema = pyarrow.parquet.read_schema(stored.file_uris()[0])
    assert str(schema.field("timestamp").type) == "timestamp[us, tz=UTC]"
    stats = stored.get_add_actions(flatten=True)
    assert stats.column("num_records").to_pylist() == [3]
    assert stats.column("max.offset").to_pylist() == [2]


@pytest.mark.parametrize("name", ["a lake", "a+b", "ü"])
def test_a_lake_at_an_odd_place_gets_every_row(
    make_carrier: MakeCarrier, tmp_path: Path, name: str
) -> None:
    """Whatever is in the path means itself, to Spark and to the commit."""
    carrier = make_carrier(root=str(tmp_path / name))
    topic = _topic(carrier, "odd", 1, 5)
    result = carrier.carry_all(topic)
    assert result.records == 5, result.failures
    assert DeltaTable(f"{carrier.settings.lake.root}/{topic}").to_pyarrow_table().num_rows == 5
    assert carrier.verify(topic).is_exact


def _on_another_disk(work: PassThroughWork) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What the workers write is not where the driver looks."""
    run = task_of(work)

    def run_elsewhere(numbers: Iterator[Any]) -> Iterator[Any]:
        for answer in run(numbers):
            for path in answer.column("path").to_pylist():
                Path(path).unlink()
            yield answer

    return run_elsewhere


def test_offsets_are_not_committed_without_their_rows(
    make_carrier: MakeCarrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark wrote elsewhere than the consumer looks: the batch fails, the ledger stays."""
    carrier = make_carrier()
    topic = _topic(carrier, "elsewhere", 1, 5)
    original = TableStorage.spark_uri
    monkeypatch.setattr(TableStorage, "spark_uri", lambda self, path: original(self, f"x/{path}"))
    monkeypatch.setattr(pass_through_writer, "task_of", _on_another_disk)
    failed = carrier.carry(carrier.plan(topic))
    assert [type(error) for error in failed.failures.values()] == [LakeRefusedError]
    monkeypatch.undo()
    assert carrier.carry_all(topic).records == 5
    assert carrier.verify(topic).is_exact


def test_workers_on_another_disk_leave_it_to_the_connector(
    make_carrier: MakeCarrier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only they look elsewhere: the records come by the other way, each once."""
    carrier = make_carrier()
    topic = _topic(carrier, "disks", 1, 5)
    monkeypatch.setattr(pass_through_writer, "task_of", _on_another_disk)
    assert carrier.carry_all(topic).records == 5
    assert carrier.verify(topic).is_exact
