"""Looks up where logs begin and end. What is wrong with one partition stays with that partition.

All partitions are asked about together, but only those that have a leader. The client keeps asking
the leader it once knew, so each look-up would last a whole time-out after that broker died: leaders
are read again every few seconds, and whenever a look-up failed. A partition without a leader,
without the right to describe it, or on a failed log directory is a failure in the result, and costs
the others no time.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from penstock.errors import PenstockError, UnreachableError
from penstock.kafka_io.failures import (
    NoLeaderError,
    TopicMissingError,
    as_penstock_error,
    kafka_failures,
    unanswered,
)
from penstock.kafka_io.told_errors import ToldErrors
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings

# How long it is believed that leaders are still there, while no look-up fails.
_LEADERS_FRESH_S = 5.0
# How often a partition without a leader is asked for again by a caller who waits for one.
_ELECTION_WAIT_S = 0.2
# The client ends a request at its time-out; this is for the moment until it says so.
CLIENT_MARGIN_S = 5.0


class LogPosition(Enum):
    START = "start"
    END = "end"
    # The end for a reader of committed records: before the first open transaction.
    STABLE_END = "stable_end"


@dataclass(frozen=True, slots=True)
class OffsetLookup:
    """Each partition asked for is in one of the two."""

    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    failures: Mapping[TopicPartition, PenstockError] = field(default_factory=dict)
    # The epoch of the leader that answered, where it named one.
    leader_epochs: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Leaders:
    """What the cluster said at one moment; -1 for a partition without a leader."""

    read_at_s: float
    by_topic: Mapping[str, Mapping[int, int]]

    def of(self, partition: TopicPartition) -> int | None:
        """None for a partition that was not in the answer."""
        return self.by_topic.get(partition.topic, {}).get(partition.partition)


class OffsetLookups:
    """Remembers for a few seconds which partitions have a leader.

    A look-up that no broker answered takes its client with it: librdkafka may abort the whole
    process when a late answer to such a request arrives (librdkafka issue 4605).
    """

    def __init__(
        self,
        connect: Callable[[], AdminClient],
        kafka: KafkaSettings,
        told: ToldErrors | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`told` is what the clients tell that `connect` makes."""
        self._connect = connect
        self._told = told or ToldErrors(kafka)
        self._connected: AdminClient | None = None
        self._kafka = kafka
        self._monotonic = monotonic
        self._leaders: _Leaders | None = None

    @property
    def _client(self) -> AdminClient:
        if self._connected is None:
            self._connected = self._connect()
        return self._connected

    def look_up(
        self,
        partitions: Iterable[TopicPartition],
        position: LogPosition,
        *,
        wait_for_leaders_s: float = 0.0,
    ) -> OffsetLookup:
        """Every partition once; one without a leader again, for as long as the caller waits."""
        deadline_s = self._monotonic() + wait_for_leaders_s
        offsets: dict[TopicPartition, int] = {}
        failures: dict[TopicPartition, PenstockError] = {}
        epochs: dict[TopicPartition, int] = {}
        left = set(partitions)
        while left:
            self._look_up_once(left, position, offsets, failures, epochs)
            left = {one for one in left if isinstance(failures.get(one), NoLeaderError)}
            if not left or self._monotonic() >= deadline_s:
                break
            time.sleep(_ELECTION_WAIT_S)  # brokers do not announce an election
        return OffsetLookup(offsets, failures, epochs)

    def _look_up_once(
        self,
        partitions: set[TopicPartition],
        position: LogPosition,
        offsets: dict[TopicPartition, int],
        failures: dict[TopicPartition, PenstockError],
        epochs: dict[TopicPartition, int],
    ) -> None:
        leaders = self._known_leaders(partitions)
        led = [one for one in sorted(partitions) if leaders[one] >= 0]
        answers = self._ask(led, position)  # under way while reasons are looked for
        failed = self._reasons(partitions - set(led))
        is_unanswered = False
        for one, future in answers.items():
            try:
                answer = future.result(self._kafka.answer_timeout + CLIENT_MARGIN_S)
            except (KafkaException, TimeoutError) as raised:
                failed[one] = self._error(raised, one)
                # Of the unreachable, only a missing leader is an answer.
                is_unanswered |= type(failed[one]) is UnreachableError
                continue
            if answer.offset < 0:  # what the client returns, without an error, at a time-out
                is_unanswered = True
                failed[one] = UnreachableError(f"The leader of {one} did not answer in time.")
            else:
                offsets[one] = int(answer.offset)
                if answer.leader_epoch is not None and answer.leader_epoch >= 0:
                    epochs[one] = int(answer.leader_epoch)
                failures.pop(one, None)
        failures |= failed
        if failed:
            self._leaders = None  # a leader may have moved
        if is_unanswered:
            self._connected = None

    def _known_leaders(self, partitions: set[TopicPartition]) -> dict[TopicPartition, int]:
        """The leader of each partition, -1 where there is none."""
        leaders, now_s = self._leaders, self._monotonic()
        if (
            leaders is None
            or now_s - leaders.read_at_s >= _LEADERS_FRESH_S
            or any(leaders.of(one) is None for one in partitions)  # it may be new
        ):
            leaders = self._read_leaders(now_s)
        found = {one: leaders.of(one) for one in partitions}
        return {one: -1 if leader is None else leader for one, leader in found.items()}

    def _read_leaders(self, now_s: float) -> _Leaders:
        doing = "asking for metadata"
        with kafka_failures(self._kafka, doing):
            topics = self._told.first_answer(
                lambda wait_s: self._client.list_topics(timeout=wait_s),
                lambda: self._client.poll(0),
                doing,
            ).topics
        by_topic = {
            name: {number: one.leader for number, one in topic.partitions.items()}
            for name, topic in topics.items()
        }
        self._leaders = _Leaders(now_s, by_topic)
        return self._leaders

    def _ask(
        self, partitions: list[TopicPartition], position: LogPosition
    ) -> dict[TopicPartition, Future[Any]]:
        if not partitions:
            return {}
        spec = OffsetSpec.earliest() if position is LogPosition.START else OffsetSpec.latest()
        isolation = (
            IsolationLevel.READ_COMMITTED
            if position is LogPosition.STABLE_END
            else IsolationLevel.READ_UNCOMMITTED
        )
        futures = self._client.list_offsets(
            {ClientPartition(one.topic, one.partition): spec for one in partitions},
            isolation_level=isolation,
            request_timeout=self._kafka.answer_timeout,
        )
        return {TopicPartition(one.topic, one.partition): future for one, future in futures.items()}

    def _reasons(self, partitions: set[TopicPartition]) -> dict[TopicPartition, PenstockError]:
        """Why partitions have no leader. A topic one may not describe is not in the metadata."""
        if not partitions:
            return {}
        futures = self._client.describe_topics(
            TopicCollection(sorted({one.topic for one in partitions})),
            request_timeout=self._kafka.answer_timeout,
        )
        reasons: dict[TopicPartition, PenstockError] = {}
        for one in sorted(partitions):
            try:
                found = futures[one.topic].result(self._kafka.answer_timeout + CLIENT_MARGIN_S)
            except (KafkaException, TimeoutError) as raised:
                reasons[one] = self._error(raised, one)
                continue
            if one.partition >= len(found.partitions):
                reasons[one] = TopicMissingError(f"Kafka has no partition {one}.")
            else:
                reasons[one] = NoLeaderError(
                    f"No broker leads {one} now.",
                    remedy="It passes when an election ends; if it lasts, a broker is down.",
                )
        return reasons

    def _error(
        self, raised: KafkaException | TimeoutError, partition: TopicPartition
    ) -> PenstockError:
        doing = f"looking up offsets of {partition}"
        if isinstance(raised, TimeoutError):
            return unanswered(self._kafka, doing)
        error: KafkaError = raised.args[0]
        if error.code() == KafkaError._NOENT:  # the client found no leader
            return NoLeaderError(f"No broker leads {partition} now ({doing}).")
        return as_penstock_error(error, self._kafka, doing)
