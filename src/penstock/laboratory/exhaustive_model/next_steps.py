"""What can happen next in a small group: its beginning, every ordinary step, every fault, and time.

A step makes a new group of a given one; `search` follows all of them.
"""

from collections.abc import Iterator
from dataclasses import replace

from penstock.consumer.core import inputs as consumer_inputs
from penstock.controller.core import inputs
from penstock.controller.core.effects import ListDeployments
from penstock.controller.core.state import Phase
from penstock.controller.core.state_machine import Machine
from penstock.laboratory.exhaustive_model.small_group import (
    IDLE_MS,
    ONE,
    PARTITIONS,
    SETTINGS,
    SPEEDS,
    TWO,
    SmallGroup,
    batch_ended,
    deliver,
    ends_read,
    give,
    ledger_read,
    new_consumer,
    restart_consumer,
    take,
    with_spark,
)
from penstock.laboratory.protocol_simulation.checkers import ViolationError
from penstock.model import Assignment, ConsumerId

IDLE_ROUNDS_MAX = 40


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
        group = take(group, inputs.DeploymentsListed(0, both))
    group = _run_without_faults(group)
    group = take(group, inputs.SpeedsMeasured(0, SPEEDS))
    current = Assignment({ONE: PARTITIONS[:2], TWO: PARTITIONS[2:]})
    group = _run_without_faults(take(group, inputs.Tick(1), packing=current))
    # The first consumer is over capacity now: the next tick makes the plan to be explored.
    busier = {**SPEEDS, PARTITIONS[0]: 1.5}
    for now_ms in (2, 3):  # one measurement alone proves nothing
        group = take(group, inputs.SpeedsMeasured(now_ms, busier))
    group = take(group, inputs.Tick(IDLE_MS))
    if group.controller.phase is not Phase.GROUP_MANAGEMENT:
        raise ValueError("the group does not begin with a plan")
    group = replace(group, faults_left=faults, records=records)
    for index in range(2):
        group = with_spark(group, index)
    return group


def _run_without_faults(group: SmallGroup) -> SmallGroup:
    """Deliver everything in order, without a fault."""
    while True:
        following = next(ordinary_steps(group), None)
        if following is None:
            return group
        group = following


def ordinary_steps(group: SmallGroup) -> Iterator[SmallGroup]:
    """Every step that is possible without a fault."""
    if group.to_controller:
        first, *rest = group.to_controller
        after_delivery = replace(group, to_controller=tuple(rest), idle_rounds=0)
        yield take(after_delivery, inputs.ConsumerMessageRead(group.controller.now_ms, first))
    for index in range(2):
        box = group.to_consumer[index]
        if box:
            yield deliver(_without(group, index, 0), index, box[0])
        consumer = group.running[index]
        if consumer.ledger_asked:
            yield ledger_read(group, index)
        if consumer.ends_asked:
            yield ends_read(group, index)
        if consumer.batch:
            yield batch_ended(group, index)


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
            yield deliver(with_fault, index, box[0])
        if len(box) > 1:
            yield deliver(_without(with_fault, index, 1), index, box[1])
        yield restart_consumer(with_fault, ConsumerId(index + 1))
    said = group.to_controller
    if said:
        now = group.controller.now_ms
        first = inputs.ConsumerMessageRead(now, said[0])
        yield replace(with_fault, to_controller=said[1:])
        yield take(with_fault, first)
        if len(said) > 1:
            overtaken = replace(with_fault, to_controller=(said[0], *said[2:]))
            yield take(overtaken, inputs.ConsumerMessageRead(now, said[1]))
        _, effects = Machine().step(group.controller, first)
        heard = replace(with_fault, to_controller=said[1:])
        if any(isinstance(effect, ListDeployments) for effect in effects):
            yield take(heard, first, listing_fails=True)
        for number in range(len(effects)):
            yield take(heard, first, crash_after=number)
            if heard.faults_left:
                twice = replace(heard, faults_left=heard.faults_left - 1)
                yield take(twice, first, crash_after=number, listing_fails=True)


def idle_step(group: SmallGroup) -> SmallGroup:
    """No message is in flight: time passes, and the consumers report."""
    if group.idle_rounds >= IDLE_ROUNDS_MAX:
        raise ViolationError("L1", "no event is left, and the group has not converged")
    now = group.controller.now_ms + IDLE_MS
    rounds = group.idle_rounds + 1
    group = take(group, inputs.SpeedsMeasured(now, SPEEDS))
    group = take(group, inputs.Tick(now))
    for index in range(2):
        group = give(group, index, consumer_inputs.Tick(now))
    return replace(group, idle_rounds=rounds)
