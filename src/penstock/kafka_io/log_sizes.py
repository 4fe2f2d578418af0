"""How large each partition's log is on its leader's disk (DescribeLogDirs).

confluent-kafka has no such call, so this uses kafka-python's admin client. Sizes are bytes on disk,
after compression. Only the leader's size counts, so a replicated partition counts once.
"""

from collections.abc import Collection
from types import TracebackType
from typing import Any, Self

from kafka.admin import KafkaAdminClient
from kafka.errors import (
    AuthorizationError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    SaslAuthenticationFailedError,
)

from penstock.errors import NotPermittedError, PenstockError, UnreachableError
from penstock.kafka_io.client_properties import kafka_python_properties
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings


class LogSizeReader:
    """One connection for any number of questions."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka = kafka
        try:
            self._client = KafkaAdminClient(**kafka_python_properties(kafka))
        except KafkaError as error:
            raise _as_penstock_error(error, kafka) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._client.close()

    def read_bytes(self, topics: Collection[str]) -> dict[TopicPartition, int]:
        """Bytes on the leader's disk for every partition of `topics` that a leader answers for."""
        if not topics:
            return {}
        names = sorted(topics)
        try:
            leaders = {
                TopicPartition(topic["name"], partition["partition_index"]): partition["leader_id"]
                for topic in self._client.describe_topics(names)
                for partition in topic["partitions"]
            }
        except KafkaError as error:
            raise _as_penstock_error(error, self._kafka) from error
        answers = self._ask({leader for leader in leaders.values() if leader >= 0}, names)
        sizes: dict[TopicPartition, int] = {}
        for answer in answers:
            for directory in answer["log_dirs"]:
                for topic in directory["topics"]:
                    for entry in topic["partitions"]:
                        partition = TopicPartition(topic["name"], entry["partition_index"])
                        if (
                            leaders.get(partition) == answer["broker"]
                            and not entry["is_future_key"]
                        ):
                            sizes[partition] = entry["partition_size"]
        return sizes

    def _ask(self, brokers: Collection[int], topics: list[str]) -> list[dict[str, Any]]:
        """Only those that lead something: one that is away would not answer for a whole time-out.

        One that has just gone away concerns only what it leads.
        """
        answers: list[dict[str, Any]] = []
        failure: KafkaError | None = None
        for broker in sorted(brokers):
            try:
                answers += self._client.describe_log_dirs(topics, [broker])
            except KafkaError as error:
                failure = error
        if failure is not None and not answers:
            raise _as_penstock_error(failure, self._kafka) from failure
        return answers


def _as_penstock_error(error: KafkaError, kafka: KafkaSettings) -> PenstockError:
    if isinstance(error, KafkaConnectionError | KafkaTimeoutError):
        return UnreachableError(
            f"No Kafka broker answers at {kafka.bootstrap_servers} (asking for log sizes).",
            remedy="Check kafka.bootstrap_servers and that a broker runs: `penstock doctor`.",
        )
    if isinstance(error, AuthorizationError | SaslAuthenticationFailedError):
        return NotPermittedError(
            f"Kafka refuses to report log sizes: {error}.",
            remedy="Give this principal Describe on the cluster.",
        )
    return PenstockError(f"Kafka failed: {error} (asking for log sizes).")
