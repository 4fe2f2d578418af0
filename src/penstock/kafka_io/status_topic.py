"""Writes the group's status to `<prefix>-status`, and reads the newest one from it.

`penstock status` and all that shows a running group use the reader, from any machine. It goes back
from the end of the topic only as far as one whole status needs, then follows.

    with closing(StatusReader(kafka, topics, group)) as reader:
        seen = reader.newest()               # at once
        seen = reader.newest(wait_s=2.0)     # as soon as there is another one, or after 2 s
"""

import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from penstock.kafka_io.failures import TopicMissingError, unanswered
from penstock.kafka_io.partition_reader import (
    EndReached,
    FailureKind,
    KafkaRecord,
    PartitionReader,
    ReadFailure,
)
from penstock.kafka_io.producer import RecordProducer
from penstock.messages.status_records import StatusAssembler, StatusPart
from penstock.model import TopicPartition
from penstock.settings.sections import KafkaSettings, TopicsSettings

# A status that could not be written by then is dropped: newer ones have followed.
_DELIVERY_TIMEOUT_S = 5.0
# How many records before the end the search begins, and how many times further back it goes when
# they hold no whole status.
_RECORDS_BACK_FIRST, _RECORDS_BACK_FACTOR = 2, 8
_RECORDS_AT_ONCE = 100
_WAIT_S = 0.5
# Whether anybody listens at all shows at once; the client itself would try for a long time.
_CONNECT_TIMEOUT_S = 2.0


def require_listening(kafka: KafkaSettings) -> None:
    """UnreachableError when nothing listens at any of the servers. Takes a moment, if so."""
    for server in kafka.bootstrap_servers.split(","):
        host, _, port = server.strip().rpartition(":")
        with suppress(OSError, ValueError, UnicodeError):
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_TIMEOUT_S).close()
            return
    raise unanswered(kafka, "reading the status of the group")


class StatusPublisher:
    def __init__(
        self,
        kafka: KafkaSettings,
        topics: TopicsSettings,
        *,
        on_change: Callable[[Exception | None], None] = lambda _: None,
    ) -> None:
        """`on_change` gets an error when writing begins to fail, and None when it works again."""
        self._topic = topics.names.status
        self._on_change = on_change
        self._is_failing = False
        self._producer = RecordProducer(
            kafka,
            **{
                "linger.ms": 0,
                "compression.type": "none",  # the parts are compressed
                "delivery.timeout.ms": int(_DELIVERY_TIMEOUT_S * 1000),
                # One that comes twice or late is ignored, so no order has to be kept.
                "enable.idempotence": False,
            },
        )

    def publish(self, parts: Iterable[StatusPart]) -> None:
        self._producer.poll()
        for part in parts:
            self._producer.send(
                self._topic,
                0,
                part.value,
                key=part.key,
                headers=part.headers,
                on_delivery=self._delivered,
            )

    def _delivered(self, error: Exception | None, _: int) -> None:
        if (error is not None) != self._is_failing:
            self._is_failing = error is not None
            self._on_change(error)

    def flush(self, timeout_s: float) -> int:
        """Wait for what is under way; returns how many records were not delivered."""
        return self._producer.flush(timeout_s)


@dataclass(frozen=True, slots=True)
class SeenStatus:
    """The newest status of a group, with how old it is."""

    status: dict[str, Any]
    # What `penstock settings` shows; None if the controller did not say it.
    settings_in_force: dict[str, Any] | None
    controller_epoch: int
    age_s: float


class StatusReader:
    """Used by one thread."""

    def __init__(
        self,
        kafka: KafkaSettings,
        topics: TopicsSettings,
        group: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        require_listening(kafka)
        self._kafka = kafka
        self._partition = TopicPartition(topics.names.status, 0)
        self._clock = clock
        self._wall_clock = wall_clock
        self._assembler = StatusAssembler(group)
        # When the newest one came, if this reader was following then.
        self._came_s: float | None = None
        self._is_following = False
        self._reader = PartitionReader(kafka)

    def close(self) -> None:
        self._reader.close()

    def newest(self, *, wait_s: float = 0.0) -> SeenStatus | None:
        """The newest status; waits up to `wait_s` for one newer than the last that was given.

        The first call returns at once if the topic has one. None: no controller has written any.
        """
        if not self._is_following:
            self._begin()
            self._is_following = True
            if self._assembler.newest is not None:
                return self._seen()
        deadline_s = self._clock() + wait_s
        before = self._assembler.newest
        self._read_on(0.0)
        while self._assembler.newest is before and self._clock() < deadline_s:
            self._read_on(min(_WAIT_S, max(0.0, deadline_s - self._clock())))
        return self._seen()

    def _seen(self) -> SeenStatus | None:
        """Its age: since it came, or by both machines' wall clocks if it was there before."""
        newest = self._assembler.newest
        if newest is None:
            return None
        found = newest.unpacked()
        if self._came_s is not None:
            age_s = self._clock() - self._came_s
        else:
            age_s = self._wall_clock() - newest.written_unix_ms / 1000
        in_force = found.get("settings_in_force")
        return SeenStatus(found["status"], in_force, newest.controller_epoch, max(0.0, age_s))

    def _begin(self) -> None:
        """Find the newest whole status that the topic already holds."""
        log = self._reader.log_range(self._partition)
        back = _RECORDS_BACK_FIRST
        while True:
            start = max(log.start, log.end - back)
            self._reader.assign({self._partition: start})
            deadline_s = self._clock() + self._kafka.answer_timeout
            while self._reader.positions[self._partition] < log.end:
                if self._clock() > deadline_s:
                    raise unanswered(self._kafka, f"reading {self._partition}")
                if self._read_on(_WAIT_S):
                    break
            self._came_s = None
            if self._assembler.newest is not None or start == log.start:
                return
            back *= _RECORDS_BACK_FACTOR

    def _read_on(self, timeout_s: float) -> bool:
        """Take in what is there, waiting for the first of it; whether the end was reached."""
        outcomes = self._reader.read(timeout_s)
        if outcomes:  # a read of many would wait for all of them
            outcomes += self._reader.read(0.0, count=_RECORDS_AT_ONCE)
        for outcome in outcomes:
            if isinstance(outcome, KafkaRecord):
                if self._assembler.add(outcome.value, outcome.headers, outcome.timestamp_ms):
                    self._came_s = self._clock()
            elif isinstance(outcome, ReadFailure):
                self._failed(outcome)
        return any(isinstance(outcome, EndReached) for outcome in outcomes)

    def _failed(self, failure: ReadFailure) -> None:
        """Raise what the caller should know: also that the brokers are away."""
        if failure.kind is FailureKind.OFFSET_GONE:
            self._reader.restart(self._partition)
        elif (
            isinstance(failure.error, TopicMissingError)
            or failure.kind is FailureKind.LASTING
            or not self._is_following
        ):
            raise failure.error
