"""Which records the leading controller wrote: those of the producer that has its transactional id.

The broker keeps the id of its producer beside every batch, and knows which producer holds a
transactional id. Only a principal with Write on that id can take it over, so a record that carries
the id's producer, in a transaction, is the controller's. What else is in a mailbox was written by
somebody else, whatever it says about itself.

Without Describe on the transactional id, or on a broker before Kafka 3.0, nobody says who the
leading producer is. Then every record in a transaction counts, and `on_trouble` is told once. A
broker that does not answer is something else: until it does, nothing counts.
"""

import time
from collections.abc import Callable

from kafka.errors import (
    AuthorizationError,
    CoordinatorNotAvailableError,
    KafkaError,
    TransactionalIdNotFoundError,
    UnsupportedVersionError,
)

from penstock.errors import PenstockError
from penstock.kafka_io.protocol_connection import ProtocolConnection
from penstock.kafka_io.record_batches import NOBODY
from penstock.kafka_io.stored_batches import StoredBatches
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings

# Another producer than the known one may be a new leader's. A flood of forged records must not
# become one of questions; a command that is refused meanwhile is sent again.
_ASK_AGAIN_S = 1.0
# How soon it is tried again whether the broker says who leads, after it did not.
_TRY_AGAIN_S = 60.0


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
        self._stored = StoredBatches(kafka, "asking who wrote a command")
        self._leader = NOBODY
        self._may_not_ask = False
        # Why the last question had no answer: then nobody is known to lead, and nothing counts.
        self._unanswered: PenstockError | None = None
        self._ask_at_s = monotonic()
        self._has_told = False

    def has(self, partition: TopicPartition, offset: int) -> bool:
        """Whether the leading controller wrote it. Raises while that cannot be found out."""
        batch = self._stored.writer(partition, offset)
        if not batch.is_transactional:
            return False
        if batch.producer_id != self._leader:
            if self._monotonic() >= self._ask_at_s:
                self._ask_who_leads()
            if self._unanswered is not None:
                raise self._unanswered
        return self._may_not_ask or batch.producer_id == self._leader

    def close(self) -> None:
        self._stored.close()

    def _ask_who_leads(self) -> None:
        self._ask_at_s = self._monotonic() + _ASK_AGAIN_S
        self._unanswered, may_not_ask = None, False
        try:
            self._leader = _describe(self._stored.connection, self._transactional_id)
        except TransactionalIdNotFoundError:
            self._leader = NOBODY
        except (AuthorizationError, UnsupportedVersionError) as error:
            self._ask_at_s = self._monotonic() + _TRY_AGAIN_S
            # Where the right was taken away later, the leader that was known then is believed.
            may_not_ask = self._leader == NOBODY
            self._tell(error)
        except (KafkaError, OSError) as error:
            self._unanswered = self._stored.failed(error)
        self._may_not_ask = may_not_ask

    def _tell(self, error: Exception) -> None:
        if not self._has_told:
            self._has_told = True
            self._on_trouble(
                "the broker does not say which producer leads, so every command in a transaction "
                f"counts ({type(error).__name__}): give this principal Describe on the "
                f"transactional id {self._transactional_id}"
            )


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
