"""One bad topic or table under a running consumer: the healthy ones beside it keep flowing."""

from pathlib import Path

import pytest
from confluent_kafka import Producer

from kit.consumer.consumers import (
    Group,
    MakeGroup,
    add_records,
    assert_exact,
    keeps_flowing,
    lake_rows,
    make_topic,
    wait_for,
    wait_rows,
)
from kit.lake.lake import new_topic_name, produce
from penstock.kafka_io.administration import Administration
from penstock.messages import StopReason
from penstock.model import TopicPartition

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(300)]
# Microseconds since 1970, where Kafka counts milliseconds.
IN_MICROSECONDS = 1_790_000_000_000_000


@pytest.mark.parametrize("function", ["panics", "exits"])
def test_a_transformation_that_ends_its_thread_stops_its_partition_alone(
    make_group: MakeGroup, function: str
) -> None:
    """A panic of native code, or a call of `sys.exit`: the consumer lives, and says what it was."""
    bad = new_topic_name("bad")
    named = f"kit.consumer.transformations:{function}"
    group = make_group(lake={"tables": {bad: {"transformation": named}}})
    Administration(group.settings.kafka).create_topic(bad, partitions=1)
    produce(group.settings.kafka, bad, {0: [b"x"] * 5})
    good, more = make_topic(group, "good", 1, 5)
    child = group.start(1)
    group.command_start(1, [TopicPartition(bad, 0), *more])
    stop = wait_for("the stop", lambda: group.stopped(1).get(TopicPartition(bad, 0)))
    assert stop.reason is StopReason.TRANSFORMATION_FAILED
    assert named in stop.detail
    keeps_flowing(group, child, good, 5)
    assert child.end() == 0
    assert_exact(group, good)


def test_a_panic_in_a_batch_puts_off_its_topic_alone(group: Group) -> None:
    """Every batch of one topic panics: it is tried again and again, and the other one flows."""
    bad, places = make_topic(group, "bad", 2, 5)
    good, more = make_topic(group, "good", 1, 5)
    child = group.start(1, at=bad, action="panic")
    group.command_start(1, [*places, *more])
    rows = keeps_flowing(group, child, good, 5)
    assert lake_rows(group, bad) == []
    assert group.stopped(1) == {}
    put_off = wait_for("two attempts", lambda: len(child.events("batch_put_off")) >= 2)
    assert put_off
    assert "index out of bounds" in child.events("batch_put_off")[0]["error"]
    keeps_flowing(group, child, good, rows)
    assert child.end() == 0
    group.start(1)
    group.wait_new_incarnation(1, max(one.incarnation for one in group.reports(1)))
    group.command_start(1, [*places, *more])
    wait_rows(group, bad, 10)
    assert_exact(group, bad, good)


def test_times_in_microseconds_disturb_nobody(group: Group) -> None:
    """The records are carried with the last moment a table can hold, and both topics flow."""
    kafka = Administration(group.settings.kafka)
    bad = new_topic_name("micro")
    kafka.create_topic(
        bad, partitions=1, settings={"message.timestamp.after.max.ms": str(2**63 - 1)}
    )
    producer = Producer({"bootstrap.servers": group.settings.kafka.bootstrap_servers})
    for _ in range(5):
        producer.produce(bad, b"x", partition=0, timestamp=IN_MICROSECONDS)
    assert producer.flush(60) == 0
    good, more = make_topic(group, "good", 1, 5)
    child = group.start(1)
    group.command_start(1, [TopicPartition(bad, 0), *more])
    wait_rows(group, bad, 5)
    keeps_flowing(group, child, good, 5)
    assert group.stopped(1) == {}
    assert child.end() == 0
    assert_exact(group, bad, good)


def test_a_table_with_a_broken_log_holds_up_no_other(group: Group) -> None:
    """Its partitions are put off with the reason, also by the next consumer, until it is mended."""
    bad, places = make_topic(group, "broken", 1, 5)
    good, more = make_topic(group, "good", 1, 5)
    child = group.start(1)
    group.command_start(1, [*places, *more])
    wait_rows(group, bad, 5)
    wait_rows(group, good, 5)
    folder = f"{group.settings.lake.root}/{bad}"
    newest = max(Path(folder, "_delta_log").glob("*.json"))
    content = newest.read_text(encoding="utf-8")
    newest.write_text(content[: len(content) // 2], encoding="utf-8")
    add_records(group, bad, 1, 5)
    rows = keeps_flowing(group, child, good, 5)
    assert child.end() == 0
    before = group.incarnation(1)
    child = group.start(1)
    group.wait_new_incarnation(1, before)
    group.command_start(1, [*places, *more])
    logged = wait_for("the reason", lambda: child.events("ledger_not_read"))
    assert folder in logged[0]["error"]
    assert logged[0]["partitions"] == 1
    keeps_flowing(group, child, good, rows)
    newest.write_text(content, encoding="utf-8")
    wait_rows(group, bad, 10)
    assert child.end() == 0
    assert_exact(group, bad, good)


def test_a_deleted_topic_is_called_deleted(make_group: MakeGroup) -> None:
    """It is no topic that was made again; the one beside it flows on."""
    group = make_group()
    topic, places = make_topic(group, "deleted", 1, 20)
    good, more = make_topic(group, "good", 1, 5)
    child = group.start(1, missing_partition_wait="3s")
    group.command_start(1, [*places, *more])
    wait_rows(group, topic, 20)
    Administration(group.settings.kafka).delete_topic(topic)
    stop = wait_for("the stop", lambda: group.stopped(1).get(places[0]))
    assert (stop.reason, stop.next_offset) == (StopReason.TOPIC_DELETED, 20)
    keeps_flowing(group, child, good, 5)
    assert set(group.stopped(1)) == {places[0]}
    assert child.end() == 0
