"""A consumer process in a simulated world: the real ownership, and batches against the ledger.

It can crash (and lose everything), pause in the middle of anything (a zombie), hang in a batch, and
go on running when its deployment is deleted.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.consumer.core import inputs, ownership
from penstock.consumer.core.effects import Effect, EndControlled, ReadLedger, Say
from penstock.laboratory.protocol_simulation.ledger import LedgerKey
from penstock.messages import (
    Message,
    StartConsumingCommand,
    StateQuery,
    StopConsumingCommand,
    StopReason,
)
from penstock.model import ConsumerId, Epoch, OffsetRange, TopicPartition

if TYPE_CHECKING:
    from penstock.laboratory.protocol_simulation.simulated_group import SimulatedGroup

REPORT_MS = 1_000
POLL_MS = 400
HANG_MS = 30_000


class SimulatedConsumer:
    def __init__(
        self, group: "SimulatedGroup", consumer: ConsumerId, incarnation: int, version: int
    ) -> None:
        self.group = group
        self.consumer = consumer
        self.version = version
        self.ownership = ownership.Ownership(consumer, incarnation)
        self.is_alive = True
        self.is_paused = False
        self.hangs_next = False
        self.outcome_unknown_next = False
        self.fails_next = False
        self._held_back: list[Callable[[], None]] = []
        # Which topic id each start read the ledger for.
        self._places: dict[TopicPartition, LedgerKey | None] = {}
        self._batch: dict[TopicPartition, tuple[LedgerKey, OffsetRange, Epoch]] = {}
        self._report()
        self._poll()

    # Life

    def _later(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Like a process: nothing happens when it is dead, and everything waits while it pauses."""

        def wake() -> None:
            if not self.is_alive:
                return
            if self.is_paused:
                self._held_back.append(action)
            else:
                action()

        self.group.clock.after(delay_ms, wake)

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        held, self._held_back = self._held_back, []
        for action in held:
            if self.is_alive:
                action()

    def crash(self) -> None:
        self.is_alive = False

    def shut_down(self) -> None:
        self._later(0, lambda: self._take(inputs.ShutdownAsked()))

    # Messages

    def deliver(self, message: Message) -> None:
        self._later(0, lambda: self._read(message))

    def _read(self, message: Message) -> None:
        if isinstance(message, (StartConsumingCommand, StopConsumingCommand)):
            self._take(inputs.CommandRead(message))
        elif isinstance(message, StateQuery):
            self._take(inputs.QueryRead(message))

    def _take(self, given: inputs.Input) -> None:
        before = self.ownership
        self.ownership, effects = ownership.step(self.ownership, given)
        self.group.checker.consumer_stepped(before, self.ownership)
        for effect in effects:
            self._do(effect)

    def _do(self, effect: Effect) -> None:
        if isinstance(effect, Say):
            self.group.to_controller(self, effect.message)
        elif isinstance(effect, ReadLedger):
            place = self.group.ledger_key(effect.partition)
            partition, epoch = effect.partition, effect.epoch

            def read() -> None:
                self._places[partition] = place
                ledger = self.group.ledger
                next_offset = ledger.read(place) if place else 0
                last_epoch = ledger.last_epoch.get(place) if place else None
                self._take(inputs.LedgerRead(partition, epoch, next_offset, last_epoch))

            self._later(self.group.chance.randint(2, 30), read)
        elif isinstance(effect, EndControlled):
            self.is_alive = False
            self.group.consumer_ended(self)

    def _report(self) -> None:
        owned = self.ownership.readable
        behind = sum(
            max(0, self.group.end_offset(partition) - offset) for partition, offset in owned.items()
        )
        self._take(inputs.ReportDue(behind_log_bytes=behind, deployment_version=self.version))
        self._later(REPORT_MS, self._report)

    # Batches

    def _poll(self) -> None:
        if not self._batch:
            self._begin_batch()
        if not self._batch:
            self._later(POLL_MS, self._poll)

    def _begin_batch(self) -> None:
        group = self.group
        ranges: dict[TopicPartition, tuple[LedgerKey, OffsetRange, Epoch]] = {}
        readable = self.ownership.readable
        most = group.batch_records
        for partition in sorted(readable):
            place = group.ledger_key(partition)
            start, end = readable[partition], group.end_offset(partition)
            if place != self._places[partition]:
                gone = StopReason.TOPIC_MADE_AGAIN
                self._take(inputs.PartitionFailed(partition, gone, "another topic id"))
            elif place is not None and end > start:
                taken = OffsetRange(partition, start, min(end, start + most))
                ranges[partition] = (place, taken, self.ownership.owned[partition].epoch)
        if not ranges:
            return
        if self.fails_next:
            self.fails_next = False
            victim = min(ranges)
            del ranges[victim]
            failed = inputs.PartitionFailed(victim, StopReason.TRANSFORMATION_FAILED, "poison")
            self._take(failed)
            if not ranges:
                return
        self._batch = ranges
        self._take(inputs.BatchBegan(tuple(ranges)))
        duration = group.chance.randint(60, 700)
        if self.hangs_next:
            self.hangs_next = False
            duration = HANG_MS if group.has_faults else duration
        self._later(duration, self._end_batch)

    def _end_batch(self) -> None:
        """One commit per table; a refused one is dropped whole, and only the late give up."""
        batch, self._batch = self._batch, {}
        committed: dict[TopicPartition, int] = {}
        refused: list[TopicPartition] = []
        for topic in sorted({partition.topic for partition in batch}):
            mine = {p: entry for p, entry in batch.items() if p.topic == topic}
            ranges = {place: taken for place, taken, _ in mine.values()}
            epochs = {p: epoch for p, (_, _, epoch) in mine.items()}
            late = self.group.ledger.commit(
                ranges, epochs, self.consumer, self.ownership.incarnation
            )
            if self.outcome_unknown_next and not late:
                # An error after success: settled by reading the log, never by a blind retry.
                self.outcome_unknown_next = False
                ends = {place: self.group.ledger.read(place) for place in ranges}
                late = tuple(p for p, taken in ranges.items() if ends[p] != taken.end)
            for partition, (place, taken, _) in mine.items():
                if not late:
                    committed[partition] = taken.end
                elif place in late:
                    refused.append(partition)
        self._take(inputs.BatchEnded(committed, refused))
        self._later(self.group.chance.randint(5, 100), self._poll)
