"""Writes the controller's heartbeats, beside its transactions.

To its own partition, where a standby listens, and to the consumers' topic, where reports are.

Like a consumer's reports they wait for nothing: a broker that is away never holds the loop up here.
"""

from typing import Any

from penstock.errors import PenstockError
from penstock.kafka_io.producer import RecordProducer
from penstock.messages import ControllerHeartbeat, encode
from penstock.settings import Settings

# A heartbeat that took longer would tell of the past: the core has sent another one by then.
_DELIVERED_WITHIN_MS = 10_000


class Heartbeats:
    def __init__(self, settings: Settings, log: Any) -> None:
        self._topics = (settings.topics.names.controller, settings.topics.names.consumer)
        self._group = settings.lake.group
        self._log = log
        self._is_lost = False
        self._producer = RecordProducer(
            settings.kafka,
            **{
                "linger.ms": 0,
                "message.timeout.ms": _DELIVERED_WITHIN_MS,
                # One that comes twice or late is ignored, so no order has to be kept.
                "enable.idempotence": False,
            },
        )

    def send(self, message: ControllerHeartbeat) -> None:
        encoded = encode(message, group=self._group)
        self._producer.poll()
        for topic in self._topics:
            try:
                self._producer.send(
                    topic,
                    message.mailbox,
                    encoded.value,
                    headers=encoded.headers,
                    on_delivery=self._delivered,
                )
            except PenstockError as error:
                self._delivered(error, 0)

    def _delivered(self, error: Exception | None, _: int) -> None:
        if error is not None and not self._is_lost:
            self._log.warning("heartbeat_lost", error=str(error))
        self._is_lost = error is not None
