"""Every order of everything in a small group: two consumers, three partitions, one move.

From the moment a plan is made, all interleavings are followed: messages to each receiver, reads of
the ledger and of the logs, batches. On top of that up to three faults at every place: a message
lost, doubled or overtaken by the next one, a consumer that crashes, a controller that crashes after
each single effect. Safety is checked in every state. Where nothing is left to happen the group must
have converged; until then time passes, within a bound.

The controller and the consumers are the real ones; only time and transport are reduced:
deployments, the packer and Spark answer at once, and reports carry no measurements.
"""

from collections.abc import Iterator
from dataclasses import replace

from penstock.consumer.core import inputs as consumer_inputs
from penstock.controller.core import effects as act
from penstock.controller.core import inputs
from penstock.controller.core.invariants import check_whole
from penstock.controller.core.state import Phase
from penstock.controller.core.state_machine import Machine
from penstock.laboratory.exhaustive_model.small_group_consumers import (
    IDLE_MS,
    SmallGroup,
    answer_ends,
    answer_ledger,
    end_batch,
    give,
    new_consumer,
    read_message,
    restart_consumer,
    start_spark,
)
from penstock.laboratory.protocol_simulation.checkers import ViolationError
from penstock.messages import (
    Message,
    StartConsumingCommand,
)
from penstock.model import Assignment, ConsumerId, TopicPartition
from penstock.packing import Packing
from penstock.settings import Settings, changed_settings

ONE, TWO = ConsumerId(1), ConsumerId(2)
PARTITIONS = tuple(TopicPartition("t", number) for number in range(3))
FUTURE = Assignment({ONE: PARTITIONS[:1], TWO: PARTITIONS[1:]})
SPEEDS: dict[TopicPartition, float | None] = dict.fromkeys(PARTITIONS, 1.0)
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


def initial_group(faults: int, records: int) -> SmallGroup:
    """Both consumers run; the first reads two partitions, and one of them has to move.

    From then on batches carry `records` records of each partition. Without records Spark never
    comes up, so that nothing is read.
    """
    machine = Machine()
    state, _ = machine.begin(controller_epoch=1, settings=SETTINGS, now_ms=0)
    running = (new_consumer(ONE, 1, 0), new_consumer(TWO, 1, 0))
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
    group = replace(group, faults_left=faults, records=records)
    for index in range(2):
        group = start_spark(group, index)
    return group


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
            group = restart_consumer(group, effect.consumer)
        if answer is not None:
            state, more = Machine().step(group.controller, answer)
            check_whole(state)
            group = replace(group, controller=state)
            queue += more
    return group


def _restart_controller(group: SmallGroup, packing: Assignment) -> SmallGroup:
    """The controller died; the next incarnation starts at once, with a higher epoch."""
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
            yield read_message(_without(group, index, 0), index, box[0])
        consumer = group.running[index]
        if consumer.ledger_asked:
            yield answer_ledger(group, index)
        if consumer.ends_asked:
            yield answer_ends(group, index)
        if consumer.batch:
            yield end_batch(group, index)


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
            yield read_message(with_fault, index, box[0])
        if len(box) > 1:
            yield read_message(_without(with_fault, index, 1), index, box[1])
        yield restart_consumer(with_fault, ConsumerId(index + 1))
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
        group = give(group, index, consumer_inputs.Tick(now))
    return replace(group, idle_rounds=rounds)
