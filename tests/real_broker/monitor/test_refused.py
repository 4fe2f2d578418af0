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
from penstock.monitor.core.meter import MeasuredSpeeds

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
        future.result(timeout=60)


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
        end_s = time.monotonic() + 60
        while watcher.rounds[-1].source == "log_dirs" and time.monotonic() < end_s:
            watcher.watch(0.5)
        # The new source starts without memory; a speed settles within five seconds.
        watcher.watch(5.0)

        def wrong(window: list[MeasuredSpeeds]) -> object:
            produced = writer.payload_bytes_per_s(name)
            assert {one.source for one in window} == {"offsets"}
            rows = [seen_in(one, name) for one in window]
            assert None not in rows
            speeds = [one.bytes_per_s for one in rows if one is not None]
            return [(one, produced) for one in speeds if not fits(one, produced, within=0.25)]

        watcher.until_right(writer, 4.0, wrong)
        with watching(strict_kafka, "guarded") as fresh:
            fresh.until(name)

            def wrong_at_last(window: list[MeasuredSpeeds]) -> object:
                produced, seen = writer.payload_bytes_per_s(name), seen_in(window[-1], name)
                assert seen is not None
                return None if fits(seen.bytes_per_s, produced, within=0.5) else (seen, produced)

            fresh.until_right(writer, 2.0, wrong_at_last)
    forced = ("monitor.source=log_dirs",)
    with running_monitor(strict_kafka, "guarded-control", tmp_path / "log", *forced) as process:
        assert process.wait(timeout_s=90) == 5
        assert "Describe on the cluster" in process.log
