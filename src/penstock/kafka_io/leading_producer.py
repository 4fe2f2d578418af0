"""The controller's producer: every controller of a group writes under one transactional id.

`lead` takes the id over, and the broker then fences the controller that had it: its next
transaction fails. No lease and no clock is involved. `lead` also writes a claim, whose offset is
the controller's epoch: epochs only rise.

A connection that was lost is made anew, which takes the id over again. `has_successor` is asked
before and after: a controller that stood still must not take the id from the one that followed it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from penstock.errors import PenstockError
from penstock.kafka_io.client_properties import librdkafka_properties
from penstock.kafka_io.failures import as_penstock_error, kafka_failures
from penstock.settings.sections import KafkaSettings

# No setting: a transaction takes milliseconds, and is repeated after it failed. A successor ends
# the open one of its predecessor at once, whatever this is.
TRANSACTION_TIMEOUT_S = 10.0
_FENCING = {
    KafkaError._FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_ID_MAPPING,
}


@dataclass(frozen=True, slots=True)
class Outgoing:
    topic: str
    partition: int
    value: bytes
    headers: tuple[tuple[str, bytes], ...]
    key: bytes | None = None


class FencedError(PenstockError):
    """A newer controller has taken the transactional id over: this one must end."""

    exit_code = 8


class LeadingProducer:
    def __init__(
        self,
        kafka: KafkaSettings,
        transactional_id: str,
        *,
        has_successor: Callable[[], bool] = lambda: False,
    ) -> None:
        self._kafka = kafka
        self._transactional_id = transactional_id
        self._has_successor = has_successor
        self._producer: Any = None

    def lead(self, claim: Outgoing) -> int:
        """Take the id over; returns the offset of the claim, which is lower than any later one."""
        self._connect()
        offsets: list[int] = []

        def delivered(error: KafkaError | None, message: Any) -> None:
            if error is None:
                offsets.append(message.offset())

        self._transact([claim], delivered)
        if not offsets:
            raise PenstockError("Kafka did not report the offset of the claim to lead.")
        return offsets[0]

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Send all messages or none. FencedError is final; any other error means none was sent."""
        if messages:
            if self._producer is None:
                self._require_no_successor()
                self._connect()
                self._require_no_successor()
            self._transact(messages, None)

    def close(self) -> None:
        self._producer = None

    def _connect(self) -> None:
        with kafka_failures(self._kafka, "taking up leadership"):
            self._producer = Producer(
                {
                    **librdkafka_properties(self._kafka),
                    "transactional.id": self._transactional_id,
                    "transaction.timeout.ms": int(TRANSACTION_TIMEOUT_S * 1000),
                    "acks": "all",
                    "linger.ms": 0,
                    "compression.type": "none",
                }
            )
            self._producer.init_transactions(TRANSACTION_TIMEOUT_S)

    def _transact(self, messages: Sequence[Outgoing], on_delivery: Any) -> None:
        try:
            self._producer.begin_transaction()
            for one in messages:
                self._producer.produce(
                    one.topic,
                    one.value,
                    key=one.key,
                    partition=one.partition,
                    headers=list(one.headers),
                    on_delivery=on_delivery,
                )
            self._producer.commit_transaction(TRANSACTION_TIMEOUT_S)
        except BufferError as error:
            self._abandon()
            raise PenstockError("The controller's send queue is full.") from error
        except KafkaException as raised:
            self._failed(raised.args[0], raised)

    def _failed(self, error: KafkaError, raised: KafkaException) -> None:
        if error.code() in _FENCING:
            self._producer = None
            raise self._fenced() from raised
        self._abandon()
        raise as_penstock_error(error, self._kafka, "sending commands") from raised

    def _abandon(self) -> None:
        """Abort; if that fails, the next transaction begins with a new connection."""
        try:
            self._producer.abort_transaction(TRANSACTION_TIMEOUT_S)
        except KafkaException as raised:
            # A new connection takes the id over, and the broker then aborts what the old one left.
            self._producer = None
            if raised.args[0].code() in _FENCING:
                raise self._fenced() from raised

    def _require_no_successor(self) -> None:
        if self._has_successor():
            self._producer = None
            raise self._fenced()

    def _fenced(self) -> FencedError:
        return FencedError(
            "A newer controller leads this group, so the broker refuses this one.",
            remedy="If both were started by mistake, stop one of them. If no other controller of "
            "this group runs, another group's prefix and name make the same transactional id, "
            f"{self._transactional_id}: give that group another lake.group.",
        )
