"""Kafka, the lake or a topic fails under a consumer: it recovers, or reports what was lost."""

import contextlib
import os
import subprocess
import time
from pathlib import Path

import pytest

from kit.consumer.consumers import (
    Group,
    MakeGroup,
    add_records,
    assert_exact,
    group_of,
    lake_rows,
    make_topic,
    wait_for,
    wait_rows,
)
from kit.lake.lake import new_topic_name, produce
from penstock.kafka_io.administration import Administration
from penstock.laboratory.broker import EmbeddedKafka
from penstock.messages import StopReason
from penstock.model import TopicPartition
from penstock.pipeline.connect_server import ConnectServer
from penstock.settings import Settings

pytestmark = [pytest.mark.broker, pytest.mark.spark]


@pytest.mark.parametrize("trouble", ["full", "read-only"])
def test_a_lake_that_takes_no_writes_is_tried_again(
    make_group: MakeGroup, small_disk: Path, trouble: str
) -> None:
    """It is logged and tried again until the disk takes writes; nothing is given up or lost."""
    group = make_group(lake={"root": str(small_disk)})
    topic, places = make_topic(group, "refused", 2, 20)
    child = group.start(1)
    group.command_start(1, places)
    wait_rows(group, topic, 40)
    filler = small_disk / "filler"
    if trouble == "full":
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            for size in (2**16, 2**12, 1):
                with contextlib.suppress(OSError):
                    while file.write(b"x" * size):
                        pass
    else:
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    add_records(group, topic, 2, 20)
    wait_for("a refusal", lambda: child.events("batch_put_off"))
    assert len(lake_rows(group, topic)) == 40
    if trouble == "full":
        filler.unlink()
    else:
        subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    wait_rows(group, topic, 80)
    assert group.stopped(1) == {}
    assert child.end() == 0
    assert_exact(group, topic)


@pytest.mark.timeout(300)  # the broker is away for half a minute, and starts twice
def test_a_broker_that_is_gone_for_a_while(
    spark_server: ConnectServer, broker_jars: None, tmp_path: Path
) -> None:
    """The broker is killed and back after half a minute: no record is lost or doubled."""
    away_s = float(os.environ.get("PENSTOCK_TEST_BROKER_AWAY_S", "30"))
    with EmbeddedKafka(data_directory=tmp_path / "broker") as own:
        settings = Settings.model_validate(
            {
                "kafka": {"bootstrap_servers": own.bootstrap_servers, "answer_timeout": "15s"},
                "topics": {"prefix": new_topic_name("control"), "consumers_ahead": 1},
                "spark": {"master": spark_server.master},
                "lake": {"root": str(tmp_path / "lake")},
            }
        )
        with group_of(settings, tmp_path) as group:
            topic, places = make_topic(group, "away", 3, 200, size=500)
            child = group.start(1)
            group.command_start(1, places)
            wait_for("a batch", lambda: child.events("batch_begins"))
            node = next(iter(own.nodes))
            own.kill(node)
            time.sleep(away_s)
            assert child.process.poll() is None
            own.restart(node)
            wait_rows(group, topic, 600)
            add_records(group, topic, 3, 20)
            wait_rows(group, topic, 660)
            query = group.ask(1)
            assert len(group.answer(1, query).owned) == 3
            assert child.end() == 0
            assert_exact(group, topic)


@pytest.mark.parametrize("choice", ["stop", "skip-and-report"])
def test_records_that_retention_took_are_never_skipped_silently(
    make_group: MakeGroup, choice: str
) -> None:
    """The partition stops or skips the hole, as the settings say, and reports it; others go on."""
    group = make_group(lake={"on_offset_out_of_range": choice})
    topic, places = make_topic(group, "retention", 2, 20)
    child = group.start(1)
    group.command_start(1, places)
    wait_rows(group, topic, 40)
    group.command_stop(1, places)
    wait_for("the stops", lambda: len(group.stopped(1)) == 2)
    add_records(group, topic, 2, 20)
    group.delete_records(places[0], before=30)
    group.command_start(1, places)
    if choice == "stop":
        stop = wait_for(
            "the stop",
            lambda: (row := group.stopped(1)[places[0]]).reason != "commanded" and row,
        )
        assert stop.reason is StopReason.OFFSET_OUT_OF_RANGE
        assert stop.next_offset == 20
        wait_rows(group, topic, 60)
    else:
        wait_rows(group, topic, 70)
    reported = wait_for("the report", lambda: group.report(1).failed)
    assert [row.topic_partition for row in reported] == [places[0]]
    assert reported[0].reason is StopReason.OFFSET_OUT_OF_RANGE
    assert reported[0].offset == 20
    assert child.end() == 0


def test_a_topic_made_again_is_not_mistaken_for_the_old_one(group: Group) -> None:
    """Its partitions are given up and reported; started again, they begin at offset 0."""
    topic, places = make_topic(group, "again", 1, 20)
    other, more = make_topic(group, "stays", 1, 5)
    group.start(1)
    group.command_start(1, [*places, *more])
    wait_rows(group, topic, 20)
    kafka = Administration(group.settings.kafka)
    kafka.delete_topic(topic)
    wait_for("the topic to be gone", lambda: topic not in kafka.topics([topic]))
    wait_for("it to be made", lambda: kafka.create_topic(topic, partitions=1))
    produce(group.settings.kafka, topic, {0: [b"new"] * 30})
    stop = wait_for("the stop", lambda: group.stopped(1).get(places[0]))
    assert stop.reason is StopReason.TOPIC_MADE_AGAIN
    add_records(group, other, 1, 5)
    wait_rows(group, other, 10)
    group.command_start(1, places)
    wait_for("the new beginning", lambda: group.started(1).get(places[0]) == 0)


def test_a_transformation_that_raises_stops_its_partitions_alone(make_group: MakeGroup) -> None:
    """The others go on; the report names the partition, the offset and the error."""
    bad = new_topic_name("bad")
    tables = {bad: {"transformation": "kit.consumer.transformations:fails_on_poison"}}
    group = make_group(lake={"tables": tables})
    Administration(group.settings.kafka).create_topic(bad, partitions=2)
    places = [TopicPartition(bad, number) for number in range(2)]
    produce(group.settings.kafka, bad, {0: [b"fine"] * 5, 1: [b"poison"] * 2})
    good, more = make_topic(group, "good", 1, 5)
    group.start(1)
    group.command_start(1, [*places, *more])
    wait_rows(group, good, 5)
    stop = wait_for("the stop", lambda: group.stopped(1).get(places[1]))
    assert stop.reason is StopReason.TRANSFORMATION_FAILED
    wait_rows(group, bad, 5)
    assert set(group.stopped(1)) == {places[1]}
    wait_for("the report", lambda: len(group.report(1).failed) == 1)


def test_huge_records_and_a_crowd_of_small_ones(group: Group) -> None:
    """Records of nearly 1 MB beside a hundred thousand tiny ones are each carried once."""
    topic, places = make_topic(group, "crowd", 4)
    huge = [os.urandom(1000) * 950 for _ in range(12)]
    produce(
        group.settings.kafka,
        topic,
        {0: huge, **{n: [b"%d" % i for i in range(35_000)] for n in (1, 2, 3)}},
    )
    child = group.start(1, batch_bytes="8MiB")
    group.command_start(1, places)
    wait_rows(group, topic, 105_012)
    assert child.end() == 0
    assert_exact(group, topic)
