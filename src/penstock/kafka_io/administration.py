"""Asks and tells the cluster about topics: what exists, how large, with which settings.

A thin shell around the admin client. Every call is bounded by `kafka.answer_timeout`, and whatever
goes wrong comes out in our own words.
"""

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from penstock.kafka_io.client_properties import librdkafka_properties
from penstock.kafka_io.failures import kafka_failures
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings

# `_NOENT` is what the library itself says when no partition asked for has a leader.
_MISSING = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._NOENT,
}
_MOVING = {
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_LEADER_EPOCH,
}
_LEADER_PAUSE_S = 0.2


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What the brokers say of themselves: who is there and which topics exist."""

    broker_ids: tuple[int, ...]
    partition_counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TopicView:
    name: str
    topic_id: str
    partitions: int
    replication_factor: int
    is_internal: bool


class Administration:
    """One admin connection. Made after any fork; never shared with a Spark closure."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka
        with kafka_failures(kafka, "connecting"):
            self._client = AdminClient(librdkafka_properties(kafka))

    def cluster(self, *, timeout_s: float | None = None) -> ClusterView:
        with kafka_failures(self._kafka, "asking for metadata"):
            metadata = self._client.list_topics(timeout=timeout_s or self._kafka.answer_timeout)
        return ClusterView(
            broker_ids=tuple(sorted(metadata.brokers)),
            partition_counts={
                name: len(metadata.topics[name].partitions) for name in sorted(metadata.topics)
            },
        )

    def topics(self, names: Iterable[str]) -> dict[str, TopicView]:
        """Those of the topics that exist."""
        wanted = sorted(names)
        if not wanted:
            return {}
        futures = self._client.describe_topics(
            TopicCollection(wanted), request_timeout=self._kafka.answer_timeout
        )
        seen = {}
        for name, future in futures.items():
            try:
                found = self._result(future, f"describing topic {name}")
            except TopicMissingError:
                continue
            seen[name] = TopicView(
                name=name,
                topic_id=_as_kafka_says(str(found.topic_id)),
                partitions=len(found.partitions),
                replication_factor=len(found.partitions[0].replicas) if found.partitions else 0,
                is_internal=found.is_internal,
            )
        return seen

    def cluster_rights(self) -> frozenset[str]:
        """What this principal may do with the cluster, in Kafka's words (`DESCRIBE`, ...)."""
        future = self._client.describe_cluster(
            include_authorized_operations=True, request_timeout=self._kafka.answer_timeout
        )
        return _rights(self._result(future, "asking for rights on the cluster"))

    def topic_rights(self, names: Iterable[str]) -> dict[str, frozenset[str]]:
        """What this principal may do with those of the topics that exist."""
        futures = self._client.describe_topics(
            TopicCollection(sorted(names)),
            include_authorized_operations=True,
            request_timeout=self._kafka.answer_timeout,
        )
        found = {}
        for name, future in futures.items():
            try:
                found[name] = _rights(self._result(future, f"asking for rights on {name}"))
            except TopicMissingError:
                continue
        return found

    def topic_settings(self, names: Iterable[str]) -> dict[str, dict[str, str]]:
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in sorted(names)]
        if not resources:
            return {}
        futures = self._client.describe_configs(
            resources, request_timeout=self._kafka.answer_timeout
        )
        return {
            resource.name: {
                key: str(entry.value)
                for key, entry in self._result(
                    future, f"reading {resource.name}'s settings"
                ).items()
            }
            for resource, future in futures.items()
        }

    def create_topic(
        self,
        name: str,
        *,
        partitions: int,
        replication_factor: int = -1,
        settings: Mapping[str, str] | None = None,
    ) -> bool:
        """Make a topic; False when it exists already."""
        topic = NewTopic(name, partitions, replication_factor, config=dict(settings or {}))
        futures = self._client.create_topics([topic], request_timeout=self._kafka.answer_timeout)
        try:
            self._result(futures[name], f"creating topic {name}")
        except TopicExistsError:
            return False
        return True

    def grow_topic(self, name: str, partitions: int) -> bool:
        """Give it so many partitions; False when somebody else has given it as many or more."""
        futures = self._client.create_partitions(
            [NewPartitions(name, partitions)], request_timeout=self._kafka.answer_timeout
        )
        try:
            self._result(futures[name], f"growing topic {name} to {partitions} partitions")
        except NoIncreaseError:
            return False
        return True

    def delete_topic(self, name: str) -> None:
        futures = self._client.delete_topics([name], request_timeout=self._kafka.answer_timeout)
        self._result(futures[name], f"deleting topic {name}")

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._offsets(partitions, OffsetSpec.latest())

    def stable_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Where a reader of committed records must stop: before the first open transaction."""
        return self._offsets(partitions, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)

    def start_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._offsets(partitions, OffsetSpec.earliest())

    def _offsets(
        self,
        partitions: Iterable[TopicPartition],
        spec: OffsetSpec,
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> dict[TopicPartition, int]:
        """Offsets of those partitions that exist; one whose leader moves is asked for again."""
        asked = {ClientPartition(one.topic, one.partition): spec for one in sorted(partitions)}
        found: dict[TopicPartition, int] = {}
        deadline = time.monotonic() + self._kafka.answer_timeout
        while asked:
            futures = self._client.list_offsets(
                asked, isolation_level=isolation, request_timeout=self._kafka.answer_timeout
            )
            moving = {}
            for partition, future in futures.items():
                try:
                    answer = self._result(future, f"asking {partition.topic} for offsets")
                except TopicMissingError:
                    continue
                except LeaderMovingError:
                    moving[partition] = spec
                    continue
                found[TopicPartition(partition.topic, partition.partition)] = int(answer.offset)
            asked = moving if time.monotonic() < deadline else {}
            if asked:
                time.sleep(_LEADER_PAUSE_S)  # an election takes its moment
                self.cluster()  # the client keeps using the leader it knew until told anew
        return found

    def _result(self, future: Future[Any], doing: str) -> Any:
        with kafka_failures(self._kafka, doing):
            try:
                return future.result(timeout=self._kafka.answer_timeout + 5)
            except KafkaException as raised:
                code = raised.args[0].code()
                if code in _MISSING:
                    raise TopicMissingError(doing) from raised
                if code in _MOVING:
                    raise LeaderMovingError(doing) from raised
                if code == KafkaError.TOPIC_ALREADY_EXISTS:
                    raise TopicExistsError(doing) from raised
                if code == KafkaError.INVALID_PARTITIONS:
                    raise NoIncreaseError(doing) from raised
                raise


def _rights(description: Any) -> frozenset[str]:
    return frozenset(one.name for one in description.authorized_operations or ())


def _as_kafka_says(topic_id: str) -> str:
    """Kafka's own text form of an id, which can stand in a path; librdkafka's has slashes."""
    return topic_id.replace("+", "-").replace("/", "_").rstrip("=")


class TopicMissingError(Exception):
    """The cluster has no such topic or partition (any more)."""


class LeaderMovingError(Exception):
    """Another broker is about to lead this partition: ask again."""


class TopicExistsError(Exception):
    """Somebody was quicker."""


class NoIncreaseError(Exception):
    """The topic has as many partitions already, or more."""
