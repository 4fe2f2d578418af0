"""Who wrote a stored record: what the broker keeps beside its batch.

confluent-kafka gives a record without its producer, and so does kafka-python's consumer. So the
batch is fetched once more, by kafka-python's connection, and only its header is read.
"""

from typing import Any

from kafka.errors import KafkaError
from kafka.protocol.consumer import FetchRequest

from penstock.errors import PenstockError, UnreachableError
from penstock.kafka_io.protocol_connection import ProtocolConnection
from penstock.kafka_io.record_batches import BatchWriter, batch_writers
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings

# The last version that names topics by name: ids would have to be looked up.
_FETCH_VERSION = 12
_BYTES_MAX = 256 * 1024


class StoredBatches:
    """Used by one thread. `doing` is what errors say that was tried."""

    def __init__(self, kafka: KafkaSettings, doing: str) -> None:
        self._doing = doing
        self.connection = ProtocolConnection(kafka, doing)
        self._batches: dict[TopicPartition, list[BatchWriter]] = {}
        # Which broker leads each partition.
        self._brokers: dict[TopicPartition, int] = {}

    def close(self) -> None:
        self.connection.close()

    def writer(self, partition: TopicPartition, offset: int) -> BatchWriter:
        """Raises PenstockError while that cannot be found out."""
        known = _holding(self._batches.get(partition, []), offset)
        if known is None:
            self._batches[partition] = self._fetched(partition, offset)
            known = _holding(self._batches[partition], offset)
        if known is None:
            raise UnreachableError(f"Kafka no longer has offset {offset} of {partition}.")
        return known

    def failed(self, error: Exception) -> PenstockError:
        """What to raise for an error of the connection, which is made anew at the next question."""
        self._brokers.clear()
        self.connection.close()
        return self.connection.error(error)

    def _fetched(self, partition: TopicPartition, offset: int) -> list[BatchWriter]:
        try:
            if partition not in self._brokers:
                self._brokers |= self.connection.leaders([partition.topic])
            broker = self._brokers.get(partition, -1)
            if broker < 0:
                self._brokers.clear()
                raise UnreachableError(f"No broker leads {partition} now ({self._doing}).")
            answer = self.connection.send(_fetch_request(partition, offset), broker)
        except (KafkaError, OSError) as error:
            raise self.failed(error) from error
        for topic in answer.responses:
            for one in topic.partitions:
                if one.error_code:
                    self._brokers.clear()  # another broker may lead it now
                    raise PenstockError(
                        f"The leader of {partition} gives error {one.error_code} ({self._doing})."
                    )
                return batch_writers(one.records or b"")
        return []


def _holding(batches: list[BatchWriter], offset: int) -> BatchWriter | None:
    return next((one for one in batches if one.has(offset)), None)


def _fetch_request(partition: TopicPartition, offset: int) -> Any:
    topic_row = FetchRequest.FetchTopic
    row = topic_row.FetchPartition
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=_BYTES_MAX,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[
            topic_row(
                topic=partition.topic,
                partitions=[
                    row(
                        partition=partition.partition,
                        current_leader_epoch=-1,
                        fetch_offset=offset,
                        last_fetched_epoch=-1,
                        log_start_offset=-1,
                        partition_max_bytes=_BYTES_MAX,
                    )
                ],
            )
        ],
        forgotten_topics_data=[],
        rack_id="",
        max_version=_FETCH_VERSION,
    )
