"""Sends the consumer's messages to the consumer topic, which the controller reads."""

from typing import Any

from penstock.kafka_io.producer import RecordProducer
from penstock.messages import Message, encode
from penstock.settings import Settings

ONLY_PARTITION = 0
# Reports that pile up while Kafka is away would only tell of the past.
UNDELIVERED_MAX = 3


class OutboundMessages:
    def __init__(self, settings: Settings, log: Any) -> None:
        self._topic = settings.topics.names.consumer
        self._group = settings.lake.group
        self._log = log
        self._undelivered = 0
        self._producer = RecordProducer(settings.kafka, **{"linger.ms": 1})

    @property
    def are_stuck(self) -> bool:
        """Whether so many messages are undelivered that a further report is of no use."""
        self._producer.poll()
        return self._undelivered >= UNDELIVERED_MAX

    def send(self, message: Message) -> None:
        encoded = encode(message, group=self._group)
        self._undelivered += 1
        self._producer.send(
            self._topic,
            ONLY_PARTITION,
            encoded.value,
            headers=encoded.headers,
            on_delivery=self._delivered,
        )
        self._producer.poll()

    def _delivered(self, error: Exception | None, _: int) -> None:
        self._undelivered -= 1
        if error is not None:
            self._log.warning("message_lost", error=str(error))

    def flush(self, timeout_s: float) -> None:
        left = self._producer.flush(timeout_s)
        if left:
            self._log.warning("messages_unsent", left=left)
