"""Builds a consumer's messages: gathered over one step, cut to the size limit and numbered.

Every message takes the next sequence number of this incarnation, so that the controller can tell
the newest from one that is late.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from penstock.messages import (
    CommandRefusedEvent,
    ConsumerPhase,
    ConsumerReport,
    CycleMeasurement,
    FailedPartition,
    FromConsumer,
    OwnedPartition,
    PreviousShutdown,
    RefusalReason,
    RefusedPartition,
    ReportedPartition,
    StartConsumingCommand,
    StartConsumingEvent,
    StartedPartition,
    StateQuery,
    StateQueryResponse,
    StopConsumingCommand,
    StopConsumingEvent,
    StoppedPartition,
    StopReason,
    TopicCapacity,
    Wait,
    Work,
    cut,
    in_parts,
)
from penstock.messages.fields import SENTENCE_LENGTH_MAX
from penstock.model import ConsumerId, Epoch, TopicPartition
from penstock.model.sentences import cut_at_word

Parted = TypeVar("Parted", StateQueryResponse, ConsumerReport)
Held = Mapping[TopicPartition, tuple[Epoch, int | None]]


@dataclass(frozen=True, slots=True)
class Measurements:
    """What a report holds beside the ownership; what is not known is absent."""

    partitions: Mapping[TopicPartition, ReportedPartition] = field(default_factory=dict)
    capacity_log_bytes_per_s: float | None = None
    at_least_log_bytes_per_s: float | None = None
    topic_capacities: tuple[TopicCapacity, ...] = ()
    behind_records: int | None = None
    behind_log_bytes: int | None = None
    deployment_version: int | None = None
    cycle: CycleMeasurement | None = None
    failed: tuple[FailedPartition, ...] = ()
    waits_for: Wait | None = None
    works_on: Work | None = None


class EventBuilder:
    """Gathers the messages of one step. `orders` are the highest epoch and plan obeyed."""

    def __init__(self, consumer: ConsumerId, incarnation: int, sequence: int) -> None:
        self.sequence = sequence
        self.orders = (0, 0)
        self._consumer = consumer
        self._incarnation = incarnation
        self._started: list[StartedPartition] = []
        self._stopped: list[StoppedPartition] = []
        self._refused: list[dict[str, Any]] = []

    def _head(self) -> dict[str, Any]:
        self.sequence += 1
        return {
            "consumer_id": self._consumer,
            "incarnation": self._incarnation,
            "sequence": self.sequence,
            "controller_epoch": self.orders[0],
            "plan_number": self.orders[1],
        }

    def started(self, partition: TopicPartition, epoch: Epoch, next_offset: int) -> None:
        row = StartedPartition(
            topic=partition.topic,
            partition=partition.partition,
            epoch=str(epoch),
            next_offset=next_offset,
        )
        self._started.append(row)

    def stopped(
        self,
        partition: TopicPartition,
        epoch: Epoch,
        next_offset: int | None,
        reason: StopReason,
        detail: str,
    ) -> None:
        row = StoppedPartition(
            topic=partition.topic,
            partition=partition.partition,
            epoch=str(epoch),
            next_offset=next_offset,
            reason=reason,
            detail=one_line(detail),
        )
        self._stopped.append(row)

    def refuse(
        self,
        command: StartConsumingCommand | StopConsumingCommand | StateQuery,
        reason: RefusalReason,
        rows: Mapping[TopicPartition, Epoch],
        *,
        times: int = 1,
    ) -> None:
        partitions = tuple(
            RefusedPartition(topic=p.topic, partition=p.partition, epoch=str(epoch))
            for p, epoch in rows.items()
        )
        self._refused.append(
            {
                "refused_event_type": command.event_type,
                "refused_controller_epoch": command.controller_epoch,
                "refused_plan_number": command.plan_number,
                "reason": reason,
                "refused_times": times,
                "partitions": partitions,
            }
        )

    def events(self) -> Iterator[FromConsumer]:
        """Stops before starts: a stop may be what another consumer waits for."""
        for stopped in cut(self._stopped) if self._stopped else ():
            yield StopConsumingEvent.model_validate({**self._head(), "partitions": stopped})
        for started in cut(self._started) if self._started else ():
            yield StartConsumingEvent.model_validate({**self._head(), "partitions": started})
        for refusal in self._refused:
            yield CommandRefusedEvent.model_validate({**self._head(), **refusal})

    def response(self, numbers: tuple[int, int], owned: Held) -> Iterator[StateQueryResponse]:
        rows = tuple(
            OwnedPartition(topic=p.topic, partition=p.partition, epoch=str(e), next_offset=offset)
            for p, (e, offset) in sorted(owned.items())
        )
        whole = StateQueryResponse.model_construct(
            **self._head(), query_controller_epoch=numbers[0], query_number=numbers[1], owned=rows
        )
        yield from self._in_parts(whole)

    def report(
        self,
        number: int,
        phase: ConsumerPhase,
        previous_shutdown: PreviousShutdown,
        owned: Collection[TopicPartition],
        measured: Measurements,
    ) -> Iterator[ConsumerReport]:
        whole = ConsumerReport.model_construct(
            **self._head(),
            report_number=number,
            phase=phase,
            previous_shutdown=previous_shutdown,
            capacity_log_bytes_per_s=measured.capacity_log_bytes_per_s,
            at_least_log_bytes_per_s=measured.at_least_log_bytes_per_s,
            topic_capacities=measured.topic_capacities,
            behind_records=measured.behind_records,
            behind_log_bytes=measured.behind_log_bytes,
            deployment_version=measured.deployment_version,
            cycle=measured.cycle,
            failed=measured.failed,
            waits_for=measured.waits_for,
            works_on=measured.works_on,
            owned=tuple(measured.partitions[partition] for partition in sorted(owned)),
        )
        yield from self._in_parts(whole)

    def _in_parts(self, whole: Parted) -> Iterator[Parted]:
        for part in in_parts(whole, "owned"):
            self.sequence = part.sequence
            yield part


def one_line(text: str) -> str:
    """An error's text, fit for a message: one line, printable, at most 100 characters."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return cut_at_word(printable, SENTENCE_LENGTH_MAX)
