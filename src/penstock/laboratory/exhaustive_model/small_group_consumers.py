"""The consumers of the small group: the real core, and what it asked for and waits for."""

from dataclasses import dataclass, replace

from penstock.consumer.core import inputs as consumer_inputs
from penstock.consumer.core import state_machine as consumer_machine
from penstock.consumer.core.effects import (
    CarryBatch,
    RangeToCarry,
    ReadEnds,
    ReadLedger,
    SendToController,
)
from penstock.consumer.core.effects import Effect as ConsumerEffect
from penstock.consumer.core.ownership import Ownership
from penstock.consumer.core.settings import CoreSettings
from penstock.consumer.core.state import ConsumerState
from penstock.controller.core.state import State
from penstock.errors import PenstockError
from penstock.messages import (
    ConsumerReport,
    FromConsumer,
    Message,
    ReportedPartition,
    StartConsumingCommand,
    StateQuery,
    StopConsumingCommand,
    StopReason,
)
from penstock.model import ConsumerId, Epoch, TopicPartition

IDLE_MS = 1_000
# Batches follow at once, and every quiet round is long enough for a report and a look.
CONSUMER_SETTINGS = CoreSettings(
    batch_bytes=2**20,
    batch_time_ms=IDLE_MS,
    backlog_batch_time_ms=IDLE_MS,
    batch_period_ms=0,
    idle_wait_ms=IDLE_MS,
    report_period_ms=IDLE_MS,
    grace_ms=IDLE_MS,
)


@dataclass(frozen=True, slots=True)
class RunningConsumer:
    """One consumer, and what its core asked for and was not answered yet."""

    state: ConsumerState
    ledger_asked: tuple[tuple[TopicPartition, Epoch], ...] = ()
    ends_asked: tuple[TopicPartition, ...] = ()
    batch: tuple[RangeToCarry, ...] = ()

    @property
    def ownership(self) -> Ownership:
        return self.state.ownership


def new_consumer(consumer: ConsumerId, incarnation: int, now_ms: int) -> RunningConsumer:
    state, _ = consumer_machine.begin(
        CONSUMER_SETTINGS, Ownership(consumer, incarnation), now_ms=now_ms
    )
    return RunningConsumer(state)


@dataclass(frozen=True, slots=True)
class SmallGroup:
    controller: State
    saved: State | None
    running: tuple[RunningConsumer, RunningConsumer]
    to_consumer: tuple[tuple[Message, ...], tuple[Message, ...]]
    to_controller: tuple[FromConsumer, ...]
    ledger: tuple[int, int, int]
    faults_left: int
    records: int = 0
    fenced: frozenset[tuple[int, int]] = frozenset()
    idle_rounds: int = 0


def restart_consumer(group: SmallGroup, consumer: ConsumerId) -> SmallGroup:
    """A new incarnation, which knows nothing but its number, and reports at once."""
    index = consumer - 1
    now = group.controller.now_ms
    former = group.running[index].ownership
    group = _with_consumer(group, index, new_consumer(consumer, former.incarnation + 1, now))
    group = give(group, index, consumer_inputs.Tick(now))
    return start_spark(group, index)


def start_spark(group: SmallGroup, index: int) -> SmallGroup:
    if not group.records:
        return group
    return give(group, index, consumer_inputs.SparkStarted(group.controller.now_ms))


def _with_consumer(group: SmallGroup, index: int, consumer: RunningConsumer) -> SmallGroup:
    running = list(group.running)
    running[index] = consumer
    return replace(group, running=(running[0], running[1]))


def give(group: SmallGroup, index: int, given: consumer_inputs.Input) -> SmallGroup:
    consumer = group.running[index]
    after, effects = consumer_machine.step(consumer.state, given)
    return _apply_effects(group, index, replace(consumer, state=after), effects)


def _apply_effects(
    group: SmallGroup, index: int, consumer: RunningConsumer, effects: tuple[ConsumerEffect, ...]
) -> SmallGroup:
    """Messages are sent; what takes time is kept until it is answered."""
    sent = list(group.to_controller)
    for effect in effects:
        if isinstance(effect, SendToController):
            sent.append(_without_measurements(effect.message))
        elif isinstance(effect, ReadLedger):
            consumer = replace(consumer, ledger_asked=tuple(effect.partitions.items()))
        elif isinstance(effect, ReadEnds):
            consumer = replace(consumer, ends_asked=effect.partitions)
        elif isinstance(effect, CarryBatch):
            consumer = replace(consumer, batch=effect.ranges)
    return replace(_with_consumer(group, index, consumer), to_controller=tuple(sent))


def _without_measurements(message: FromConsumer) -> FromConsumer:
    """What was measured would make states differ that are the same to the controller."""
    if not isinstance(message, ConsumerReport):
        return message
    owned = tuple(
        ReportedPartition(
            topic=row.topic, partition=row.partition, epoch=row.epoch, next_offset=row.next_offset
        )
        for row in message.owned
    )
    update = {"cycle": None, "behind_records": None, "behind_log_bytes": None, "owned": owned}
    return message.model_copy(update=update)


def read_message(group: SmallGroup, index: int, message: Message) -> SmallGroup:
    if isinstance(message, (StartConsumingCommand, StopConsumingCommand, StateQuery)):
        now = group.controller.now_ms
        return give(group, index, consumer_inputs.MessagesRead(now, (message,)))
    raise ValueError(f"not for a consumer: {message.event_type}")


def answer_ledger(group: SmallGroup, index: int) -> SmallGroup:
    consumer = group.running[index]
    asked = dict(consumer.ledger_asked)
    entries = {}
    for partition in asked:
        offset = group.ledger[partition.partition]
        entries[partition] = consumer_inputs.LedgerEntry("id", offset, offset)
    group = _with_consumer(group, index, replace(consumer, ledger_asked=()))
    now = group.controller.now_ms
    return give(group, index, consumer_inputs.LedgerRead(now, asked, entries))


def answer_ends(group: SmallGroup, index: int) -> SmallGroup:
    """Every log holds one record more than is carried, until all records are."""
    consumer = group.running[index]
    ends = {p: min(group.records, group.ledger[p.partition] + 1) for p in consumer.ends_asked}
    group = _with_consumer(group, index, replace(consumer, ends_asked=()))
    return give(group, index, consumer_inputs.EndsRead(group.controller.now_ms, ends))


def end_batch(group: SmallGroup, index: int) -> SmallGroup:
    """Every partition by compare-and-set."""
    consumer = group.running[index]
    ledger = list(group.ledger)
    committed: dict[TopicPartition, int] = {}
    failures = {}
    for one in consumer.batch:
        partition = one.range.partition
        if ledger[partition.partition] == one.range.start:
            ledger[partition.partition] = committed[partition] = one.range.end
        else:
            error = PenstockError("another writer was first")
            failure = consumer_inputs.PartitionFailure(error, StopReason.LEDGER_REFUSED)
            failures[partition] = failure
    group = replace(
        _with_consumer(group, index, replace(consumer, batch=())),
        ledger=(ledger[0], ledger[1], ledger[2]),
    )
    ended = consumer_inputs.BatchEnded(group.controller.now_ms, committed, failures)
    return give(group, index, ended)
