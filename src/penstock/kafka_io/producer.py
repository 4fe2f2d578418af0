"""Sends records to chosen partitions, as fast as librdkafka can, and says what arrived.

Order and no duplicates within a partition come from idempotence and `acks=all`. A full queue makes
the sender wait, never drop. A topic or partition that was only just made is not known everywhere at
once: it is waited for.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from penstock.errors import PenstockError
from penstock.kafka_io.client_properties import librdkafka_properties
from penstock.kafka_io.failures import as_penstock_error, kafka_failures
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings

# (error in our words or None, payload bytes that arrived)
Delivered: TypeAlias = Callable[[Exception | None, int], None]
Headers: TypeAlias = Sequence[tuple[str, bytes]]
_ROOM_WAIT_S = 0.05
_KNOWN_WAIT_S = 0.2
_NOT_YET_KNOWN = {
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
}


class NotThereError(PenstockError):
    """A topic or partition did not come to be known in time."""


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
            except KafkaException as raised:
                if raised.args[0].code() not in _NOT_YET_KNOWN:
                    raise as_penstock_error(
                        raised.args[0], self._kafka, f"writing to {topic}"
                    ) from raised
                self.wait_until_known([TopicPartition(topic, partition)])
            else:
                return

    def wait_until_known(
        self, partitions: Iterable[TopicPartition], timeout_s: float | None = None
    ) -> None:
        """Until this producer's own view of the cluster has all of them."""
        patience_s = self._kafka.answer_timeout if timeout_s is None else timeout_s
        deadline_s = time.monotonic() + patience_s
        missing = set(partitions)
        while True:
            with kafka_failures(self._kafka, "asking for metadata"):
                seen = self._producer.list_topics(timeout=self._kafka.answer_timeout).topics
            missing = {one for one in missing if not _is_led(seen, one)}
            if not missing:
                return
            if time.monotonic() >= deadline_s:
                raise NotThereError(
                    f"Kafka knows no partition {min(missing)}, or it has no leader.",
                    remedy="Does the topic exist, with as many partitions?",
                )
            time.sleep(_KNOWN_WAIT_S)

    def _report(self, on_delivery: Delivered) -> Callable[[KafkaError | None, Message], None]:
        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                on_delivery(None, len(message.value() or b"") + len(message.key() or b""))
            else:
                on_delivery(
                    as_penstock_error(error, self._kafka, f"writing to {message.topic()}"), 0
                )

        return delivered

    def poll(self, timeout_s: float = 0.0) -> None:
        """Let delivery reports come in."""
        self._producer.poll(timeout_s)

    def flush(self, timeout_s: float) -> int:
        """Wait for what is queued; how many records are still on their way afterwards."""
        return int(self._producer.flush(timeout_s))


def _is_led(topics: Any, wanted: TopicPartition) -> bool:
    topic = topics.get(wanted.topic)
    found = None if topic is None else topic.partitions.get(wanted.partition)
    return found is not None and found.leader >= 0
