"""An unexpected record or failure concerns one partition, and never ends a consumer."""

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable

from kit.lake.lake import Carrier, new_topic_name, produce
from penstock.model import TopicPartition
from penstock.pipeline import UnforeseenError, written_files
from penstock.pipeline.file_statistics import file_stats

pytestmark = [pytest.mark.broker, pytest.mark.spark]
# Microseconds since 1970, where Kafka counts milliseconds.
IN_MICROSECONDS = 1_790_000_000_000_000
FIRST = dt.datetime(1900, 1, 1, tzinfo=dt.UTC)
LAST = dt.datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=dt.UTC)
ORDINARY = dt.datetime(2026, 11, 16, tzinfo=dt.UTC)
ANY_TIME = {
    "message.timestamp.after.max.ms": str(2**63 - 1),
    "message.timestamp.before.max.ms": str(2**63 - 1),
}


def _far_times(carrier: Carrier, topic: str) -> None:
    carrier.kafka.create_topic(topic, partitions=2, settings=ANY_TIME)
    producer = Producer({"bootstrap.servers": carrier.settings.kafka.bootstrap_servers})
    times = [int(ORDINARY.timestamp() * 1000), IN_MICROSECONDS, 2**63 - 1, -(2**62)]
    for number, time_ms in enumerate(times):
        producer.produce(topic, b"%d" % number, partition=0, timestamp=time_ms)
        producer.produce(topic, b"fine", partition=1)
    assert producer.flush(90) == 0


@pytest.mark.parametrize("way", ["pass-through", "connector", "transformation", "dated"])
def test_a_time_that_no_table_can_hold_is_set_to_the_nearest_it_can(
    make_carrier: Callable[..., Carrier], way: str
) -> None:
    """Times before 1900 and after 9999 become the first or last moment, whatever the way."""
    topic = new_topic_name("times")
    function = "kit.consumer.transformations:decode_all" if way == "transformation" else ""
    table = {"transformation": function, "partition_by": ["date"] if way == "dated" else []}
    carrier = make_carrier(tables={topic: table})
    if way == "connector":
        spark = carrier.settings.spark.model_copy(update={"pass_through": False})
        settings = carrier.settings.model_copy(update={"spark": spark})
        carrier = Carrier(settings, carrier.session, carrier.writer)
    _far_times(carrier, topic)
    result = carrier.carry_all(topic)
    assert not result.failures
    assert carrier.verify(topic).is_exact
    stored = DeltaTable(f"{carrier.settings.lake.root}/{topic}")
    rows = {
        row["offset"]: row for row in stored.to_pyarrow_table().to_pylist() if not row["partition"]
    }
    assert [rows[offset]["timestamp"] for offset in range(4)] == [ORDINARY, LAST, LAST, FIRST]
    if way == "dated":
        assert [rows[offset]["date"] for offset in range(4)] == [
            *(ORDINARY.date(), LAST.date(), LAST.date(), FIRST.date())
        ]


class _Panic(BaseException):
    """What native code raises when it panics: no Exception."""


@pytest.mark.parametrize("kind", [OverflowError, _Panic])
@pytest.mark.parametrize("function", ["", "kit.consumer.transformations:decode_all"])
def test_what_nobody_foresaw_puts_off_one_partition(
    make_carrier: Callable[..., Carrier],
    monkeypatch: pytest.MonkeyPatch,
    kind: type[BaseException],
    function: str,
) -> None:
    """It is narrowed down by halving: the other partitions and tables are carried."""
    bad, good = new_topic_name("bad"), new_topic_name("good")
    carrier = make_carrier(tables={bad: {"transformation": function}})
    for topic in (bad, good):
        carrier.kafka.create_topic(topic, partitions=3)
        produce(carrier.settings.kafka, topic, {number: [b"x"] * 4 for number in range(3)})

    def raises_for_one(footer: Any) -> str:
        stats = file_stats(footer)
        if bad in stats and '"partition":2' in stats.partition('"maxValues"')[2]:
            raise kind("nobody foresaw this")
        return stats

    monkeypatch.setattr(written_files, "file_stats", raises_for_one)
    result = carrier.carry([*carrier.plan(bad), *carrier.plan(good)])
    assert set(result.failures) == {TopicPartition(bad, 2)}
    (failure,) = result.failures.values()
    assert isinstance(failure, UnforeseenError)
    assert not failure.is_lasting
    assert "nobody foresaw this" in str(failure)
    assert len(result.carried) == 5
    monkeypatch.undo()
    assert not carrier.carry_all(bad).failures
    assert carrier.verify(bad, good).is_exact
