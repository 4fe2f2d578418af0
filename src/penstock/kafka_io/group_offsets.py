"""Writes how far each partition is carried to a Kafka group, for the tools that show lag.

Information only: the ledger in the lake decides where a partition goes on. Nobody joins the group,
so several processes can write the offsets of different partitions. No call blocks: offsets whose
write failed are kept, and sent again with newer ones.

It is a consumer client that writes, not an administrator: librdkafka aborts the whole process when
an administrator's request to a coordinator has timed out and the coordinator comes back
(librdkafka issue 4605).
"""

import time
from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from penstock.kafka_io.client_properties import librdkafka_properties
from penstock.kafka_io.failures import as_penstock_error, kafka_failures
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings

_DOING = "writing group offsets"
# How long one look for the answer may take, while somebody waits for it.
_LOOK_S = 0.1


class GroupOffsets:
    """Used by one thread."""

    def __init__(
        self, kafka: KafkaSettings, group: str, *, on_failure: Callable[[str], None]
    ) -> None:
        self._kafka = kafka
        self._on_failure = on_failure
        self._pending: dict[TopicPartition, int] = {}
        self._sent: dict[TopicPartition, int] | None = None
        answer_timeout_ms = int(kafka.answer_timeout * 1000)
        with kafka_failures(kafka, "connecting"):
            self._client = Consumer(
                {
                    **librdkafka_properties(kafka),
                    "group.id": group,
                    "enable.auto.commit": False,
                    # How long a write waits for a coordinator; then for its answer.
                    "session.timeout.ms": answer_timeout_ms,
                    "socket.timeout.ms": answer_timeout_ms,
                    "on_commit": self._answered,
                }
            )

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Send these and those that failed before; only one write is under way at a time."""
        self._pending |= offsets
        self._client.poll(0)  # calls `_answered`
        if self._sent is not None or not self._pending:
            return
        self._sent, self._pending = self._pending, {}
        rows = [
            ClientPartition(one.topic, one.partition, offset)
            for one, offset in sorted(self._sent.items())
        ]
        try:
            self._client.commit(offsets=rows, asynchronous=True)
        except KafkaException as raised:
            self._answered(raised.args[0], [])

    def forget(self, partition: TopicPartition) -> None:
        """Another consumer owns the partition now: do not send an offset that still waits."""
        self._pending.pop(partition, None)

    def wait(self, timeout_s: float) -> None:
        """Until no write is under way, or the time has passed."""
        deadline_s = time.monotonic() + timeout_s
        while self._sent is not None and time.monotonic() < deadline_s:
            self._client.poll(_LOOK_S)

    def finish(self, timeout_s: float) -> None:
        """Send what is left and wait for it, up to `timeout_s`."""
        self.wait(timeout_s / 2)
        self.write({})
        self.wait(timeout_s / 2)

    def _answered(self, error: KafkaError | None, rows: Sequence[ClientPartition]) -> None:
        sent, self._sent = self._sent or {}, None
        errors = {TopicPartition(row.topic, row.partition): row.error for row in rows if row.error}
        refused = sent.keys() & errors.keys()
        if error is not None and not refused:  # of all of them
            refused = set(sent)
        if refused:
            self._pending = {one: sent[one] for one in refused} | self._pending
            reason = error or next(iter(errors.values()))
            self._on_failure(str(as_penstock_error(reason, self._kafka, _DOING)))
