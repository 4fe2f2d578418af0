"""Kafka loses records it once had, or a topic is made again: a consumer stops, and says why."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kit.consumer.consumers import (
    Group,
    add_records,
    assert_exact,
    group_of,
    make_topic,
    wait_for,
    wait_rows,
)
from kit.lake.lake import new_topic_name, produce
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.leader_epochs import EPOCH_UNKNOWN, EpochEndReader
from penstock.laboratory.broker import BrokerPlan, EmbeddedKafka
from penstock.messages import StopReason
from penstock.model import TopicPartition
from penstock.pipeline.connect_server import ConnectServer
from penstock.settings import Settings
from penstock.verification import carried_so_far, verify

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def harmed_kafka(
    broker_jars: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedKafka]:
    """Not the shared broker: this one is killed, and harm is done to its files."""
    plan = BrokerPlan(heap_mib=256)
    folder = tmp_path_factory.mktemp("harmed-broker")
    with EmbeddedKafka(plan, data_directory=folder) as running:
        yield running


@contextmanager
def group_with_a_broker(
    broker: EmbeddedKafka, spark_server: ConnectServer, folder: Path
) -> Iterator[tuple[Group, EmbeddedKafka]]:
    settings = Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": broker.bootstrap_servers, "answer_timeout": "20s"},
            "topics": {"prefix": new_topic_name("control"), "consumers_ahead": 1},
            "spark": {"master": spark_server.master},
            "lake": {"root": str(folder / "lake")},
        }
    )
    for number, node in list(broker.nodes.items()):
        if not node.is_alive:  # a test failed between the harm and the new start
            broker.restart(number)
    with group_of(settings, folder) as group:
        yield group, broker


def lose_the_last_records(broker: EmbeddedKafka, place: TopicPartition, *, keep: float) -> None:
    """Kill the broker, cut the partition's log to a share of its bytes, and start it again."""
    (node,) = broker.nodes
    broker.kill(node)
    (folder,) = broker.directory.glob(f"node-*/log/{place}")
    (log,) = folder.glob("*.log")
    os.truncate(log, int(log.stat().st_size * keep))
    for pattern in ("*.index", "*.timeindex", "*.snapshot"):
        for file in folder.glob(pattern):
            file.unlink()
    broker.restart(node)


def lose_the_disk(broker: EmbeddedKafka, place: TopicPartition) -> None:
    """Kill the broker, remove the partition's folder, and start it again."""
    (node,) = broker.nodes
    broker.kill(node)
    (folder,) = broker.directory.glob(f"node-*/log/{place}")
    shutil.rmtree(folder)
    broker.restart(node)


def carried_topic(group: Group, story: str, places: int = 1) -> tuple[str, list[TopicPartition]]:
    """A topic with 150 records in each partition, in three batches of the log."""
    topic, partitions = make_topic(group, story, places)
    for _ in range(3):
        add_records(group, topic, places, 50)
    return topic, partitions


def stop_of(group: Group, place: TopicPartition, reason: StopReason) -> Any:
    def found() -> Any:
        row = group.stopped(1).get(place)
        return row if row is not None and row.reason is reason else None

    return wait_for(f"the stop of {place}", found)


def test_a_log_that_ends_below_the_ledger_stops_its_partition_alone(
    harmed_kafka: EmbeddedKafka, spark_server: ConnectServer, tmp_path: Path
) -> None:
    """The stop and the report name the offsets; the other topic goes on; verify counts the loss."""
    with group_with_a_broker(harmed_kafka, spark_server, tmp_path) as (group, broker):
        topic, places = carried_topic(group, "cut")
        other, more = carried_topic(group, "whole")
        child = group.start(1)
        group.command_start(1, [*places, *more])
        wait_rows(group, topic, 150)
        wait_rows(group, other, 150)
        lose_the_last_records(broker, places[0], keep=0.5)
        end = Administration(group.settings.kafka).end_offsets(places)[places[0]]
        assert end < 150
        stop = stop_of(group, places[0], StopReason.LOG_TRUNCATED)
        assert str(end) in stop.detail
        assert "150" in stop.detail
        failed = wait_for("the report", lambda: group.report(1).failed)
        assert [(row.topic, row.reason, row.offset) for row in failed] == [
            (topic, StopReason.LOG_TRUNCATED, 150)
        ]
        add_records(group, other, 1, 10)
        wait_rows(group, other, 160)
        assert child.end() == 0
        assert_exact(group, other)
        (verdict,) = verify(group.settings, [topic]).partitions
        assert verdict.truncated == 150 - end


def test_a_log_that_lost_records_and_grew_again_is_not_read_on(
    harmed_kafka: EmbeddedKafka, spark_server: ConnectServer, tmp_path: Path
) -> None:
    """By its ends it is whole; the leader epoch in the ledger shows that it is not."""
    with group_with_a_broker(harmed_kafka, spark_server, tmp_path) as (group, broker):
        topic, places = carried_topic(group, "grown")
        other, more = carried_topic(group, "kept")
        child = group.start(1)
        group.command_start(1, [*places, *more])
        wait_rows(group, topic, 150)
        wait_rows(group, other, 150)
        group.command_stop(1, [*places, *more])
        wait_for("the stops", lambda: len(group.stopped(1)) == 2)
        lose_the_last_records(broker, places[0], keep=0.5)
        produce(group.settings.kafka, topic, {0: [b"new"] * 200})
        produce(group.settings.kafka, other, {0: [b"new"] * 10})
        group.command_start(1, [*places, *more])
        stop = stop_of(group, places[0], StopReason.LOG_TRUNCATED)
        assert "epoch" in stop.detail
        wait_rows(group, other, 160)
        assert group.stopped(1)[more[0]].reason is StopReason.COMMANDED
        wait_rows(group, topic, 150)
        assert child.end() == 0
        (verdict,) = verify(group.settings, [topic]).partitions
        assert verdict.changed
        (by_offsets,) = verify(group.settings, [topic], offsets_only=True).partitions
        assert by_offsets.truncated, "the epoch shows it without the content"
        reader = EpochEndReader(group.settings.kafka)
        missing = TopicPartition("missing", 0)
        found = reader.look_up({places[0]: 0, more[0]: 99, missing: 0})
        assert found.offsets[places[0]] < 150
        assert found.offsets[more[0]] == EPOCH_UNKNOWN
        assert set(found.failures) == {missing}
        reader.close()


@pytest.mark.parametrize("anew", [0, 60, 200], ids=["empty", "fewer", "more"])
def test_a_partition_whose_disk_was_wiped_is_not_read_on(
    harmed_kafka: EmbeddedKafka, spark_server: ConnectServer, tmp_path: Path, anew: int
) -> None:
    """It stops with its reason, however many records came since; no row of the lake is touched."""
    with group_with_a_broker(harmed_kafka, spark_server, tmp_path) as (group, broker):
        topic, places = carried_topic(group, "wiped")
        other, more = carried_topic(group, "spared")
        child = group.start(1)
        group.command_start(1, [*places, *more])
        wait_rows(group, topic, 150)
        wait_rows(group, other, 150)
        group.command_stop(1, [*places, *more])
        wait_for("the stops", lambda: len(group.stopped(1)) == 2)
        lose_the_disk(broker, places[0])
        produce(group.settings.kafka, topic, {0: [b"new"] * anew})
        produce(group.settings.kafka, other, {0: [b"new"] * 10})
        assert Administration(group.settings.kafka).end_offsets(places)[places[0]] == anew
        group.command_start(1, [*places, *more])
        stop = stop_of(group, places[0], StopReason.LOG_TRUNCATED)
        assert "150" in stop.detail
        failed = wait_for("the report", lambda: group.report(1).failed)
        assert [(row.topic, row.reason, row.offset) for row in failed] == [
            (topic, StopReason.LOG_TRUNCATED, 150)
        ]
        wait_rows(group, other, 160)
        wait_rows(group, topic, 150)
        assert child.end() == 0
        (verdict,) = verify(group.settings, [topic]).partitions
        # New records stand at the same offsets; by its leader epoch the old log has none left.
        assert (verdict.truncated, bool(verdict.changed)) == (150, anew > 0)


@pytest.mark.parametrize("records", [5, 20], ids=["fewer", "as many"])
def test_a_topic_made_again_without_more_records_is_noticed(group: Group, records: int) -> None:
    """No batch runs that would notice; its new id does, and the new topic begins at its start."""
    topic, places = make_topic(group, "anew", 1, 20)
    group.start(1)
    group.command_start(1, places)
    wait_rows(group, topic, 20)
    kafka = Administration(group.settings.kafka)
    kafka.delete_topic(topic)
    wait_for("it to be made again", lambda: _made(kafka, topic))
    produce(group.settings.kafka, topic, {0: [b"new"] * records})
    stop_of(group, places[0], StopReason.TOPIC_MADE_AGAIN)
    group.command_start(1, places)
    wait_for("the new beginning", lambda: group.started(1).get(places[0]) == 0)
    wait_for("its records", lambda: _carried(group, topic) == records)
    result = verify(group.settings, [topic])
    assert result.is_exact
    assert [len(ids) for ids in result.earlier_topic_ids.values()] == [1]


def _made(kafka: Administration, topic: str) -> bool:
    return topic not in kafka.topics([topic]) and kafka.create_topic(topic, partitions=1)


def _carried(group: Group, topic: str) -> int:
    """The ledger of the topic that there is now."""
    return carried_so_far(group.settings, [topic]).get(TopicPartition(topic, 0), 0)
