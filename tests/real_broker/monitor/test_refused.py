"""On a real broker with an authorizer: log sizes are refused, and the other source takes over."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from kit.kafka.measuring import fits, seen_in, watching, writing
from kit.kafka.monitor_process import make_topics, running_monitor
from penstock.kafka_io.administration import Administration
from penstock.laboratory.broker import EmbeddedKafka
from penstock.laboratory.broker.properties import BrokerPlan

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def strict_kafka(broker_jars: None) -> Iterator[EmbeddedKafka]:
    """Everybody may do everything that no rule names; rules can be added."""
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with EmbeddedKafka(BrokerPlan(properties=properties)) as running:
        yield running


def forbid_log_sizes(kafka: EmbeddedKafka) -> None:
    """All on the cluster is allowed but Describe, which log sizes need."""
    client = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    rules = [
        (AclOperation.ALL, AclPermissionType.ALLOW),
        (AclOperation.DESCRIBE, AclPermissionType.DENY),
    ]
    bindings = [
        AclBinding(
            ResourceType.BROKER,
            "kafka-cluster",
            ResourcePatternType.LITERAL,
            "User:ANONYMOUS",
            "*",
            operation,
            permission,
        )
        for operation, permission in rules
    ]
    for future in client.create_acls(bindings).values():
        future.result(timeout=20)


def test_refusal_changes_the_source(strict_kafka: EmbeddedKafka, tmp_path: Path) -> None:
    """The right is taken away while measuring: offsets go on, visibly; forced sizes give up."""
    Administration(strict_kafka.settings).create_topic("guarded", partitions=1)
    make_topics(strict_kafka, "guarded-control")
    name = ("guarded", 0)
    with (
        writing(strict_kafka, name) as writer,
        watching(strict_kafka, "guarded") as watcher,
    ):
        watcher.until(name)
        watcher.watch(1.0)
        assert watcher.rounds[-1].source == "log_dirs"
        forbid_log_sizes(strict_kafka)
        end_s = time.monotonic() + 20
        while watcher.rounds[-1].source == "log_dirs" and time.monotonic() < end_s:
            watcher.watch(0.5)
        # The new source starts without memory; a speed settles within five seconds.
        watcher.watch(5.0)
        writer.mark()
        later = watcher.watch(4.0)
        produced = writer.payload_bytes_per_s(name)
        assert {one.source for one in later} == {"offsets"}
        for one in later:
            seen = seen_in(one, name)
            assert seen is not None
            assert fits(seen.bytes_per_s, produced, within=0.25), (seen, produced)
        with watching(strict_kafka, "guarded") as fresh:
            assert fits(fresh.until(name).bytes_per_s, produced, within=0.5)
    forced = ("monitor.source=log_dirs",)
    with running_monitor(strict_kafka, "guarded-control", tmp_path / "log", *forced) as process:
        assert process.wait(timeout_s=30) == 5
        assert "Describe on the cluster" in process.log
