"""A group small enough to follow every order of events: two consumers, three partitions, one move.

From the moment a plan is made, all interleavings are followed: messages to each receiver, reads of
the ledger, batches. In addition up to three faults happen at every possible place: a message is
lost, doubled or overtaken, a consumer crashes, the controller crashes after any single effect.
Safety is checked in every state. When no event is left, the group must have converged; otherwise
time passes, within a bound.

The state machine and the consumers' ownership are the real code. Only time and transport are
simplified: deployments and the packer answer at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from penstock.consumer.core import inputs as consumer_inputs
from penstock.consumer.core import ownership
from penstock.consumer.core.effects import Effect as ConsumerEffect
from penstock.consumer.core.effects import ReadLedger, Say
from penstock.consumer.core.ownership import Ownership
from penstock.controller.core import effects as act
from penstock.controller.core import inputs
from penstock.controller.core.invariants import check_whole
from penstock.controller.core.state import Phase, State
from penstock.controller.core.state_machine import Machine
from penstock.laboratory.protocol_simulation.checkers import ViolationError
from penstock.messages import (
    FromConsumer,
    Message,
    StartConsumingCommand,
    StateQuery,
    StopConsumingCommand,
)
from penstock.model import Assignment, ConsumerId, Epoch, TopicPartition
from penstock.packing import Packing
from penstock.settings import Settings, changed_settings

ONE, TWO = ConsumerId(1), ConsumerId(2)
PARTITIONS = tuple(TopicPartition("t", number) for number in range(3))
FUTURE = Assignment({ONE: PARTITIONS[:1], TWO: PARTITIONS[1:]})
SPEEDS: dict[TopicPartition, float | None] = dict.fromkeys(PARTITIONS, 1.0)
IDLE_MS = 1_000
IDLE_ROUNDS_MAX = 40
SETTINGS = changed_settings(
    Settings(),
    {
        "packing.capacity": "2B/s",
        "packing.target_utilisation": 1,
        "packing.scale_down_period": "1000000s",
        "packing.look_ahead": "0s",
        "controller.consumers_min": 0,
        "controller.consumers_max": 2,
        "controller.spare_consumers": 0,
        "controller.catch_up": "0s",
        "controller.acknowledge": "5s",
        "controller.silence": "60s",
        "controller.list_period": "1000000s",
        "controller.plan_interval": "0s",
    },
)


@dataclass(frozen=True, slots=True)
class RunningConsumer:
    """One consumer: its ownership, its pending ledger reads and its running batch."""

    ownership: Ownership
    reads: tuple[tuple[TopicPartition, Epoch], ...] = ()
    batch: tuple[tuple[TopicPartition, int, Epoch], ...] = ()


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


def initial_group(faults: int, records: int) -> SmallGroup:
    """Both consumers run; the first reads two partitions, and one of them has to move.

    From then on batches carry `records` records of each partition.
    """
    machine = Machine()
    state, _ = machine.begin(controller_epoch=1, settings=SETTINGS, now_ms=0)
    running = (RunningConsumer(Ownership(ONE, 1)), RunningConsumer(Ownership(TWO, 1)))
    group = SmallGroup(state, None, running, ((), ()), (), (0, 0, 0), 0)
    both = {ONE: inputs.Deployed(), TWO: inputs.Deployed()}
    for _ in range(2):
        group = _step(group, inputs.DeploymentsListed(0, both))
    group = _run_without_faults(group)
    group = _step(group, inputs.SpeedsMeasured(0, SPEEDS))
    current = Assignment({ONE: PARTITIONS[:2], TWO: PARTITIONS[2:]})
    group = _run_without_faults(_step(group, inputs.Tick(1), packing=current))
    # The first consumer is over capacity now: the next tick makes the plan to be explored.
    busier = {**SPEEDS, PARTITIONS[1]: 1.5}
    group = _step(group, inputs.SpeedsMeasured(2, busier))
    group = _step(group, inputs.Tick(IDLE_MS))
    if group.controller.phase is not Phase.GROUP_MANAGEMENT:
        raise ValueError("the group does not begin with a plan")
    return replace(group, faults_left=faults, records=records)


def _run_without_faults(group: SmallGroup) -> SmallGroup:
    """Deliver everything in order, without a fault."""
    while True:
        following = next(ordinary_steps(group), None)
        if following is None:
            return group
        group = following


# The controller's side


def _step(
    group: SmallGroup,
    given: inputs.Input,
    *,
    packing: Assignment = FUTURE,
    crash_after: int | None = None,
) -> SmallGroup:
    """Handle one input and run its effects; with `crash_after`, crash after that many."""
    state, effects = Machine().step(group.controller, given)
    check_whole(state)
    return _done(replace(group, controller=state), effects, packing, crash_after)


def _done(
    group: SmallGroup,
    effects: tuple[act.Effect, ...],
    packing: Assignment,
    crash_after: int | None,
) -> SmallGroup:
    queue = list(effects)
    done = 0
    while queue:
        if done == crash_after:
            return _restart_controller(group, packing)
        effect = queue.pop(0)
        done += 1
        answer: inputs.Input | None = None
        now = group.controller.now_ms
        if isinstance(effect, act.SaveState):
            group = replace(group, saved=group.controller)
        elif isinstance(effect, act.Send):
            group = _sent(group, effect.message)
        elif isinstance(effect, act.ListDeployments):
            both = {ONE: inputs.Deployed(), TWO: inputs.Deployed()}
            answer = inputs.DeploymentsListed(now, both)
        elif isinstance(effect, act.Pack):
            answer = inputs.Packed(now, effect.number, Packing(packing))
        elif isinstance(effect, act.DeleteConsumer):
            group = _deleted(group, effect.consumer)
            answer = inputs.ConsumerDeleted(now, effect.consumer)
        elif isinstance(effect, act.CreateConsumer):
            group = _restart_consumer(group, effect.consumer)
        if answer is not None:
            state, more = Machine().step(group.controller, answer)
            check_whole(state)
            group = replace(group, controller=state)
            queue += more
    return group


def _restart_controller(group: SmallGroup, packing: Assignment) -> SmallGroup:
    """The controller crashed and restarts at once, with a higher epoch."""
    state, effects = Machine().begin(
        controller_epoch=group.controller.controller_epoch + 1,
        settings=SETTINGS,
        now_ms=group.controller.now_ms,
        saved=group.saved,
    )
    return _done(replace(group, controller=state), effects, packing, None)


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


def _restart_consumer(group: SmallGroup, consumer: ConsumerId) -> SmallGroup:
    """A new incarnation, which has only its number, and reports itself."""
    index = consumer - 1
    former = group.running[index].ownership
    running = list(group.running)
    running[index] = RunningConsumer(Ownership(consumer, former.incarnation + 1))
    return _step_consumer(
        replace(group, running=(running[0], running[1])), index, consumer_inputs.ReportDue()
    )


# The consumers' side


def _step_consumer(group: SmallGroup, index: int, given: consumer_inputs.Input) -> SmallGroup:
    consumer = group.running[index]
    after, effects = ownership.step(consumer.ownership, given)
    return _apply_effects(group, index, replace(consumer, ownership=after), effects)


def _apply_effects(
    group: SmallGroup, index: int, consumer: RunningConsumer, effects: tuple[ConsumerEffect, ...]
) -> SmallGroup:
    said = list(group.to_controller)
    for effect in effects:
        if isinstance(effect, Say) and isinstance(effect.message, FromConsumer):
            said.append(effect.message)
        elif isinstance(effect, ReadLedger):
            consumer = replace(consumer, reads=(*consumer.reads, (effect.partition, effect.epoch)))
    running = list(group.running)
    running[index] = consumer
    return replace(group, running=(running[0], running[1]), to_controller=tuple(said))


def _read(group: SmallGroup, index: int, message: Message) -> SmallGroup:
    if isinstance(message, (StartConsumingCommand, StopConsumingCommand)):
        return _step_consumer(group, index, consumer_inputs.CommandRead(message))
    if isinstance(message, StateQuery):
        return _step_consumer(group, index, consumer_inputs.QueryRead(message))
    raise ValueError(f"not for a consumer: {message.event_type}")


def _ledger_read(group: SmallGroup, index: int) -> SmallGroup:
    consumer = group.running[index]
    (partition, epoch), *rest = consumer.reads
    running = list(group.running)
    running[index] = replace(consumer, reads=tuple(rest))
    offset = group.ledger[partition.partition]
    group = replace(group, running=(running[0], running[1]))
    return _step_consumer(group, index, consumer_inputs.LedgerRead(partition, epoch, offset))


def _batch_begun(group: SmallGroup, index: int, ranges: dict[TopicPartition, int]) -> SmallGroup:
    owned = group.running[index].ownership.owned
    batch = tuple((p, start, owned[p].epoch) for p, start in sorted(ranges.items()))
    group = _step_consumer(group, index, consumer_inputs.BatchBegan(tuple(ranges)))
    running = list(group.running)
    running[index] = replace(running[index], batch=batch)
    return replace(group, running=(running[0], running[1]))


def _batch_ended(group: SmallGroup, index: int) -> SmallGroup:
    """Commit one record of every partition, by compare-and-set."""
    ledger = list(group.ledger)
    committed: dict[TopicPartition, int] = {}
    refused = []
    for partition, start, _ in group.running[index].batch:
        if ledger[partition.partition] == start:
            ledger[partition.partition] = committed[partition] = start + 1
        else:
            refused.append(partition)
    running = list(group.running)
    running[index] = replace(running[index], batch=())
    group = replace(
        group, running=(running[0], running[1]), ledger=(ledger[0], ledger[1], ledger[2])
    )
    return _step_consumer(group, index, consumer_inputs.BatchEnded(committed, refused))


# The possible next steps


def ordinary_steps(group: SmallGroup) -> Iterator[SmallGroup]:
    """Every step that is possible without a fault."""
    if group.to_controller:
        first, *rest = group.to_controller
        after_delivery = replace(group, to_controller=tuple(rest), idle_rounds=0)
        yield _step(after_delivery, inputs.ConsumerSpoke(group.controller.now_ms, first))
    for index in range(2):
        box = group.to_consumer[index]
        if box:
            yield _read(_without(group, index, 0), index, box[0])
        consumer = group.running[index]
        if consumer.reads:
            yield _ledger_read(group, index)
        if consumer.batch:
            yield _batch_ended(group, index)
        else:
            readable = consumer.ownership.readable
            ranges = {p: start for p, start in readable.items() if start < group.records}
            if ranges:
                yield _batch_begun(group, index, ranges)


def _without(group: SmallGroup, index: int, place: int) -> SmallGroup:
    boxes = list(group.to_consumer)
    boxes[index] = boxes[index][:place] + boxes[index][place + 1 :]
    return replace(group, to_consumer=(boxes[0], boxes[1]), idle_rounds=0)


def faulty_steps(group: SmallGroup) -> Iterator[SmallGroup]:
    """One fault, at every place where it is possible."""
    if not group.faults_left:
        return
    with_fault = replace(group, faults_left=group.faults_left - 1)
    for index in range(2):
        box = group.to_consumer[index]
        if box:
            yield _without(with_fault, index, 0)
            yield _read(with_fault, index, box[0])
        if len(box) > 1:
            yield _read(_without(with_fault, index, 1), index, box[1])
        yield _restart_consumer(with_fault, ConsumerId(index + 1))
    said = group.to_controller
    if said:
        now = group.controller.now_ms
        first = inputs.ConsumerSpoke(now, said[0])
        yield replace(with_fault, to_controller=said[1:])
        yield _step(with_fault, first)
        if len(said) > 1:
            overtaken = replace(with_fault, to_controller=(said[0], *said[2:]))
            yield _step(overtaken, inputs.ConsumerSpoke(now, said[1]))
        _, effects = Machine().step(group.controller, first)
        for number in range(len(effects)):
            yield _step(replace(with_fault, to_controller=said[1:]), first, crash_after=number)


def idle_step(group: SmallGroup) -> SmallGroup:
    """No message is in flight: time passes, and the consumers report."""
    if group.idle_rounds >= IDLE_ROUNDS_MAX:
        raise ViolationError("L1", "no event is left, and the group has not converged")
    now = group.controller.now_ms + IDLE_MS
    rounds = group.idle_rounds + 1
    group = _step(group, inputs.SpeedsMeasured(now, SPEEDS))
    group = _step(group, inputs.Tick(now))
    for index in range(2):
        group = _step_consumer(group, index, consumer_inputs.ReportDue())
    return replace(group, idle_rounds=rounds)
