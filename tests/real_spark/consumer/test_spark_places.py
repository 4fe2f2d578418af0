"""Spark inside the consumer, and a shared server that goes away and comes back."""

from pathlib import Path

import pytest

from kit.consumer.consumers import (
    MakeGroup,
    add_records,
    assert_exact,
    make_topic,
    wait_for,
    wait_rows,
)
from kit.lake.lake import new_topic_name
from kit.processes import children_of, processes_naming
from penstock.kafka_io.administration import Administration
from penstock.model import TopicPartition
from penstock.pipeline.connect_server import ConnectServer
from penstock.settings.sections import SparkSettings

pytestmark = [pytest.mark.broker, pytest.mark.spark]


def test_spark_in_the_consumers_own_process(make_group: MakeGroup, spark_jars: None) -> None:
    """`local[2]`: the same consumer with a JVM of its own, which ends with it."""
    group = make_group(spark={"master": "local[2]", "driver_memory": "512MiB"})
    topic, places = make_topic(group, "inside", 2, 50)
    child = group.start(1)
    group.command_start(1, places)
    wait_rows(group, topic, 100)
    add_records(group, topic, 2, 50)
    wait_rows(group, topic, 200)
    # Other tests run consumers beside this one.
    own = children_of(child.process.pid, "penstock-consumer-1")
    assert own
    assert child.end() == 0
    wait_for("its JVM to end", lambda: not own & set(processes_naming("penstock-consumer-1")))
    assert_exact(group, topic)


@pytest.mark.timeout(300)  # starts a server of its own, twice
def test_a_spark_server_that_goes_away_and_comes_back(
    make_group: MakeGroup, spark_jars: None, tmp_path: Path
) -> None:
    """The consumer keeps running, and begins a new session when the server answers again.

    The transformation has a Python function: Spark's client asks the session for its types.
    """
    server = ConnectServer(SparkSettings(server_memory=2**29), folder=tmp_path / "spark").start()
    topic = new_topic_name("server")
    tables = {topic: {"transformation": "kit.consumer.transformations:upper_in_python"}}
    group = make_group(spark={"master": server.master}, lake={"tables": tables})
    places = [TopicPartition(topic, number) for number in range(2)]
    try:
        Administration(group.settings.kafka).create_topic(topic, partitions=2)
        add_records(group, topic, 2, 20)
        child = group.start(1)
        group.command_start(1, places)
        wait_rows(group, topic, 40)
        server.stop()
        add_records(group, topic, 2, 20)
        wait_for("the loss to be said", lambda: child.events("batch_put_off"))
        server.start()
        wait_rows(group, topic, 80)
        assert len(child.events("spark_ready")) >= 2
        assert group.stopped(1) == {}
        assert child.end() == 0
        assert_exact(group, topic)
    finally:
        server.stop()
