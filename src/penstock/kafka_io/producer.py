"""Sends records to chosen partitions, as fast as librdkafka can, and says what arrived.

Order and no duplicates within a partition come from idempotence and `acks=all`. A full queue makes
the sender wait, never drop.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from confluent_kafka import KafkaError, Message, Producer

from penstock.kafka_io.client_properties import librdkafka_properties
from penstock.kafka_io.failures import in_our_words, kafka_failures
from penstock.settings.sections import KafkaSettings

# (error in our words or None, payload bytes that arrived)
Delivered: TypeAlias = Callable[[Exception | None, int], None]
Headers: TypeAlias = Sequence[tuple[str, bytes]]
_ROOM_WAIT_S = 0.05


class RecordProducer:
    def __init__(self, kafka: KafkaSettings, **properties: Any) -> None:
        self._kafka = kafka
        with kafka_failures(kafka, "connecting"):
            self._producer = Producer(
                {
                    "acks": "all",
                    "enable.idempotence": True,
                    "linger.ms": 5,
                    **librdkafka_properties(kafka),
                    **properties,
                }
            )

    def send(
        self,
        topic: str,
        partition: int,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Headers = (),
        on_delivery: Delivered | None = None,
    ) -> None:
        """Queue one record; waits for room when the queue is full."""
        arguments: dict[str, Any] = {"partition": partition, "key": key}
        if headers:
            arguments["headers"] = list(headers)
        if on_delivery is not None:
            arguments["on_delivery"] = self._report(on_delivery)
        while True:
            try:
                self._producer.produce(topic, value, **arguments)
            except BufferError:
                self._producer.poll(_ROOM_WAIT_S)
            else:
                return

    def _report(self, on_delivery: Delivered) -> Callable[[KafkaError | None, Message], None]:
        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                on_delivery(None, len(message.value() or b"") + len(message.key() or b""))
            else:
                on_delivery(in_our_words(error, self._kafka, f"writing to {message.topic()}"), 0)

        return delivered

    def poll(self, timeout_s: float = 0.0) -> None:
        """Let delivery reports come in."""
        self._producer.poll(timeout_s)

    def flush(self, timeout_s: float) -> int:
        """Wait for what is queued; how many records are still on their way afterwards."""
        return int(self._producer.flush(timeout_s))
