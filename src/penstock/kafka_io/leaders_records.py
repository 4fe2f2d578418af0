"""Which records the leading controller wrote: those of the producer that has its transactional id.

The broker keeps the id of its producer beside every batch, and knows which producer holds a
transactional id. Only a principal with Write on that id can take it over, so a record that carries
the id's producer, in a transaction, is the controller's. What else is in a mailbox was written by
somebody else, whatever it says about itself.

confluent-kafka gives a record without its producer, and so does kafka-python's consumer. So the
batch is fetched once more, by kafka-python's connection, and only its header is read.

Without Describe on the transactional id, or on a broker before Kafka 3.0, nobody says who the
leading producer is. Then every record in a transaction counts, and `on_trouble` is told once.
"""

import time
from collections.abc import Callable
from typing import Any

from kafka.errors import (
    AuthorizationError,
    CoordinatorNotAvailableError,
    KafkaError,
    TransactionalIdNotFoundError,
    UnsupportedVersionError,
)
from kafka.protocol.consumer import FetchRequest

from penstock.errors import PenstockError, UnreachableError
from penstock.kafka_io.protocol_connection import ProtocolConnection
from penstock.kafka_io.record_batches import BatchWriter, batch_writers
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings

_DOING = "asking who wrote a command"
# The last version that names topics by name: ids would have to be looked up.
_FETCH_VERSION = 12
_BYTES_MAX = 256 * 1024
# Another producer than the known one may be a new leader's. A flood of forged records must not
# become one of questions; a command that is refused meanwhile is sent again.
_ASK_AGAIN_S = 1.0
# How soon it is tried again whether the broker says who leads, after it did not.
_TRY_AGAIN_S = 60.0
_NOBODY = -1


class LeadersRecords:
    """Used by one thread: that of the mailbox."""

    def __init__(
        self,
        kafka: KafkaSettings,
        transactional_id: str,
        *,
        on_trouble: Callable[[str], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transactional_id = transactional_id
        self._on_trouble = on_trouble
        self._monotonic = monotonic
        self._connection = ProtocolConnection(kafka, _DOING)
        self._batches: dict[TopicPartition, list[BatchWriter]] = {}
        # Which broker leads each partition.
        self._brokers: dict[TopicPartition, int] = {}
        self._leader: int | None = None
        self._ask_at_s = monotonic()
        self._has_told = False

    def has(self, partition: TopicPartition, offset: int) -> bool:
        """Whether the leading controller wrote it. Raises while that cannot be found out."""
        try:
            batch = self._batch(partition, offset)
            if not batch.is_transactional:
                return False
            if batch.producer_id != self._leader and self._monotonic() >= self._ask_at_s:
                self._ask_who_leads()
        except (KafkaError, OSError) as error:
            self._brokers.clear()
            self._connection.close()
            raise self._connection.error(error) from error
        return self._leader is None or batch.producer_id == self._leader

    def close(self) -> None:
        self._connection.close()

    def _ask_who_leads(self) -> None:
        self._ask_at_s = self._monotonic() + _ASK_AGAIN_S
        try:
            self._leader = _describe(self._connection, self._transactional_id)
        except TransactionalIdNotFoundError:
            self._leader = _NOBODY
        except (AuthorizationError, UnsupportedVersionError) as error:
            self._ask_at_s = self._monotonic() + _TRY_AGAIN_S
            self._tell(error)

    def _tell(self, error: Exception) -> None:
        if not self._has_told:
            self._has_told = True
            self._on_trouble(
                "the broker does not say which producer leads, so every command in a transaction "
                f"counts ({type(error).__name__}): give this principal Describe on the "
                f"transactional id {self._transactional_id}"
            )

    def _batch(self, partition: TopicPartition, offset: int) -> BatchWriter:
        known = _holding(self._batches.get(partition, []), offset)
        if known is None:
            self._batches[partition] = self._fetched(partition, offset)
            known = _holding(self._batches[partition], offset)
        if known is None:
            raise UnreachableError(f"Kafka no longer has offset {offset} of {partition}.")
        return known

    def _fetched(self, partition: TopicPartition, offset: int) -> list[BatchWriter]:
        if partition not in self._brokers:
            self._brokers |= self._connection.leaders([partition.topic])
        broker = self._brokers.get(partition, -1)
        if broker < 0:
            self._brokers.clear()
            raise UnreachableError(f"No broker leads {partition} now ({_DOING}).")
        answer = self._connection.send(_fetch_request(partition, offset), broker)
        for topic in answer.responses:
            for one in topic.partitions:
                if one.error_code:
                    self._brokers.clear()  # another broker may lead it now
                    raise PenstockError(
                        f"The leader of {partition} gives error {one.error_code} ({_DOING})."
                    )
                return batch_writers(one.records or b"")
        return []


def may_ask_who_leads(kafka: KafkaSettings, transactional_id: str) -> bool:
    """Whether the broker lets this principal ask; True where it is too old to be asked.

    A broker without a coordinator for transactions, as before its first one, has looked at the
    rights when it says so.
    """
    connection = ProtocolConnection(kafka, "asking who leads")
    try:
        _describe(connection, transactional_id)
    except AuthorizationError:
        return False
    except (
        CoordinatorNotAvailableError,
        TransactionalIdNotFoundError,
        UnsupportedVersionError,
    ):
        return True
    except (KafkaError, OSError) as error:
        raise connection.error(error) from error
    finally:
        connection.close()
    return True


def _describe(connection: ProtocolConnection, transactional_id: str) -> int:
    """The id of the producer that has the transactional id."""
    found = connection.run(
        lambda client: client._manager.call_soon(
            client._async_describe_transactions, [transactional_id]
        )
    )
    return int(found[transactional_id].producer_id)


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
