"""One connection for questions that confluent-kafka cannot ask: kafka-python's own requests.

It is made at the first question, and again after a failure.
"""

from collections.abc import Callable, Iterable
from typing import Any

from kafka.admin import KafkaAdminClient
from kafka.errors import AuthorizationError, SaslAuthenticationFailedError
from kafka.protocol.metadata import MetadataRequest

from penstock.errors import NotPermittedError, PenstockError, UnreachableError
from penstock.kafka_io.client_properties import kafka_python_properties
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings


class ProtocolConnection:
    """Used by one thread. `doing` is what errors say that was tried."""

    def __init__(self, kafka: KafkaSettings, doing: str) -> None:
        self._kafka = kafka
        self._doing = doing
        self._client: KafkaAdminClient | None = None

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def send(self, request: Any, broker: int | None) -> Any:
        """The answer of this broker, or of any if it is None."""
        return self.run(lambda client: client._manager.send(request, node_id=broker))

    def run(self, ask: Callable[[KafkaAdminClient], Any]) -> Any:
        """Await the library's future that `ask` returns, for `kafka.answer_timeout` at most."""
        if self._client is None:
            self._client = KafkaAdminClient(**kafka_python_properties(self._kafka))
        client = self._client
        timeout_ms = int(self._kafka.answer_timeout * 1000)

        async def asking() -> Any:
            return await client._manager.wait_for(ask(client), timeout_ms)

        return client._manager.run(asking)

    def leaders(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        """The broker that leads each partition; negative where none does."""
        row = MetadataRequest.MetadataRequestTopic
        request = MetadataRequest(
            topics=[row(name=topic) for topic in sorted(topics)], allow_auto_topic_creation=False
        )
        return {
            TopicPartition(topic.name, one.partition_index): one.leader_id
            for topic in self.send(request, None).topics
            for one in topic.partitions
        }

    def error(self, error: Exception) -> PenstockError:
        if isinstance(error, AuthorizationError | SaslAuthenticationFailedError):
            return NotPermittedError(
                f"Kafka refuses: {error} ({self._doing}).",
                remedy="Give this principal the rights listed in docs/security.md.",
            )
        return UnreachableError(
            f"No Kafka broker answers at {self._kafka.bootstrap_servers} ({self._doing}).",
            remedy="Check kafka.bootstrap_servers and that a broker runs: `penstock doctor`.",
        )
