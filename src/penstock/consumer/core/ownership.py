"""What one consumer owns: `step(ownership, given) -> (ownership, effects)`.

It obeys commands meant for this consumer, in this life, of the newest controller and plan it has
seen, and refuses the others aloud. Every partition carries an epoch; one that has ended here is
never begun again. A query is answered only when every command before it has taken effect.

It decides nothing about offsets: a start reads the ledger, and the ledger refuses whoever is late.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.consumer.core.effects import Effect, EndControlled, ReadLedger, Say
from penstock.consumer.core.event_builder import EventBuilder
from penstock.consumer.core.inputs import (
    BatchBegan,
    BatchEnded,
    CommandRead,
    Input,
    LedgerRead,
    PartitionFailed,
    QueryRead,
    ReportDue,
    ShutdownAsked,
)
from penstock.messages import (
    ConsumerPhase,
    PreviousShutdown,
    RefusalReason,
    StartConsumingCommand,
    StopConsumingCommand,
    StopReason,
)
from penstock.model import ConsumerId, Epoch, TopicPartition


@dataclass(frozen=True, slots=True)
class Owned:
    """One partition under one epoch. Without a next offset the ledger has not been read yet."""

    epoch: Epoch
    next_offset: int | None = None
    is_in_batch: bool = False
    # Set when it is to end once the batch is over, and why.
    ending: StopReason | None = None
    # A start under a higher epoch that came while a batch was running.
    next_epoch: Epoch | None = None


@dataclass(frozen=True, slots=True)
class PendingQuery:
    """A query, and the partitions whose commands came before it and are not done yet."""

    controller_epoch: int
    query_number: int
    waiting_for: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Ownership:
    consumer_id: ConsumerId
    incarnation: int
    sequence: int = 0
    reports: int = 0
    controller_epoch: int = 0
    plan_number: int = 0
    previous_shutdown: PreviousShutdown = PreviousShutdown.NONE
    owned: Mapping[TopicPartition, Owned] = field(default_factory=dict)
    # The highest epoch that ended here. Entries of former controllers are dropped: their commands
    # are refused for their controller's epoch already.
    ended: Mapping[TopicPartition, Epoch] = field(default_factory=dict)
    queries: tuple[PendingQuery, ...] = ()
    is_shutting_down: bool = False
    has_ended: bool = False

    @property
    def phase(self) -> ConsumerPhase:
        if self.has_ended:
            return ConsumerPhase.STOPPED
        return ConsumerPhase.STOPPING if self.is_shutting_down else ConsumerPhase.RUNNING

    @property
    def readable(self) -> Mapping[TopicPartition, int]:
        """Partitions a new batch may read, with the offset where it begins."""
        return {
            partition: owned.next_offset
            for partition, owned in self.owned.items()
            if owned.next_offset is not None and owned.ending is None and not owned.is_in_batch
        }


def stops_first(
    commands: Sequence[StartConsumingCommand | StopConsumingCommand],
) -> list[StartConsumingCommand | StopConsumingCommand]:
    """Commands read together: stops take effect first. Epochs make the order harmless."""
    return sorted(commands, key=lambda command: isinstance(command, StartConsumingCommand))


class _StepDraft:
    """One step's working copy."""

    def __init__(self, ownership: Ownership) -> None:
        self.state = ownership
        self.owned = dict(ownership.owned)
        self.ended = dict(ownership.ended)
        self.effects: list[Effect] = []
        self.events = EventBuilder(ownership.consumer_id, ownership.incarnation, ownership.sequence)

    def finish(self) -> tuple[Ownership, tuple[Effect, ...]]:
        state = replace(self.state, owned=self.owned, ended=self.ended)
        self.events.orders = (state.controller_epoch, state.plan_number)
        effects = self.effects + [Say(message) for message in self.events.events()]
        left = []
        for query in state.queries:
            unsettled = {p for p in query.waiting_for if _is_unsettled(self.owned.get(p))}
            if unsettled:
                left.append(replace(query, waiting_for=frozenset(unsettled)))
            else:
                owned = {p: (o.epoch, o.next_offset) for p, o in self.owned.items()}
                numbers = (query.controller_epoch, query.query_number)
                effects += [Say(message) for message in self.events.response(numbers, owned)]
        state = replace(state, queries=tuple(left))
        if state.is_shutting_down and not state.has_ended and not self.owned:
            state = replace(state, has_ended=True, reports=state.reports + 1)
            report = self.events.report(
                state.reports, state.phase, state.previous_shutdown, {}, ReportDue()
            )
            effects += [Say(message) for message in report]
            effects.append(EndControlled())
        return replace(state, sequence=self.events.sequence), tuple(effects)

    def end(self, partition: TopicPartition, reason: StopReason, detail: str = "") -> None:
        """It is no longer read, and nothing of it is in flight."""
        owned = self.owned.pop(partition)
        self.ended[partition] = max(owned.epoch, self.ended.get(partition, owned.epoch))
        self.events.stopped(partition, owned.epoch, owned.next_offset, reason, detail)
        if owned.next_epoch is not None and reason is not StopReason.SHUTDOWN:
            self.begin(partition, owned.next_epoch)

    def begin(self, partition: TopicPartition, epoch: Epoch) -> None:
        self.owned[partition] = Owned(epoch)
        self.effects.append(ReadLedger(partition, epoch))


def _is_unsettled(owned: Owned | None) -> bool:
    return owned is not None and (
        owned.next_offset is None or owned.ending is not None or owned.next_epoch is not None
    )


def step(ownership: Ownership, given: Input) -> tuple[Ownership, tuple[Effect, ...]]:
    """One input, one new ownership, and what is to be done."""
    draft = _StepDraft(ownership)
    if not ownership.has_ended:
        _HANDLERS[type(given)](draft, given)
    return draft.finish()


def _command(draft: _StepDraft, given: CommandRead) -> None:
    command = given.command
    reason = _why_not(draft.state, command)
    if reason is not None:
        rows = {row.topic_partition: row.partition_epoch for row in command.partitions}
        draft.events.refuse(command, reason, rows)
        return
    _accept_orders(draft, command.controller_epoch, command.plan_number)
    stale: dict[TopicPartition, Epoch] = {}
    take = _start if isinstance(command, StartConsumingCommand) else _stop
    for row in command.partitions:
        if not take(draft, row.topic_partition, row.partition_epoch):
            stale[row.topic_partition] = row.partition_epoch
    if stale:
        draft.events.refuse(command, RefusalReason.STALE_PARTITION_EPOCH, stale)


def _why_not(
    state: Ownership, command: StartConsumingCommand | StopConsumingCommand
) -> RefusalReason | None:
    """The door: each check has a reason of its own."""
    if command.consumer_id != state.consumer_id:
        return RefusalReason.OTHER_CONSUMER
    if command.controller_epoch < state.controller_epoch:
        return RefusalReason.STALE_CONTROLLER_EPOCH
    if command.incarnation != state.incarnation:
        return RefusalReason.OTHER_INCARNATION
    newest = (state.controller_epoch, state.plan_number)
    if (command.controller_epoch, command.plan_number) < newest:
        return RefusalReason.STALE_PLAN
    if state.is_shutting_down and isinstance(command, StartConsumingCommand):
        return RefusalReason.SHUTTING_DOWN
    return None


def _accept_orders(draft: _StepDraft, controller_epoch: int, plan_number: int) -> None:
    state = draft.state
    if controller_epoch > state.controller_epoch:
        draft.ended = {
            p: epoch
            for p, epoch in draft.ended.items()
            if epoch.controller_epoch >= controller_epoch
        }
    draft.state = replace(state, controller_epoch=controller_epoch, plan_number=plan_number)


def _start(draft: _StepDraft, partition: TopicPartition, epoch: Epoch) -> bool:
    """Begin to read; say so again if it is being read. False when the epoch is stale."""
    owned = draft.owned.get(partition)
    ended = draft.ended.get(partition)
    if (ended is not None and epoch <= ended) or (owned is not None and epoch < owned.epoch):
        return False
    if owned is None:
        draft.begin(partition, epoch)
    elif epoch == owned.epoch:
        if owned.next_offset is not None and owned.ending is None:
            draft.events.started(partition, epoch, owned.next_offset)
    elif owned.is_in_batch or owned.ending is not None:
        draft.owned[partition] = replace(owned, next_epoch=epoch)
    else:
        draft.begin(partition, epoch)
    return True


def _stop(draft: _StepDraft, partition: TopicPartition, epoch: Epoch) -> bool:
    """Stop once the running batch is over; say so again if it is not read. False when stale."""
    owned = draft.owned.get(partition)
    if owned is not None and epoch < owned.epoch:
        return False
    if owned is None:
        draft.ended[partition] = max(epoch, draft.ended.get(partition, epoch))
        draft.events.stopped(partition, epoch, None, StopReason.COMMANDED, "")
        return True
    if owned.next_epoch is not None and owned.next_epoch <= epoch:
        owned = replace(owned, next_epoch=None)
    # The stop may name an epoch whose start never came: nothing of it may begin later, and what
    # is in flight under the older one ends first.
    draft.owned[partition] = replace(owned, epoch=epoch, ending=StopReason.COMMANDED)
    if not owned.is_in_batch:
        draft.end(partition, StopReason.COMMANDED)
    return True


def _query(draft: _StepDraft, given: QueryRead) -> None:
    """Answered when what came before it has taken effect: now, if nothing is pending."""
    query = given.query
    newest = (draft.state.controller_epoch, draft.state.plan_number)
    is_ours = query.consumer_id == draft.state.consumer_id
    if not is_ours or (query.controller_epoch, query.plan_number) < newest:
        draft.events.refuse(
            query,
            RefusalReason.STALE_CONTROLLER_EPOCH if is_ours else RefusalReason.OTHER_CONSUMER,
            {},
        )
        return
    _accept_orders(draft, query.controller_epoch, query.plan_number)
    waiting_for = frozenset(p for p, owned in draft.owned.items() if _is_unsettled(owned))
    pending = PendingQuery(query.controller_epoch, query.query_number, waiting_for)
    # Only the newest question matters to who asked it.
    draft.state = replace(draft.state, queries=(pending,))


def _ledger(draft: _StepDraft, given: LedgerRead) -> None:
    owned = draft.owned.get(given.partition)
    if owned is None or owned.epoch != given.epoch or owned.next_offset is not None:
        return
    if given.last_epoch is not None and given.last_epoch > owned.epoch:
        # Somebody was told to start it after us: we slept, and were given up meanwhile.
        draft.end(given.partition, StopReason.LEDGER_REFUSED)
        return
    draft.owned[given.partition] = replace(owned, next_offset=given.next_offset)
    draft.events.started(given.partition, owned.epoch, given.next_offset)


def _batch_began(draft: _StepDraft, given: BatchBegan) -> None:
    for partition in given.partitions:
        draft.owned[partition] = replace(draft.owned[partition], is_in_batch=True)


def _batch_ended(draft: _StepDraft, given: BatchEnded) -> None:
    """Commits move on; a refused one is given up at once: somebody else writes this partition."""
    ended = draft.owned if given.partitions is None else given.partitions
    for partition in sorted(p for p, own in draft.owned.items() if own.is_in_batch and p in ended):
        owned = replace(draft.owned[partition], is_in_batch=False)
        if partition in given.committed:
            owned = replace(owned, next_offset=given.committed[partition])
        draft.owned[partition] = owned
        if partition in given.refused:
            draft.end(partition, StopReason.LEDGER_REFUSED)
        elif owned.ending is not None:
            draft.end(partition, owned.ending)
        elif owned.next_epoch is not None:
            draft.begin(partition, owned.next_epoch)


def _failed(draft: _StepDraft, given: PartitionFailed) -> None:
    owned = draft.owned.get(given.partition)
    if owned is not None:
        draft.owned[given.partition] = replace(owned, is_in_batch=False)
        draft.end(given.partition, given.reason, given.detail)


def _shutdown(draft: _StepDraft, _: ShutdownAsked) -> None:
    """Give everything up, in order; what is in a batch waits for its end."""
    draft.state = replace(draft.state, is_shutting_down=True)
    for partition in sorted(draft.owned):
        owned = draft.owned[partition]
        draft.owned[partition] = replace(owned, ending=StopReason.SHUTDOWN, next_epoch=None)
        if not owned.is_in_batch:
            draft.end(partition, StopReason.SHUTDOWN)


def _report(draft: _StepDraft, given: ReportDue) -> None:
    state = draft.state
    draft.state = replace(state, reports=state.reports + 1)
    # A partition whose ledger was not read yet is not being read, and is not reported as such.
    owned = {
        p: (o.epoch, o.next_offset) for p, o in draft.owned.items() if o.next_offset is not None
    }
    draft.events.orders = (state.controller_epoch, state.plan_number)
    messages = draft.events.report(
        draft.state.reports, state.phase, state.previous_shutdown, owned, given
    )
    draft.effects += [Say(message) for message in messages]


_HANDLERS: dict[type[Input], Callable[[_StepDraft, Any], None]] = {
    CommandRead: _command,
    QueryRead: _query,
    LedgerRead: _ledger,
    BatchBegan: _batch_began,
    BatchEnded: _batch_ended,
    PartitionFailed: _failed,
    ShutdownAsked: _shutdown,
    ReportDue: _report,
}
