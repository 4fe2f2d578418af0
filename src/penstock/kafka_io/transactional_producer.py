"""Writes records in transactions, and says of each transaction what became of it.

For the laboratory: the load of a topic whose producers use transactions. A commit whose answer did
not come is asked for again, so its outcome is nearly always known.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from confluent_kafka import KafkaException, Producer

from penstock.kafka_io.client_properties import librdkafka_properties
from penstock.settings.sections import KafkaSettings

_ASK_AGAIN_S = 0.2
_FULL_QUEUE_WAIT_S = 0.05


class TransactionOutcome(StrEnum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class KeyedRecord:
    topic: str
    partition: int
    key: bytes | None
    value: bytes


class TransactionalProducer:
    def __init__(
        self, kafka: KafkaSettings, transactional_id: str, *, patience_s: float, **properties: Any
    ) -> None:
        """`patience_s` is how long one transaction is tried while the brokers do not answer."""
        self._properties = {
            **librdkafka_properties(kafka),
            "transactional.id": transactional_id,
            "acks": "all",
            **properties,
        }
        self._answer_timeout_s = kafka.answer_timeout
        self._patience_s = patience_s
        self._producer: Any = None

    def transact(self, records: Iterable[KeyedRecord], *, is_committed: bool) -> TransactionOutcome:
        """Write all records in one transaction, and commit or abort it."""
        deadline_s = time.monotonic() + self._patience_s
        if not self._is_begun(records, deadline_s):
            self._producer = None
            # The next connection takes the id over, and the broker then aborts what is open.
            return TransactionOutcome.ABORTED
        wants_commit = is_committed
        while time.monotonic() < deadline_s:
            try:
                self._end(is_committed)
            except KafkaException as raised:
                error = raised.args[0]
                if error.txn_requires_abort():
                    is_committed = False
                elif not error.retriable():
                    break
                time.sleep(_ASK_AGAIN_S)  # the broker is away
            else:
                return TransactionOutcome.COMMITTED if is_committed else TransactionOutcome.ABORTED
        self._producer = None
        return TransactionOutcome.UNKNOWN if wants_commit else TransactionOutcome.ABORTED

    def _end(self, is_committed: bool) -> None:
        if is_committed:
            self._producer.commit_transaction(self._answer_timeout_s)
        else:
            self._producer.abort_transaction(self._answer_timeout_s)

    def _is_begun(self, records: Iterable[KeyedRecord], deadline_s: float) -> bool:
        try:
            if self._producer is None:
                self._connect(deadline_s)
            self._producer.begin_transaction()
            for one in records:
                self._queue(one)
        except KafkaException:
            return False
        return True

    def _connect(self, deadline_s: float) -> None:
        self._producer = Producer(self._properties)
        while True:
            try:
                self._producer.init_transactions(self._answer_timeout_s)
            except KafkaException as raised:
                if not raised.args[0].retriable() or time.monotonic() > deadline_s:
                    raise
                time.sleep(_ASK_AGAIN_S)  # the broker is away
            else:
                return

    def _queue(self, one: KeyedRecord) -> None:
        while True:
            try:
                self._producer.produce(one.topic, one.value, key=one.key, partition=one.partition)
            except BufferError:
                self._producer.poll(_FULL_QUEUE_WAIT_S)
            else:
                return
