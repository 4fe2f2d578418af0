"""Topics whose records only pass through go through Spark together, and land apart."""

import threading
from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable

from kit.lake.lake import Carrier, new_topic_name, produce
from penstock.pipeline import StaleWriterError

pytestmark = [pytest.mark.broker, pytest.mark.spark]
MILLION = 1_000_000


def _topics(carrier: Carrier, count: int, records: int) -> list[str]:
    names = [new_topic_name("many") for _ in range(count)]
    for index, name in enumerate(names):
        carrier.kafka.create_topic(name, partitions=2)
        values = [f"{name} {number}".encode() for number in range(records + index)]
        produce(carrier.settings.kafka, name, {0: values, 1: values[: index + 1]})
    return names


def test_topics_share_a_pass_and_every_record_lands_in_its_own_table(
    make_carrier: Callable[..., Carrier],
) -> None:
    """Five topics in two batches: one pass each, five tables, each with its own rows alone."""
    carrier = make_carrier()
    topics = _topics(carrier, 5, 20)
    for at_most in (7, None):
        carrier.points.clear()
        planned = [one for topic in topics for one in carrier.plan(topic, at_most=at_most)]
        result = carrier.carry(planned)
        assert not result.failures
        assert carrier.points.count("files-written") == 1
        assert carrier.points.count("committed") == 5
        assert result.records == sum(len(one.range) for one in planned)
    for index, topic in enumerate(topics):
        rows = DeltaTable(f"{carrier.settings.lake.root}/{topic}").to_pyarrow_table()
        assert set(rows["topic"].to_pylist()) == {topic}
        assert rows.num_rows == 20 + index + index + 1
        assert "penstock_topic" not in rows.column_names
    assert carrier.verify(*topics).is_exact


def test_tables_of_a_shared_pass_keep_their_columns_and_folders(
    make_carrier: Callable[..., Carrier],
) -> None:
    """Columns that leave the topic out and tables divided by date pass through it unharmed."""
    names = [new_topic_name("dated") for _ in range(2)]
    form = {"columns": ["date", "partition", "offset", "value"], "partition_by": ["date"]}
    carrier = make_carrier(tables=dict.fromkeys(names, form))
    for name in names:
        carrier.kafka.create_topic(name, partitions=1)
        produce(carrier.settings.kafka, name, {0: [name.encode()] * 3})
    result = carrier.carry([one for name in names for one in carrier.plan(name)])
    assert not result.failures
    assert carrier.points.count("files-written") == 1
    for name in names:
        table = DeltaTable(f"{carrier.settings.lake.root}/{name}")
        rows = table.to_pyarrow_table()
        assert sorted(rows.column_names) == ["date", "offset", "partition", "value"]
        assert rows["value"].to_pylist() == [name.encode()] * 3
        assert table.metadata().partition_columns == ["date"]
    assert carrier.verify(*names).is_exact


def test_one_table_of_a_shared_pass_is_lost_and_the_others_are_carried(
    make_carrier: Callable[..., Carrier],
) -> None:
    """Somebody else commits to one table in the middle of the pass: only that one is refused."""
    carrier, rival = make_carrier(1), make_carrier(2)
    topics = _topics(carrier, 3, 10)
    planned = [one for topic in topics for one in carrier.plan(topic)]

    def at_point(point: str) -> None:
        if point == "files-written" and threading.current_thread() is threading.main_thread():
            assert not rival.carry_all(topics[1]).failures

    carrier.pipeline = type(carrier.pipeline)(carrier.settings, carrier.session, at_point=at_point)
    result = carrier.carry(planned)
    assert {one.topic for one in result.failures} == {topics[1]}
    assert all(isinstance(error, StaleWriterError) for error in result.failures.values())
    assert {one.topic for one in result.carried} == {topics[0], topics[2]}
    assert carrier.verify(*topics).is_exact


def test_a_million_small_records(make_carrier: Callable[..., Carrier]) -> None:
    """Twenty bytes each, eight partitions, three batches: the independent check finds each once."""
    carrier = make_carrier()
    topic = new_topic_name("million")
    carrier.kafka.create_topic(topic, partitions=8)
    servers = carrier.settings.kafka.bootstrap_servers
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "linger.ms": 20,
            "batch.size": 262_144,
            "queue.buffering.max.messages": MILLION,
        }
    )
    for number in range(MILLION):
        producer.produce(topic, b"small record %07d" % number, partition=number % 8)
    assert producer.flush(240) == 0
    records = 0
    for at_most in (50_000, 50_000, None):
        result = carrier.carry(carrier.plan(topic, at_most=at_most))
        assert not result.failures
        records += result.records
    assert records == MILLION
    verdict = carrier.verify(topic)
    assert verdict.is_exact
    assert sum(one.lake for one in verdict.partitions) == MILLION
