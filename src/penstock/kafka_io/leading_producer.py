"""The controller's voice: transactional, under one fixed name: only the newest one is heard.

Taking the name up (`lead`) fences whoever had it at the broker itself: the older controller's next
transaction fails, whatever it believes. Leases and clocks have no part in it. The offset of the
claim that is written then is the controller's epoch: it can only rise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from penstock.errors import PenstockError
from penstock.kafka_io.client_properties import librdkafka_properties
from penstock.kafka_io.failures import as_penstock_error, kafka_failures
from penstock.settings.sections import KafkaSettings

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


class FencedError(PenstockError):
    """Another controller has taken the name up since: this one must end."""

    exit_code = 8


class LeadingProducer:
    def __init__(self, kafka: KafkaSettings, transactional_id: str) -> None:
        self._kafka = kafka
        self._transactional_id = transactional_id
        self._producer: Any = None

    def lead(self, claim: Outgoing) -> int:
        """Take the name up; the offset of the claim, which no later claim can be below."""
        self._connect()
        offsets: list[int] = []

        def delivered(error: KafkaError | None, message: Any) -> None:
            if error is None:
                offsets.append(message.offset())

        self._transact([claim], delivered)
        if not offsets:
            raise PenstockError("Kafka did not say where the claim to lead was written.")
        return offsets[0]

    def send(self, letters: Sequence[Outgoing]) -> None:
        """All of them or none. FencedError is final; any other error means: not sent."""
        if letters:
            if self._producer is None:
                self._connect()
            self._transact(letters, None)

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

    def _transact(self, letters: Sequence[Outgoing], on_delivery: Any) -> None:
        try:
            self._producer.begin_transaction()
            for one in letters:
                self._producer.produce(
                    one.topic,
                    one.value,
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
            raise FencedError(
                "A newer controller of this group leads: the broker refuses this one.",
                remedy="Nothing to do if that is meant; else stop one of the two.",
            ) from raised
        self._abandon()
        raise as_penstock_error(error, self._kafka, "sending commands") from raised

    def _abandon(self) -> None:
        """Abort if it can be; else begin with a new connection, which settles it at the broker."""
        try:
            self._producer.abort_transaction(TRANSACTION_TIMEOUT_S)
        except KafkaException:
            # The broker ends what an older connection of ours left open when we take the name up.
            self._producer = None
