"""Sends records to chosen partitions, and reports which ones were delivered.

Idempotence and `acks=all` keep the order within a partition and prevent duplicates. When the queue
is full the sender waits; nothing is dropped. A topic or partition that was just made is not known
to every broker at once: the sender waits for it too, until its leader answers. Else Kafka loses
records that it says it has: a leader that refuses the first batch of a new partition and takes the
second, which was on its way, then calls the first a duplicate.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient

from penstock.kafka_io.client_properties import librdkafka_properties
from penstock.kafka_io.failures import (
    MISSING,
    TopicMissingError,
    as_penstock_error,
    kafka_failures,
)
from penstock.kafka_io.offset_lookup import LogPosition, OffsetLookups
from penstock.kafka_io.told_errors import ToldErrors
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings

# (error or None, payload bytes that were delivered)
Delivered: TypeAlias = Callable[[Exception | None, int], None]
Headers: TypeAlias = Sequence[tuple[str, bytes]]
_FULL_QUEUE_WAIT_S = 0.05
_ASK_AGAIN_S = 0.2


class RecordProducer:
    def __init__(self, kafka: KafkaSettings, **properties: Any) -> None:
        self._kafka = kafka
        self._told = ToldErrors(kafka)
        with kafka_failures(kafka, "connecting"):
            self._producer = Producer(
                {
                    "acks": "all",
                    "enable.idempotence": True,
                    "linger.ms": 5,
                    **librdkafka_properties(kafka),
                    **self._told.properties,
                    **properties,
                }
            )
        self._lookups = OffsetLookups(self._administrator, kafka)

    def _administrator(self) -> AdminClient:
        with kafka_failures(self._kafka, "connecting"):
            return AdminClient(librdkafka_properties(self._kafka))

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
        """Queue one record; waits while the queue is full."""
        arguments: dict[str, Any] = {"partition": partition, "key": key}
        if headers:
            arguments["headers"] = list(headers)
        if on_delivery is not None:
            arguments["on_delivery"] = self._report(on_delivery)
        while True:
            try:
                self._producer.produce(topic, value, **arguments)
            except BufferError:
                self._producer.poll(_FULL_QUEUE_WAIT_S)
            except KafkaException as raised:
                if raised.args[0].code() not in MISSING:
                    raise as_penstock_error(
                        raised.args[0], self._kafka, f"writing to {topic}"
                    ) from raised
                self.wait_until_known([TopicPartition(topic, partition)])
            else:
                return

    def wait_until_known(
        self, partitions: Iterable[TopicPartition], timeout_s: float | None = None
    ) -> None:
        """Wait until the leader of every partition given is known, and answers for it.

        TopicMissingError after `timeout_s`, or after `kafka.answer_timeout` if it is None.
        """
        wait_s = self._kafka.answer_timeout if timeout_s is None else timeout_s
        deadline_s = time.monotonic() + wait_s
        missing = set(partitions)
        while True:
            seen = self._metadata().topics
            led = {one for one in missing if _is_led(seen, one)}
            missing -= self._lookups.look_up(led, LogPosition.END).offsets.keys()
            if not missing:
                return
            if time.monotonic() >= deadline_s:
                raise TopicMissingError(
                    f"Kafka has no partition {min(missing)}, or it has no leader.",
                    remedy="Check that the topic exists and has that many partitions.",
                )
            time.sleep(_ASK_AGAIN_S)  # brokers do not announce a new topic

    def _metadata(self) -> Any:
        doing = "asking for metadata"
        with kafka_failures(self._kafka, doing):
            return self._told.first_answer(
                lambda wait_s: self._producer.list_topics(timeout=wait_s),
                lambda: self._producer.poll(0),
                doing,
            )

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
        """Handle delivery reports that have arrived."""
        self._producer.poll(timeout_s)

    def flush(self, timeout_s: float) -> int:
        """Wait for queued records; returns how many are still undelivered."""
        return int(self._producer.flush(timeout_s))


def _is_led(topics: Any, wanted: TopicPartition) -> bool:
    topic = topics.get(wanted.topic)
    found = None if topic is None else topic.partitions.get(wanted.partition)
    return found is not None and found.leader >= 0
