"""Writes how far each partition is carried to a Kafka group, for the tools that show lag.

Information only: the ledger in the lake decides where a partition goes on. Nobody joins the group,
so several processes can write the offsets of different partitions. No call blocks: offsets whose
write failed are kept, and sent again with newer ones.

A write that fails takes its client with it. librdkafka goes on with a request to a coordinator that
has timed out, and aborts the whole process when the coordinator is back (librdkafka issue 4605).
"""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient

from penstock.kafka_io.client_properties import librdkafka_properties
from penstock.kafka_io.failures import as_penstock_error, kafka_failures
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings


class GroupOffsets:
    def __init__(
        self, kafka: KafkaSettings, group: str, *, on_failure: Callable[[str], None]
    ) -> None:
        self._kafka = kafka
        self._group = group
        self._on_failure = on_failure
        self._lock = threading.Condition()
        self._pending: dict[TopicPartition, int] = {}
        self._sent: dict[TopicPartition, int] | None = None
        self._has_failed = False
        self._client = self._connected()

    def _connected(self) -> AdminClient:
        with kafka_failures(self._kafka, "connecting"):
            return AdminClient(librdkafka_properties(self._kafka))

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Send these and those that failed before; only one write is under way at a time."""
        with self._lock:
            self._pending |= offsets
            if self._sent is not None or not self._pending:
                return
            self._sent, self._pending = self._pending, {}
            rows = [
                ClientPartition(one.topic, one.partition, offset)
                for one, offset in sorted(self._sent.items())
            ]
            has_failed, self._has_failed = self._has_failed, False
        if has_failed:
            self._client = self._connected()
        futures = self._client.alter_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(self._group, rows)],
            request_timeout=self._kafka.answer_timeout,
        )
        for future in futures.values():
            future.add_done_callback(self._done)

    def forget(self, partition: TopicPartition) -> None:
        """Another consumer owns the partition now: do not send an offset that still waits."""
        with self._lock:
            self._pending.pop(partition, None)

    def wait(self, timeout_s: float) -> None:
        """Until no write is under way, or the time has passed."""
        with self._lock:
            self._lock.wait_for(lambda: self._sent is None, timeout_s)

    def finish(self, timeout_s: float) -> None:
        """Send what is left and wait for it, up to `timeout_s`."""
        self.wait(timeout_s / 2)
        self.write({})
        self.wait(timeout_s / 2)

    def _done(self, future: Future[Any]) -> None:
        failed, has_failed = "", False
        refused: set[TopicPartition] = set()
        try:
            for row in future.result().topic_partitions:
                if row.error is not None:
                    refused.add(TopicPartition(row.topic, row.partition))
                    failed = str(as_penstock_error(row.error, self._kafka, "writing group offsets"))
        except KafkaException as raised:
            failed = str(as_penstock_error(raised.args[0], self._kafka, "writing group offsets"))
            refused, has_failed = set(self._sent or {}), True
        with self._lock:
            kept = {one: offset for one, offset in (self._sent or {}).items() if one in refused}
            self._pending = {**kept, **self._pending}
            self._sent = None
            self._has_failed = has_failed
            self._lock.notify_all()
        if failed:
            self._on_failure(failed)
