"""Asks the cluster about topics, and makes, grows and deletes them.

A thin shell around the admin client. Every call is bounded by `kafka.answer_timeout`, and fails
with an error of Penstock.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from penstock.errors import PenstockError
from penstock.kafka_io.client_properties import librdkafka_properties
from penstock.kafka_io.failures import NoLeaderError, TopicMissingError, kafka_failures
from penstock.kafka_io.offset_lookup import (
    CLIENT_MARGIN_S,
    LogPosition,
    OffsetLookup,
    OffsetLookups,
)
from penstock.kafka_io.told_errors import ToldErrors
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings

# A broker that lives answers a request about topics within milliseconds.
_LATE_S = 1.0


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The brokers that are there, and the number of partitions of every topic."""

    broker_ids: tuple[int, ...]
    partition_counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TopicView:
    name: str
    topic_id: str
    partitions: int
    replication_factor: int
    is_internal: bool


@dataclass(frozen=True, slots=True)
class TopicLookup:
    """Each topic asked for is in one of the two."""

    topics: Mapping[str, TopicView]
    failures: Mapping[str, PenstockError]


class Administration:
    """Admin connections. Made after any fork; never shared with a Spark closure."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka
        self._told = ToldErrors(kafka)
        self._client = self._connected()
        self._offset_lookups = OffsetLookups(self._connected, kafka, self._told)

    def _connected(self) -> AdminClient:
        with kafka_failures(self._kafka, "connecting"):
            return AdminClient({**librdkafka_properties(self._kafka), **self._told.properties})

    def cluster(self, *, timeout_s: float | None = None) -> ClusterView:
        metadata = self._metadata("asking for metadata", timeout_s)
        return ClusterView(
            broker_ids=tuple(sorted(metadata.brokers)),
            partition_counts={
                name: len(metadata.topics[name].partitions) for name in sorted(metadata.topics)
            },
        )

    def look_up_topics(self, names: Iterable[str]) -> TopicLookup:
        """What each topic is, or why that cannot be said: no topic holds up another."""
        wanted = sorted(set(names))
        topics: dict[str, TopicView] = {}
        failures: dict[str, PenstockError] = {}
        futures = (
            self._client.describe_topics(
                TopicCollection(wanted), request_timeout=self._kafka.answer_timeout
            )
            if wanted
            else {}
        )
        for name, future in futures.items():
            try:
                found = self._result(future, f"describing topic {name}")
            except PenstockError as error:
                failures[name] = error
                continue
            topics[name] = TopicView(
                name=name,
                topic_id=_in_kafkas_form(str(found.topic_id)),
                partitions=len(found.partitions),
                replication_factor=len(found.partitions[0].replicas) if found.partitions else 0,
                is_internal=found.is_internal,
            )
        return TopicLookup(topics, failures)

    def topics(self, names: Iterable[str]) -> dict[str, TopicView]:
        """Those of the topics that exist; any other failure is raised."""
        found = self.look_up_topics(names)
        for error in found.failures.values():
            if not isinstance(error, TopicMissingError):
                raise error
        return dict(found.topics)

    def cluster_rights(self) -> frozenset[str]:
        """What this principal may do with the cluster, as Kafka names it (`DESCRIBE`, ...)."""
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
        exists = KafkaError.TOPIC_ALREADY_EXISTS
        return self._is_done(futures[name], f"creating topic {name}", unless=exists)

    def grow_topic(self, name: str, partitions: int) -> bool:
        """Add partitions up to this number; False when the topic has as many or more."""
        futures = self._client.create_partitions(
            [NewPartitions(name, partitions)], request_timeout=self._kafka.answer_timeout
        )
        doing = f"growing topic {name} to {partitions} partitions"
        return self._is_done(futures[name], doing, unless=KafkaError.INVALID_PARTITIONS)

    def delete_topic(self, name: str) -> None:
        futures = self._client.delete_topics([name], request_timeout=self._kafka.answer_timeout)
        self._result(futures[name], f"deleting topic {name}")

    def look_up_offsets(
        self,
        partitions: Iterable[TopicPartition],
        position: LogPosition,
        *,
        waits_for_leaders: bool = False,
    ) -> OffsetLookup:
        """Each offset, or why it cannot be said: no partition holds up another.

        A caller who waits for elections waits up to `kafka.answer_timeout`.
        """
        wait_s = self._kafka.answer_timeout if waits_for_leaders else 0.0
        return self._offset_lookups.look_up(partitions, position, wait_for_leaders_s=wait_s)

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._offsets(partitions, LogPosition.END)

    def stable_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Where a reader of committed records must stop: before the first open transaction."""
        return self._offsets(partitions, LogPosition.STABLE_END)

    def start_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._offsets(partitions, LogPosition.START)

    def _offsets(
        self, partitions: Iterable[TopicPartition], position: LogPosition
    ) -> dict[TopicPartition, int]:
        """Return the offset of every partition that exists and has a leader.

        The others are left out. Any other failure is raised. It waits for elections, up to
        `kafka.answer_timeout`.
        """
        found = self.look_up_offsets(partitions, position, waits_for_leaders=True)
        for error in found.failures.values():
            if not isinstance(error, TopicMissingError | NoLeaderError):
                raise error
        return dict(found.offsets)

    def _metadata(self, doing: str, timeout_s: float | None = None) -> Any:
        with kafka_failures(self._kafka, doing):
            return self._told.first_answer(
                lambda wait_s: self._client.list_topics(timeout=wait_s),
                lambda: self._client.poll(0),
                doing,
                timeout_s,
            )

    def _result(self, future: Future[Any], doing: str) -> Any:
        with kafka_failures(self._kafka, doing):
            return self._answer(future, doing)

    def _answer(self, future: Future[Any], doing: str) -> Any:
        """Wait for an answer; ask for metadata if it is late.

        The client sends such requests to the broker that metadata named last, and waits for that
        one even if it has died: only new metadata names another.
        """
        self._told.raise_known()
        try:
            return future.result(timeout=_LATE_S)
        except TimeoutError:
            self._metadata(doing)
        return future.result(timeout=self._kafka.answer_timeout + CLIENT_MARGIN_S)

    def _is_done(self, future: Future[Any], doing: str, *, unless: int) -> bool:
        """Wait for a change; False when the broker answers with the code `unless`."""
        with kafka_failures(self._kafka, doing):
            try:
                self._answer(future, doing)
            except KafkaException as raised:
                if raised.args[0].code() == unless:
                    return False
                raise
        return True


def require_answer(kafka: KafkaSettings) -> None:
    """Raise why no broker answers. The other library, asked next, would only say that none does."""
    Administration(kafka).cluster()


def _rights(description: Any) -> frozenset[str]:
    return frozenset(one.name for one in description.authorized_operations or ())


def _in_kafkas_form(topic_id: str) -> str:
    """The id as Kafka's own tools print it; librdkafka's form has slashes, unfit for a path."""
    return topic_id.replace("+", "-").replace("/", "_").rstrip("=")
