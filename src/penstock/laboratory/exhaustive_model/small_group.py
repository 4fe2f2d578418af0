"""Every order of everything in a small group: two consumers, three partitions, one move.

From the moment a plan is made, all interleavings are followed: messages to each receiver, reads of
the ledger and of the logs, batches. On top of that up to three faults at every place: a message
lost, doubled or overtaken by the next one, a consumer that crashes, a controller that crashes after
each single effect, a listing of the deployments that fails. Safety is checked in every state. Where
nothing is left to happen the group must have converged; until then time passes, within a bound.

The controller and the consumers are the real ones; only time and transport are reduced:
deployments, the packer, Spark and heartbeats answer at once, and reports carry no measurements.
"""

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
from penstock.consumer.core.settings import core_settings
from penstock.consumer.core.state import ConsumerState
from penstock.controller.core import effects as act
from penstock.controller.core import inputs
from penstock.controller.core.invariants import check_whole
from penstock.controller.core.state import State
from penstock.controller.core.state_machine import Machine
from penstock.errors import PenstockError
from penstock.laboratory.protocol_simulation.checkers import ViolationError
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
from penstock.model import Assignment, ConsumerId, Epoch, TopicPartition
from penstock.packing import Packing
from penstock.settings import Settings, changed_settings

ONE, TWO = ConsumerId(1), ConsumerId(2)
PARTITIONS = tuple(TopicPartition("t", number) for number in range(3))
FUTURE = Assignment({ONE: PARTITIONS[:1], TWO: PARTITIONS[1:]})
SPEEDS: dict[TopicPartition, float | None] = dict.fromkeys(PARTITIONS, 1.0)
IDLE_MS = 1_000
SETTINGS = changed_settings(
    Settings(),
    {
        "packing.capacity": "2B/s",
        "packing.target_utilisation": 1,
        "packing.scale_down_period": "1000000s",
        "packing.look_ahead": "0s",
        "packing.over_capacity_for": "0s",
        "controller.consumers_min": 0,
        "controller.consumers_max": 2,
        "controller.spare_consumers": 0,
        "controller.catch_up": "0s",
        "controller.acknowledge": "6s",
        "controller.silence": "60s",
        "controller.list_period": "1000000s",
        "controller.plan_interval": "0s",
    },
)
# Batches follow at once, and every quiet round is long enough for a report and a look.
CONSUMER_SETTINGS = core_settings(
    changed_settings(
        Settings(),
        {
            "consumer.batch_bytes": 2**20,
            "consumer.batch_time": f"{IDLE_MS}ms",
            "consumer.backlog_batch_time": f"{IDLE_MS}ms",
            "consumer.batch_period": "0s",
            "consumer.idle_wait": f"{IDLE_MS}ms",
            "consumer.report_period": f"{IDLE_MS}ms",
            "consumer.grace": f"{IDLE_MS}ms",
            "lake.compact_period": "0s",
        },
    ),
    deployment_version=None,
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


# The controller's side


def take(
    group: SmallGroup,
    given: inputs.Input,
    *,
    packing: Assignment = FUTURE,
    crash_after: int | None = None,
    listing_fails: bool = False,
) -> SmallGroup:
    """Handle one input and run its effects.

    With `crash_after`, crash after that many. With `listing_fails`, the first listing fails, also
    that of the controller which starts after the crash.
    """
    state, effects = Machine().step(group.controller, given)
    check_whole(state)
    group = replace(group, controller=state)
    return _done(group, effects, packing, crash_after, listing_fails=listing_fails)


def _done(
    group: SmallGroup,
    effects: tuple[act.Effect, ...],
    packing: Assignment,
    crash_after: int | None,
    *,
    listing_fails: bool,
) -> SmallGroup:
    queue = list(effects)
    done = 0
    while queue:
        if done == crash_after:
            return _restart_controller(group, packing, listing_fails=listing_fails)
        effect = queue.pop(0)
        done += 1
        now = group.controller.now_ms
        answer = _answer(effect, now, packing)
        if isinstance(effect, act.SaveState):
            group = replace(group, saved=group.controller)
        elif isinstance(effect, act.Send):
            group = _sent(group, effect.message)
        elif isinstance(effect, act.ListDeployments):
            answer = _listing(now, fails=listing_fails)
            listing_fails = False
        elif isinstance(effect, act.DeleteConsumer):
            group = _deleted(group, effect.consumer)
            answer = inputs.ConsumerDeleted(now, effect.consumer)
        elif isinstance(effect, act.CreateConsumer):
            group = restart_consumer(group, effect.consumer)
        if answer is not None:
            state, more = Machine().step(group.controller, answer)
            check_whole(state)
            group = replace(group, controller=state)
            queue += more
    return group


def _answer(effect: act.Effect, now_ms: int, packing: Assignment) -> inputs.Input | None:
    """What answers at once, and always."""
    if isinstance(effect, act.SendHeartbeat):
        beat = effect.message
        return inputs.HeartbeatReturned(now_ms, beat.controller_epoch, beat.heartbeat_number)
    if isinstance(effect, act.Pack):
        return inputs.Packed(now_ms, effect.number, Packing(packing))
    return None


def _listing(now_ms: int, *, fails: bool) -> inputs.Input:
    if fails:
        return inputs.ListingFailed(now_ms, "the back-end is away")
    return inputs.DeploymentsListed(now_ms, {ONE: inputs.Deployed(), TWO: inputs.Deployed()})


def _restart_controller(
    group: SmallGroup, packing: Assignment, *, listing_fails: bool
) -> SmallGroup:
    """The controller died; the next incarnation starts at once, with a higher epoch."""
    state, effects = Machine().begin(
        controller_epoch=group.controller.controller_epoch + 1,
        settings=SETTINGS,
        now_ms=group.controller.now_ms,
        saved=group.saved,
    )
    group = replace(group, controller=state)
    return _done(group, effects, packing, None, listing_fails=listing_fails)


def _sent(group: SmallGroup, message: Message) -> SmallGroup:
    index = message.mailbox - 1
    if index < 0:
        return group
    if isinstance(message, StartConsumingCommand):
        _check_no_other_reader(group, message)
    boxes = list(group.to_consumer)
    boxes[index] = (*boxes[index], message)
    return replace(group, to_consumer=(boxes[0], boxes[1]))


def _check_no_other_reader(group: SmallGroup, message: StartConsumingCommand) -> None:
    """S4 (at most one reader of a partition), checked from outside the controller."""
    for consumer in group.running:
        reader = (int(consumer.ownership.consumer_id), consumer.ownership.incarnation)
        if reader == (message.consumer_id, message.incarnation) or reader in group.fenced:
            continue
        for row in message.partitions:
            if row.topic_partition in consumer.ownership.owned:
                raise ViolationError(
                    "S4", f"{row.topic_partition} is started while {reader} reads it"
                )


def _deleted(group: SmallGroup, consumer: ConsumerId) -> SmallGroup:
    reader = (int(consumer), group.running[consumer - 1].ownership.incarnation)
    return replace(group, fenced=group.fenced | {reader})


def restart_consumer(group: SmallGroup, consumer: ConsumerId) -> SmallGroup:
    """A new incarnation, which knows nothing but its number, and reports at once."""
    index = consumer - 1
    now = group.controller.now_ms
    former = group.running[index].ownership
    group = _with_consumer(group, index, new_consumer(consumer, former.incarnation + 1, now))
    group = give(group, index, consumer_inputs.Tick(now))
    return with_spark(group, index)


# The consumers' side


def with_spark(group: SmallGroup, index: int) -> SmallGroup:
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
            if consumer.batch:
                raise ViolationError("S13", "a batch begins while another one runs")
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
    measured = ("cycle", "behind_records", "behind_log_bytes", "waits_for", "works_on")
    return message.model_copy(update={**dict.fromkeys(measured), "owned": owned})


def deliver(group: SmallGroup, index: int, message: Message) -> SmallGroup:
    if isinstance(message, (StartConsumingCommand, StopConsumingCommand, StateQuery)):
        now = group.controller.now_ms
        return give(group, index, consumer_inputs.MessagesRead(now, (message,)))
    raise ValueError(f"not for a consumer: {message.event_type}")


def ledger_read(group: SmallGroup, index: int) -> SmallGroup:
    consumer = group.running[index]
    asked = dict(consumer.ledger_asked)
    entries = {}
    for partition in asked:
        offset = group.ledger[partition.partition]
        entries[partition] = consumer_inputs.LedgerEntry("id", offset, offset)
    group = _with_consumer(group, index, replace(consumer, ledger_asked=()))
    now = group.controller.now_ms
    return give(group, index, consumer_inputs.LedgerRead(now, asked, entries))


def ends_read(group: SmallGroup, index: int) -> SmallGroup:
    """Every log holds one record more than is carried, until all records are."""
    consumer = group.running[index]
    ends = {p: min(group.records, group.ledger[p.partition] + 1) for p in consumer.ends_asked}
    group = _with_consumer(group, index, replace(consumer, ends_asked=()))
    return give(group, index, consumer_inputs.EndsRead(group.controller.now_ms, ends))


def batch_ended(group: SmallGroup, index: int) -> SmallGroup:
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
