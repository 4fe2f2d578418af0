"""A partition that cannot be read under a running consumer: the healthy topic keeps its pace."""

import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AclBindingFilter, AdminClient

from documents.kafka_rights import RIGHTS, KafkaRight
from kit.consumer.consumers import (
    ConsumerChild,
    Group,
    add_records,
    assert_exact,
    group_of,
    keeps_flowing,
    lake_rows,
    make_topic,
    wait_for,
    wait_rows,
)
from kit.kafka.guarded_broker import GuardedBroker, guarded_broker
from kit.lake.lake import new_topic_name
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.failures import NoLeaderError
from penstock.kafka_io.offset_lookup import LogPosition
from penstock.laboratory.broker import BrokerPlan, EmbeddedKafka
from penstock.messages import StopReason
from penstock.model import TopicPartition
from penstock.pipeline.connect_server import ConnectServer
from penstock.settings import Settings

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(300)]
# So long that a look or a batch that waits for an answer is told from a slow machine.
ANSWER_TIMEOUT_S = 45


def settings_for(servers: str, spark_server: ConnectServer, folder: Path, **lake: Any) -> Settings:
    return Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": servers, "answer_timeout": f"{ANSWER_TIMEOUT_S}s"},
            "topics": {"prefix": new_topic_name("control"), "consumers_ahead": 1},
            "spark": {"master": spark_server.master},
            "lake": {"root": str(folder / "lake"), **lake},
        }
    )


def keeps_its_pace(group: Group, child: ConsumerChild, topic: str, rows: int) -> int:
    """Three rounds of new records take less than one wait for an answer."""
    begun_s = time.monotonic()
    rows = keeps_flowing(group, child, topic, rows)
    assert time.monotonic() - begun_s < ANSWER_TIMEOUT_S
    return rows


def test_a_partition_without_a_leader_slows_nobody_down(
    broker_jars: None, spark_server: ConnectServer, tmp_path: Path
) -> None:
    """A broker dies with partitions that have no replica; they go on when it is back."""
    quick = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
    with EmbeddedKafka(BrokerPlan(brokers=3, heap_mib=256, properties=quick)) as cluster:
        settings = settings_for(cluster.bootstrap_servers, spark_server, tmp_path)
        administration = Administration(cluster.settings)
        with group_of(settings, tmp_path) as group:
            # Their logs are empty, so that their sizes are asked for every two seconds.
            bad = new_topic_name("bad")
            administration.create_topic(bad, partitions=6, replication_factor=1)
            places = [TopicPartition(bad, number) for number in range(6)]
            good, more = make_topic(group, "good", 1, 5)
            child = group.start(1)
            group.command_start(1, [*places, *more])
            wait_rows(group, good, 5)
            cluster.kill(2)
            wait_for("partitions without a leader", lambda: _leaderless(administration, places))
            # The first look may still ask the dead broker, once.
            wait_for("the consumer's look", lambda: child.events("ends_unknown"))
            rows = keeps_its_pace(group, child, good, 5)
            keeps_its_pace(group, child, good, rows)
            assert group.stopped(1) == {}
            cluster.restart(2)
            add_records(group, bad, 6, 5)
            wait_rows(group, bad, 30)
            assert child.end() == 0
            assert_exact(group, bad, good)


def _leaderless(administration: Administration, places: list[TopicPartition]) -> bool:
    failures = administration.look_up_offsets(places, LogPosition.END).failures
    return any(isinstance(one, NoLeaderError) for one in failures.values())


def test_a_revoked_right_stops_its_topic_alone(
    broker_jars: None,
    spark_server: ConnectServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The stop names the right; with the right back, a new start goes on where it was."""
    with guarded_broker(tmp_path / "broker", ["consumer"]) as broker:
        servers = broker.settings.bootstrap_servers
        settings = settings_for(servers, spark_server, tmp_path, group="guarded")
        with group_of(settings, tmp_path) as group:
            bad, (place,) = make_topic(group, "bad", 1, 5)
            good, more = make_topic(group, "good", 1, 5)
            for topic in (good, bad):
                names = {"prefix": settings.topics.prefix, "group": "guarded", "topics": topic}
                broker.grant([one.named(**names) for one in RIGHTS if one.role == "consumer"])
            broker.grant([KafkaRight("consumer", "Topic", bad, "DESCRIBE", "the test")])
            for name, value in broker.environment("consumer").items():
                monkeypatch.setenv(name, value)
            child = group.start(1)
            group.command_start(1, [place, *more])
            wait_rows(group, bad, 5)
            wait_rows(group, good, 5)
            _revoke_read(broker, bad)
            begun_s = time.monotonic()
            add_records(group, bad, 1, 5)
            stop = wait_for("the stop", lambda: group.stopped(1).get(place))
            assert time.monotonic() - begun_s < ANSWER_TIMEOUT_S
            assert stop.reason is StopReason.NOT_PERMITTED
            assert "READ" in stop.detail
            keeps_its_pace(group, child, good, 5)
            assert len(lake_rows(group, bad)) == 5
            broker.grant([KafkaRight("consumer", "Topic", bad, "READ", "the test")])
            group.command_start(1, [place])
            wait_rows(group, bad, 10)
            assert child.end() == 0
            assert_exact(group, bad, good)


def _revoke_read(broker: GuardedBroker, topic: str) -> None:
    right = KafkaRight("consumer", "Topic", topic, "READ", "the test").binding("consumer")
    exactly = AclBindingFilter(
        right.restype,
        right.name,
        right.resource_pattern_type,
        right.principal,
        right.host,
        right.operation,
        right.permission_type,
    )
    client = AdminClient({"bootstrap.servers": broker.settings.bootstrap_servers})
    for future in client.delete_acls([exactly]).values():
        assert len(future.result(60)) == 1
