"""Asks where the log of an earlier leader epoch ends (OffsetForLeaderEpoch).

An offset that was committed under an epoch lies beyond that end when brokers have lost records
since, also when new records have filled their offsets again. confluent-kafka validates such an
offset only while it fetches records, so this uses kafka-python's connections.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from kafka.errors import IncompatibleBrokerVersion, KafkaError
from kafka.protocol.consumer import OffsetForLeaderEpochRequest

from penstock.errors import PenstockError
from penstock.kafka_io.failures import NoLeaderError
from penstock.kafka_io.offset_lookup import OffsetLookup
from penstock.kafka_io.protocol_connection import ProtocolConnection
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings

# The end of an epoch that the leader does not know: it is ahead of all that the leader knows.
EPOCH_UNKNOWN = -1
_DOING = "asking for the ends of leader epochs"


class EpochEndReader:
    """One connection, made at the first question and again after a failure."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._connection = ProtocolConnection(kafka, _DOING)

    def look_up(self, epochs: Mapping[TopicPartition, int]) -> OffsetLookup:
        """Where each epoch's log ends. Partitions of brokers too old to say are in neither map."""
        if not epochs:
            return OffsetLookup()
        try:
            return self._ask(epochs)
        except IncompatibleBrokerVersion:
            return OffsetLookup()
        except (KafkaError, OSError) as error:
            self.close()
            return OffsetLookup(failures=dict.fromkeys(epochs, self._connection.error(error)))

    def close(self) -> None:
        self._connection.close()

    def _ask(self, epochs: Mapping[TopicPartition, int]) -> OffsetLookup:
        ends: dict[TopicPartition, int] = {}
        failures: dict[TopicPartition, PenstockError] = {}
        leaders = self._connection.leaders({one.topic for one in epochs})
        by_leader: dict[int, list[TopicPartition]] = {}
        for one in sorted(epochs):
            leader = leaders.get(one, -1)
            if leader >= 0:
                by_leader.setdefault(leader, []).append(one)
            else:
                failures[one] = NoLeaderError(f"No broker leads {one} now ({_DOING}).")
        for leader, partitions in by_leader.items():
            try:
                answer = self._connection.send(_request(partitions, epochs), leader)
            except IncompatibleBrokerVersion:
                continue
            except (KafkaError, OSError) as error:
                # A broker that is away concerns only what it leads.
                failures |= dict.fromkeys(partitions, self._connection.error(error))
                continue
            for topic in answer.topics:
                for row in topic.partitions:
                    one = TopicPartition(topic.topic, row.partition)
                    if row.error_code:
                        failures[one] = NoLeaderError(
                            f"The leader of {one} gives error {row.error_code} ({_DOING})."
                        )
                    else:
                        ends[one] = int(row.end_offset)
        return OffsetLookup(ends, failures)


def _request(partitions: Iterable[TopicPartition], epochs: Mapping[TopicPartition, int]) -> Any:
    topic_row = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    row = topic_row.OffsetForLeaderPartition
    by_topic: dict[str, list[Any]] = {}
    for one in partitions:
        by_topic.setdefault(one.topic, []).append(
            row(partition=one.partition, current_leader_epoch=-1, leader_epoch=epochs[one])
        )
    return OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[topic_row(topic=name, partitions=rows) for name, rows in by_topic.items()],
    )
