"""The working copy of one step: handlers change it, `finish` makes the new state of it."""

from collections.abc import Mapping
from typing import Any, TypeVar

from penstock.consumer.core.effects import (
    Effect,
    EndControlled,
    ForgetGroupOffset,
    Log,
    LogLevel,
    SendToController,
    WaitUntil,
)
from penstock.consumer.core.event_builder import EventBuilder, Measurements, one_line
from penstock.consumer.core.ownership import Owned, readable
from penstock.consumer.core.state import ConsumerState, LedgerLookup
from penstock.errors import PenstockError
from penstock.messages import FailedPartition, StopReason
from penstock.model import Epoch, TopicPartition
from penstock.model.changed import changed

_FAILED_ROWS_MAX = 100
# An orderly end has at least this long to get its last messages out.
_LAST_MESSAGES_MS_MIN = 500
Key = TypeVar("Key")
Value = TypeVar("Value")


class StepDraft:
    def __init__(self, state: ConsumerState, now_ms: int) -> None:
        self.now_ms = now_ms
        self.before = state
        self.settings = state.settings
        own = state.ownership
        self.own = own
        self.owned = dict(own.owned)
        self.ended = dict(own.ended)
        self.progress = dict(state.progress)
        self.lookups = dict(state.lookups)
        self.failed = dict(state.failed)
        self.is_reading_ledger = state.is_reading_ledger
        self.waits = dict(state.waits)
        self.batches = state.batches
        self.log_sizes = state.log_sizes
        self.spark = state.spark
        self.work = state.work
        self.report_due_ms = state.report_due_ms
        self.reported_ms = state.reported_ms
        self.upkeep_due_ms = state.upkeep_due_ms
        self.orphan_removals_ms = state.orphan_removals_ms
        self.shutdown = state.shutdown
        self.effects: list[Effect] = []
        self.events = EventBuilder(own.consumer_id, own.incarnation, own.sequence)
        self.events.orders = (own.controller_epoch, own.plan_number)

    def do(self, effect: Effect) -> None:
        self.effects.append(effect)

    def log(self, level: LogLevel, event: str, **fields: Any) -> None:
        self.effects.append(Log(level, event, fields))

    def log_failure(self, event: str, error: Exception, **fields: Any) -> None:
        """What was foreseen in one line; what nobody foresaw with the place where it was raised."""
        if isinstance(error, PenstockError):
            self.log(LogLevel.WARNING, event, error=str(error), **fields)
        else:
            text = f"{type(error).__name__}: {error}"
            self.log(LogLevel.ERROR, event, error=text, exc_info=error, **fields)

    @property
    def readable(self) -> dict[TopicPartition, int]:
        return readable(self.owned)

    def begin(self, partition: TopicPartition, epoch: Epoch) -> None:
        """Own it under this epoch. It is read once its ledger entry is known."""
        self.owned[partition] = Owned(epoch)
        self.progress.pop(partition, None)
        self.lookups[partition] = LedgerLookup(since_ms=self.now_ms)

    def end(self, partition: TopicPartition, reason: StopReason, detail: str = "") -> None:
        """It is no longer read, and nothing of it is in flight."""
        owned = self.owned.pop(partition)
        self.progress.pop(partition, None)
        self.lookups.pop(partition, None)
        self.ended[partition] = max(owned.epoch, self.ended.get(partition, owned.epoch))
        self.events.stopped(partition, owned.epoch, owned.next_offset, reason, detail)
        if reason is StopReason.LEDGER_REFUSED:
            self.do(ForgetGroupOffset(partition))
        if owned.next_epoch is not None and reason is not StopReason.SHUTDOWN:
            self.begin(partition, owned.next_epoch)

    def note_failure(
        self, partition: TopicPartition, reason: StopReason, offset: int | None, detail: str
    ) -> None:
        """For the reports, until it is started again. Bounded: the log has the rest."""
        if len(self.failed) < _FAILED_ROWS_MAX or partition in self.failed:
            self.failed[partition] = FailedPartition(
                topic=partition.topic,
                partition=partition.partition,
                reason=reason,
                offset=offset,
                detail=one_line(detail),
            )

    def look_soon(self) -> None:
        """Something can be read that could not before: do not wait."""
        batches = self.batches
        self.batches = changed(batches, next_look_ms=self.now_ms, looks_again=batches.is_looking)

    def finish(self, due_ms: int) -> tuple[ConsumerState, tuple[Effect, ...]]:
        """The new state; messages and the next tick come after all other effects."""
        before = self.before
        self.effects += [SendToController(message) for message in self.events.events()]
        self._answer_queries()
        self._end_when_nothing_is_left()
        own = changed(
            self.own,
            sequence=self.events.sequence,
            owned=_kept(before.ownership.owned, self.owned),
            ended=_kept(before.ownership.ended, self.ended),
        )
        if due_ms != before.wake_ms:
            self.do(WaitUntil(due_ms))
        after = ConsumerState(
            settings=self.settings,
            ownership=own,
            batches=self.batches,
            report_due_ms=self.report_due_ms,
            reported_ms=self.reported_ms,
            upkeep_due_ms=self.upkeep_due_ms,
            orphan_removals_ms=self.orphan_removals_ms,
            progress=_kept(before.progress, self.progress),
            failed=_kept(before.failed, self.failed),
            lookups=_kept(before.lookups, self.lookups),
            is_reading_ledger=self.is_reading_ledger,
            waits=_kept(before.waits, self.waits),
            log_sizes=self.log_sizes,
            spark=self.spark,
            work=self.work,
            shutdown=self.shutdown,
            wake_ms=due_ms,
        )
        return after, tuple(self.effects)

    def _answer_queries(self) -> None:
        """A query is answered when every command before it has taken effect.

        A start whose ledger cannot be read is named without an offset.
        """
        if not self.own.queries:
            return
        left = []
        for query in self.own.queries:
            pending = frozenset(p for p in query.waiting_for if is_unsettled(self, p))
            if pending:
                left.append(changed(query, waiting_for=pending))
                continue
            held = {p: (one.epoch, one.next_offset) for p, one in self.owned.items()}
            numbers = (query.controller_epoch, query.query_number)
            self.effects += [SendToController(m) for m in self.events.response(numbers, held)]
        self.own = changed(self.own, queries=tuple(left))

    def _end_when_nothing_is_left(self) -> None:
        own = self.own
        if self.shutdown is None or own.has_ended or self.owned:
            return
        self.own = own = changed(own, has_ended=True, reports=own.reports + 1)
        report = self.events.report(
            own.reports, own.phase, own.previous_shutdown, (), Measurements()
        )
        self.effects += [SendToController(message) for message in report]
        left_ms = self.shutdown.deadline_ms - self.now_ms
        self.do(EndControlled(max(_LAST_MESSAGES_MS_MIN, left_ms)))


def is_unsettled(draft: StepDraft, partition: TopicPartition) -> bool:
    """Whether a query waits for a command for it.

    Not for a start whose ledger was asked for in vain: one table would hold up the controller.
    """
    owned, lookup = draft.owned.get(partition), draft.lookups.get(partition)
    if owned is None or (lookup is not None and lookup.was_put_off):
        return False
    return owned.is_unsettled


def _kept(before: Mapping[Key, Value], now: dict[Key, Value]) -> Mapping[Key, Value]:
    """Return the old object if equal, so that a change is cheap to detect."""
    return before if now == before else now
