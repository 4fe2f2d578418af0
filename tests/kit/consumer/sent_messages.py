"""What consumers have sent to the controller, for a test that plays it by hand.

"There is no such message" holds only when everything in the topic is read: a reader of a busy
machine may be far behind.
"""

import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from penstock.messages import Message, decode

# How long the end of the topic is asked for while a broker may be away.
END_ASKED_S = 5.0
READ_WITHIN_S = 180.0


class SentMessages:
    def __init__(self, servers: str, topic: str) -> None:
        self.messages: list[Message] = []
        self._place = TopicPartition(topic, 0, 0)
        self._read_to = 0
        self._reader = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "kit",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        self._reader.assign([self._place])

    def close(self) -> None:
        self._reader.close()

    def read_to_the_end(self) -> None:
        """Up to where the topic ends now; as far as can be read while the broker is away."""
        try:
            end = self._reader.get_watermark_offsets(self._place, timeout=END_ASKED_S)[1]
        except KafkaException:
            return
        deadline_s = time.monotonic() + READ_WITHIN_S
        while self._read_to < end:
            assert time.monotonic() < deadline_s, f"read to {self._read_to} of {end}"
            self.next_message()

    def next_message(self) -> Message | None:
        """Wait a second for it."""
        record: Any = self._reader.poll(1.0)
        if record is None:
            return None
        if record.error() is not None:
            if record.error().code() == KafkaError._PARTITION_EOF:
                self._read_to = max(self._read_to, record.offset())
            return None
        self._read_to = max(self._read_to, record.offset() + 1)
        message = decode(record.value(), record.headers())
        assert isinstance(message, Message), message
        self.messages.append(message)
        return message
