"""Reads one consumer's mailbox: its partition of the controller topic and of the query topic.

By plain assignment, committed messages only, no group. A query is handed on only when every command
that was in the log when the query was read has been handed on before it: they travel on two topics,
and their order must not be left to chance.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from penstock.errors import PenstockError
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.client_properties import librdkafka_properties
from penstock.kafka_io.failures import as_penstock_error, kafka_failures
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings

# Older mail than this is not read at a start: it was for lives long gone, and would be refused.
BACKLOG_MAX = 1_000
QUERY_HELD_MAX_S = 5.0
_LOOK_AGAIN_S = 0.1
_NOT_KNOWN_YET = {
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
}
_PASSING = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._RESOLVE,
}


@dataclass(frozen=True, slots=True)
class Letter:
    """What lay in the mailbox, as it was written."""

    topic: str
    offset: int
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class MailboxTrouble:
    """Something a person should know; reading goes on."""

    explanation: str


class Mailbox:
    """One thread calls `read`; every call comes back within `timeout_s` or little more."""

    def __init__(
        self,
        kafka: KafkaSettings,
        commands: TopicPartition,
        queries: TopicPartition,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kafka = kafka
        self._commands = commands
        self._queries = queries
        self._monotonic = monotonic
        self._ends: dict[str, int] = {}
        self._administration = Administration(kafka)
        self._held: list[tuple[Letter, int, float]] = []
        self.positions: dict[TopicPartition, int] = {}
        with kafka_failures(kafka, "connecting"):
            self._consumer = Consumer(
                {
                    **librdkafka_properties(kafka),
                    "group.id": f"penstock-mailbox-{commands.partition}",  # joined by nobody
                    "enable.auto.commit": False,
                    "enable.auto.offset.store": False,
                    "auto.offset.reset": "error",
                    "isolation.level": "read_committed",
                    "enable.partition.eof": True,
                    "fetch.wait.max.ms": 500,
                    "fetch.message.max.bytes": 2 * 2**20,
                    "queued.max.messages.kbytes": 8 * 1024,
                }
            )

    def open(self, since: Mapping[TopicPartition, int]) -> None:
        """Begin where the last life stopped reading, but no more than a bound before the end."""
        starts = []
        for partition in (self._commands, self._queries):
            low, high = self._reach(partition)
            begin = max(low, high - BACKLOG_MAX)
            if low <= since.get(partition, -1) <= high:
                begin = max(begin, since[partition])
            self.positions[partition] = begin
            starts.append(ClientPartition(partition.topic, partition.partition, begin))
        self._consumer.assign(starts)

    def _reach(self, partition: TopicPartition) -> tuple[int, int]:
        """From where to where the mailbox reaches; one just made is known a moment later."""
        client = ClientPartition(partition.topic, partition.partition)
        deadline_s = self._monotonic() + self._kafka.answer_timeout
        with kafka_failures(self._kafka, f"opening the mailbox {partition}"):
            while True:
                try:
                    low, high = self._consumer.get_watermark_offsets(
                        client, timeout=self._kafka.answer_timeout
                    )
                except KafkaException as raised:
                    is_new = raised.args[0].code() in _NOT_KNOWN_YET
                    if not is_new or self._monotonic() > deadline_s:
                        raise
                    time.sleep(_LOOK_AGAIN_S)  # nothing tells us; asking is the only way to know
                    # The client remembers for long that it did not know a topic, unless told.
                    self._consumer.list_topics(timeout=self._kafka.answer_timeout)
                else:
                    return int(low), int(high)

    def read(self, timeout_s: float) -> list[Letter | MailboxTrouble]:
        """What has come; nothing when the time has passed."""
        released = self._release()
        if released:
            return released
        message = self._consumer.poll(min(timeout_s, 0.05) if self._held else timeout_s)
        if message is None:
            return []
        if message.error() is not None:
            return self._failed(message) + self._release()
        letter = Letter(
            topic=message.topic(),
            offset=message.offset(),
            value=message.value(),
            headers=tuple(message.headers() or ()),
        )
        partition = TopicPartition(message.topic(), message.partition())
        self.positions[partition] = letter.offset + 1
        if partition == self._queries:
            return self._hold(letter)
        self._ends[letter.topic] = letter.offset + 1
        return [letter, *self._release()]

    def close(self) -> None:
        self._consumer.close()

    def _hold(self, query: Letter) -> list[Letter | MailboxTrouble]:
        """Ask how far the commands reach now, and wait for them."""
        try:
            # Over a connection of its own: on the reader's it would stand behind a fetch that waits
            # for mail.
            end = self._administration.end_offsets([self._commands])[self._commands]
        except (PenstockError, KeyError) as error:
            return [MailboxTrouble(f"a query is dropped, it will be asked again: {error}")]
        self._held.append((query, end, self._monotonic() + QUERY_HELD_MAX_S))
        return self._release()

    def _release(self) -> list[Letter | MailboxTrouble]:
        reached = self._ends.get(self._commands.topic, self.positions.get(self._commands, 0))
        out: list[Letter | MailboxTrouble] = []
        kept = []
        for query, wanted, until_s in self._held:
            if reached >= wanted:
                out.append(query)
            elif self._monotonic() > until_s:
                # Answering now could be untrue; whoever asked asks again.
                out.append(MailboxTrouble("a query waited too long for the commands before it"))
            else:
                kept.append((query, wanted, until_s))
        self._held = kept
        return out

    def _failed(self, message: Any) -> list[Letter | MailboxTrouble]:
        error = message.error()
        code = error.code()
        if code == KafkaError._PARTITION_EOF:
            # Markers of transactions are no messages: only this tells that they were passed.
            self._ends[message.topic()] = message.offset()
            return []
        if code in {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}:
            return self._begin_again(message)
        said = as_penstock_error(error, self._kafka, "reading the mailbox")
        return [] if code in _PASSING else [MailboxTrouble(str(said))]

    def _begin_again(self, message: Any) -> list[Letter | MailboxTrouble]:
        """Retention was quicker, or the topic is another one: old epochs keep old mail harmless."""
        lost = TopicPartition(message.topic(), message.partition())
        # A partition in error takes no seek; assigning anew does.
        self._consumer.assign(
            [
                ClientPartition(
                    one.topic, one.partition, OFFSET_BEGINNING if one == lost else position
                )
                for one, position in sorted(self.positions.items())
            ]
        )
        self._ends.pop(message.topic(), None)
        explanation = f"mail in {message.topic()}-{message.partition()} was lost before it was read"
        return [MailboxTrouble(explanation)]
