"""Reads one consumer's mailbox: its partition of the controller topic and of the query topic.

Commands and queries travel on two topics, so Kafka does not keep their order. A query is handed on
only after every command that was in the log when the query was read: its answer then says what
those commands did.

What the leading controller did not write is handed on as `NotFromLeader`: whoever may write to the
topic could otherwise command.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from penstock.errors import PenstockError
from penstock.kafka_io.administration import Administration
from penstock.kafka_io.offset_lookup import LogPosition
from penstock.kafka_io.partition_reader import (
    FailureKind,
    KafkaRecord,
    Outcome,
    PartitionReader,
    ReadFailure,
)
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings

# A new incarnation reads no more than this many old messages: they were meant for earlier
# incarnations, and would be refused.
BACKLOG_MAX = 1_000
# A query that waits longer for its commands is dropped; the controller asks again.
# No setting: it decides nothing, because `controller.command_resend` repeats the query.
QUERY_HELD_MAX_S = 5.0
# How soon a held query is looked at again.
_HELD_WAIT_S = 0.05


@dataclass(frozen=True, slots=True)
class MailboxTrouble:
    """Something an operator should know; reading goes on."""

    explanation: str


@dataclass(frozen=True, slots=True)
class NotFromLeader:
    """A record that the leading controller did not write."""

    record: KafkaRecord


Item: TypeAlias = KafkaRecord | MailboxTrouble | NotFromLeader
# Whether the leading controller wrote a record; raises PenstockError while nobody knows.
IsFromLeader: TypeAlias = Callable[[TopicPartition, int], bool]


@dataclass(frozen=True, slots=True)
class _HeldQuery:
    query: KafkaRecord
    commands_end: int
    until_s: float


class Mailbox:
    """One thread calls `read`; every call comes back within `timeout_s` or little more."""

    def __init__(
        self,
        kafka: KafkaSettings,
        commands: TopicPartition,
        queries: TopicPartition,
        *,
        is_from_leader: IsFromLeader = lambda *_: True,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kafka = kafka
        self._is_from_leader = is_from_leader
        self._commands = commands
        self._queries = queries
        self._monotonic = monotonic
        self._held: list[_HeldQuery] = []
        # A connection of its own: on the reader's, a question waits behind a fetch that waits for
        # messages.
        self._administration = Administration(kafka)
        self._reader = PartitionReader(
            kafka,
            {"fetch.message.max.bytes": 2 * 2**20, "queued.max.messages.kbytes": 8 * 1024},
        )

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The next offset of each topic, where it is known; a later incarnation goes on there."""
        return {one: offset for one, offset in self._reader.positions.items() if offset >= 0}

    def open(self, since: Mapping[TopicPartition, int]) -> None:
        """Go on where the last incarnation stopped, but at most BACKLOG_MAX before the end."""
        starts = {}
        for partition in (self._commands, self._queries):
            log = self._reader.log_range(partition, wait_s=self._kafka.answer_timeout)
            starts[partition] = max(log.start, log.end - BACKLOG_MAX)
            if log.start <= since.get(partition, -1) <= log.end:
                starts[partition] = max(starts[partition], since[partition])
        self._reader.assign(starts)

    def read(self, timeout_s: float) -> list[Item]:
        """What has come; nothing when the time has passed."""
        released = self._release()
        if released:
            return released
        items: list[Item] = []
        for outcome in self._reader.read(min(timeout_s, _HELD_WAIT_S) if self._held else timeout_s):
            items += self._taken(outcome)
        return items + self._release()

    def close(self) -> None:
        self._reader.close()

    def _taken(self, outcome: Outcome) -> list[Item]:
        if isinstance(outcome, ReadFailure):
            return self._failed(outcome)
        if not isinstance(outcome, KafkaRecord):
            return []
        is_query = outcome.partition == self._queries
        try:
            if not self._is_from_leader(outcome.partition, outcome.offset):
                return [NotFromLeader(outcome)]
        except PenstockError as error:
            return [_dropped("query" if is_query else "command", error)]
        return self._hold(outcome) if is_query else [outcome]

    def _hold(self, query: KafkaRecord) -> list[Item]:
        """Ask how far the commands reach now, and wait for them."""
        try:
            found = self._administration.look_up_offsets([self._commands], LogPosition.END)
        except PenstockError as error:
            return [_dropped("query", error)]
        if self._commands in found.failures:
            return [_dropped("query", found.failures[self._commands])]
        until_s = self._monotonic() + QUERY_HELD_MAX_S
        self._held.append(_HeldQuery(query, found.offsets[self._commands], until_s))
        return []

    def _release(self) -> list[Item]:
        reached = self._reader.positions.get(self._commands, 0)
        released: list[Item] = []
        kept = []
        for held in self._held:
            if reached >= held.commands_end:
                released.append(held.query)
            elif self._monotonic() > held.until_s:
                # An answer now could be untrue.
                explanation = "a query waited too long for the commands before it"
                released.append(MailboxTrouble(f"{explanation}; the controller asks again"))
            else:
                kept.append(held)
        self._held = kept
        return released

    def _failed(self, failure: ReadFailure) -> list[Item]:
        if failure.kind is FailureKind.PASSING:
            return []
        if failure.kind is FailureKind.OFFSET_GONE and failure.partition is not None:
            # Retention was quicker, or the topic was made again. Old messages do no harm: their
            # epochs are old.
            self._reader.restart(failure.partition)
            return [MailboxTrouble(f"messages in {failure.partition} were lost before being read")]
        return [MailboxTrouble(str(failure.error))]


def _dropped(what: str, error: PenstockError) -> MailboxTrouble:
    return MailboxTrouble(f"a {what} was dropped, the controller sends it again: {error}")
