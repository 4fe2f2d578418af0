"""Records that only pass through: read and written by Spark's workers, or by its connector."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable

from kit.lake.lake import Carrier, new_topic_name, produce
from penstock.pipeline import pass_through_writer
from penstock.pipeline.dataframe_writer import DataFrameWriter
from penstock.spark_worker.assigned_reader import KafkaSilentError, UnreadableRecordError
from penstock.spark_worker.task import task_of
from penstock.spark_worker.work import PassThroughWork

pytestmark = [pytest.mark.broker, pytest.mark.spark]
DATED = {"columns": ["date", "offset", "timestamp", "value"], "partition_by": ["date"]}


def _other_way(carrier: Carrier) -> Carrier:
    """The same, by Spark's connector and into a lake of its own."""
    settings = carrier.settings
    lake = settings.lake.model_copy(update={"root": f"{settings.lake.root}-other"})
    spark = settings.spark.model_copy(update={"pass_through": False})
    settings = settings.model_copy(update={"lake": lake, "spark": spark})
    return Carrier(settings, carrier.session, carrier.writer)


def _rows(carrier: Carrier, topic: str) -> pa.Table:
    rows = DeltaTable(f"{carrier.settings.lake.root}/{topic}").to_pyarrow_table()
    return rows.sort_by([(name, "ascending") for name in ("partition", "offset")])


def _of_every_kind(carrier: Carrier, topic: str) -> None:
    """Records with and without key, value and headers; old, new, committed and aborted ones."""
    carrier.kafka.create_topic(topic, partitions=2)
    producer = Producer({"bootstrap.servers": carrier.settings.kafka.bootstrap_servers})
    kinds: list[dict[str, Any]] = [
        {"value": b"plain"},
        {"value": None, "key": b"tombstone"},
        {"value": b"", "key": b""},
        {"value": bytes(range(256)), "headers": [("trace", b"\x00\xff"), ("trace", None)]},
        {"value": b"old", "timestamp": 1_000},
        {"value": b"later", "timestamp": 200 * 86_400_000 - 1},
        {"value": "grün".encode(), "headers": [("ключ", b"1")]},
    ]
    for number, kind in enumerate(kinds * 3):
        producer.produce(topic, partition=number % 2, **kind)
    assert producer.flush(90) == 0
    produce(carrier.settings.kafka, topic, {0: [b"aborted"] * 4}, transaction=False)
    produce(carrier.settings.kafka, topic, {0: [b"committed"] * 3}, transaction=True)
    # The log of partition 1 ends with nothing but what is not there for a reader.
    produce(carrier.settings.kafka, topic, {1: [b"aborted"] * 2}, transaction=False)


def test_both_ways_give_the_same_rows(make_carrier: Callable[..., Carrier]) -> None:
    """Same columns, types and values, null for null, for records of every kind."""
    pass_through = make_carrier()
    other = _other_way(pass_through)
    topic = new_topic_name("kinds")
    _of_every_kind(pass_through, topic)
    for carrier in (pass_through, other):
        result = carrier.carry_all(topic)
        assert not result.failures
        assert result.records == 24
        assert carrier.verify(topic).is_exact
    assert _rows(pass_through, topic).schema == _rows(other, topic).schema
    assert _rows(pass_through, topic).to_pylist() == _rows(other, topic).to_pylist()


def test_both_ways_divide_by_date_alike(make_carrier: Callable[..., Carrier]) -> None:
    """Folders by the record's own day, in UTC, and only the columns that were asked for."""
    topic = new_topic_name("days")
    pass_through = make_carrier(tables={topic: DATED})
    other = _other_way(pass_through)
    _of_every_kind(pass_through, topic)
    found = []
    for carrier in (pass_through, other):
        assert not carrier.carry_all(topic).failures
        table = DeltaTable(f"{carrier.settings.lake.root}/{topic}")
        rows = table.to_pyarrow_table()
        found.append(sorted(map(str, rows.select(DATED["columns"]).to_pylist())))
        days = {str(one["date"]) for one in table.partitions()}
        assert {"1970-01-01", "1970-07-19"} < days
    assert found[0] == found[1]


def test_a_table_may_get_rows_by_either_way(make_carrier: Callable[..., Carrier]) -> None:
    """Half by the workers, half by the connector, into one table: every record is there once."""
    pass_through = make_carrier()
    settings = pass_through.settings
    spark = settings.spark.model_copy(update={"pass_through": False})
    by_connector = Carrier(
        settings.model_copy(update={"spark": spark}), pass_through.session, pass_through.writer
    )
    topic = new_topic_name("either")
    pass_through.kafka.create_topic(topic, partitions=3)
    produce(settings.kafka, topic, {one: [b"%d" % one] * 20 for one in range(3)})
    for carrier in (pass_through, by_connector, pass_through):
        assert not carrier.carry(carrier.plan(topic, at_most=7)).failures
    assert pass_through.verify(topic).is_exact
    assert _rows(pass_through, topic).num_rows == 60


def test_workers_without_our_code_leave_it_to_the_connector(
    make_carrier: Callable[..., Carrier], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch is carried all the same; the workers are tried again after a while, not at once."""
    tried = []

    def lacking(work: PassThroughWork) -> Callable[[Iterator[Any]], Iterator[Any]]:
        tried.append(work)

        def run(numbers: Iterator[Any]) -> Iterator[Any]:
            import no_such_module_on_this_worker  # type: ignore[import-not-found] # noqa: F401, PLC0415 -- that is the test

            return numbers

        return run

    monkeypatch.setattr(pass_through_writer, "task_of", lacking)
    carrier = make_carrier()
    topic = new_topic_name("lacking")
    carrier.kafka.create_topic(topic, partitions=1)
    produce(carrier.settings.kafka, topic, {0: [b"x"] * 10})
    for at_most in (4, None):
        assert not carrier.carry(carrier.plan(topic, at_most=at_most)).failures
    assert len(tried) == 1
    assert carrier.verify(topic).is_exact
    monkeypatch.undo()
    produce(carrier.settings.kafka, topic, {0: [b"x"] * 10})
    later_s = time.monotonic() + carrier.settings.spark.workers_retry
    monkeypatch.setattr(carrier.pipeline, "_clock", lambda: later_s)
    monkeypatch.setattr(DataFrameWriter, "write", None)
    assert not carrier.carry_all(topic).failures
    assert carrier.verify(topic).is_exact


@pytest.mark.parametrize("error", [KafkaSilentError, UnreadableRecordError])
def test_what_the_workers_cannot_read_goes_by_the_connector(
    make_carrier: Callable[..., Carrier],
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception],
) -> None:
    """All tables of the pass are carried, and the next batch passes through again."""

    def cannot_read(work: PassThroughWork) -> Callable[[Iterator[Any]], Iterator[Any]]:
        def run(numbers: Iterator[Any]) -> Iterator[Any]:
            list(numbers)
            raise error(f"{work.reader_name} gives nothing")

        return run

    carrier = make_carrier()
    topics = [new_topic_name("unread") for _ in range(2)]
    for topic in topics:
        carrier.kafka.create_topic(topic, partitions=1)
        produce(carrier.settings.kafka, topic, {0: [b"x"] * 10})
    with monkeypatch.context() as patched:
        patched.setattr(pass_through_writer, "task_of", cannot_read)
        planned = [one for topic in topics for one in carrier.plan(topic, at_most=5)]
        assert not carrier.carry(planned).failures
    carrier.points.clear()
    assert not carrier.carry([one for topic in topics for one in carrier.plan(topic)]).failures
    assert carrier.points.count("files-written") == 1
    assert carrier.verify(*topics).is_exact


def test_what_a_failed_attempt_left_is_not_committed(
    make_carrier: Callable[..., Carrier], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole file that no task answered for lies in the batch's folder: its rows do not count."""
    carrier = make_carrier()
    topic = new_topic_name("attempts")
    carrier.kafka.create_topic(topic, partitions=2)
    produce(carrier.settings.kafka, topic, {0: [b"x"] * 5, 1: [b"y"] * 5})

    def twice(work: PassThroughWork) -> Callable[[Iterator[Any]], Iterator[Any]]:
        run = task_of(work)

        def run_twice(numbers: Iterator[Any]) -> Iterator[Any]:
            given = list(numbers)
            list(run(iter(given)))  # an attempt whose answer was lost
            return run(iter(given))

        return run_twice

    monkeypatch.setattr(pass_through_writer, "task_of", twice)
    result = carrier.carry_all(topic)
    assert not result.failures
    assert result.records == 10
    assert carrier.verify(topic).is_exact
