"""Every order of everything, in a world small enough: two consumers, three partitions, a move.

From the moment a plan is made, all interleavings are followed: messages to each receiver, reads of
the ledger, batches. On top of that up to three faults at every place: a message lost, doubled or
overtaken by the next one, a consumer that crashes, a controller that crashes after each single
effect. Safety is checked in every state. Where nothing is left to happen the group must have
converged; until then time passes, within a bound.

The machine and the ownership are the real ones; only time and transport are reduced: deployments
and the packer answer at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from penstock.consumer.core import inputs as told
from penstock.consumer.core import ownership
from penstock.consumer.core.effects import Effect as ConsumerEffect
from penstock.consumer.core.effects import ReadLedger, Say
from penstock.consumer.core.ownership import Ownership
from penstock.controller.core import effects as act
from penstock.controller.core import inputs
from penstock.controller.core.invariants import check_whole
from penstock.controller.core.settings import ControllerSettings
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

ONE, TWO = ConsumerId(1), ConsumerId(2)
PARTITIONS = tuple(TopicPartition("t", number) for number in range(3))
FUTURE = Assignment({ONE: PARTITIONS[:1], TWO: PARTITIONS[1:]})
SPEEDS: dict[TopicPartition, float | None] = dict.fromkeys(PARTITIONS, 1.0)
QUIET_MS = 1_000
QUIET_ROUNDS_MAX = 40
SETTINGS = ControllerSettings(
    capacity_bytes_per_s=2.0,
    target_utilisation=1.0,
    spare_consumers=0,
    catch_up_ms=0,
    consumers_max=2,
    resend_ms=1_000,
    acknowledge_ms_max=5_000,
    silence_ms_max=60_000,
    list_period_ms=10**9,
    scale_down_period_ms=10**9,
    plan_interval_ms=0,
    query_resend_ms=1_000,
)


@dataclass(frozen=True, slots=True)
class Life:
    """One consumer: what it owns, what it reads from the ledger, and the batch it runs."""

    ownership: Ownership
    reads: tuple[tuple[TopicPartition, Epoch], ...] = ()
    batch: tuple[tuple[TopicPartition, int, Epoch], ...] = ()


@dataclass(frozen=True, slots=True)
class SmallWorld:
    controller: State
    saved: State | None
    lives: tuple[Life, Life]
    to_consumer: tuple[tuple[Message, ...], tuple[Message, ...]]
    to_controller: tuple[FromConsumer, ...]
    ledger: tuple[int, int, int]
    faults_left: int
    records: int = 0
    fenced: frozenset[tuple[int, int]] = frozenset()
    quiet_rounds: int = 0


def beginning(faults: int, records: int) -> SmallWorld:
    """Both consumers are up; the first reads two partitions, and one of them is to move.

    From then on batches carry `records` records of each partition.
    """
    machine = Machine()
    state, _ = machine.begin(controller_epoch=1, settings=SETTINGS, now_ms=0)
    lives = (Life(Ownership(ONE, 1)), Life(Ownership(TWO, 1)))
    world = SmallWorld(state, None, lives, ((), ()), (), (0, 0, 0), 0)
    both = {ONE: inputs.Deployed(), TWO: inputs.Deployed()}
    for _ in range(2):
        world = _step(world, inputs.DeploymentsListed(0, both))
    world = _settled(world)
    world = _step(world, inputs.SpeedsMeasured(0, SPEEDS))
    current = Assignment({ONE: PARTITIONS[:2], TWO: PARTITIONS[2:]})
    world = _settled(_step(world, inputs.Tick(1), packing=current))
    # The first consumer is over its capacity now: the next look makes the plan to be explored.
    busier = {**SPEEDS, PARTITIONS[1]: 1.5}
    world = _step(world, inputs.SpeedsMeasured(2, busier))
    world = _step(world, inputs.Tick(QUIET_MS))
    if world.controller.phase is not Phase.GROUP_MANAGEMENT:
        raise ValueError("the world does not begin with a plan")
    return replace(world, faults_left=faults, records=records)


def _settled(world: SmallWorld) -> SmallWorld:
    """Everything delivered in order, without a fault."""
    while True:
        following = next(ordinary(world), None)
        if following is None:
            return world
        world = following


# The controller's side


def _step(
    world: SmallWorld,
    given: inputs.Input,
    *,
    packing: Assignment = FUTURE,
    die_after: int | None = None,
) -> SmallWorld:
    """One input, and all its effects; or the first few of them, and then a crash."""
    state, effects = Machine().step(world.controller, given)
    check_whole(state)
    return _done(replace(world, controller=state), effects, packing, die_after)


def _done(
    world: SmallWorld,
    effects: tuple[act.Effect, ...],
    packing: Assignment,
    die_after: int | None,
) -> SmallWorld:
    queue = list(effects)
    done = 0
    while queue:
        if done == die_after:
            return _reborn(world, packing)
        effect = queue.pop(0)
        done += 1
        answer: inputs.Input | None = None
        now = world.controller.now_ms
        if isinstance(effect, act.SaveState):
            world = replace(world, saved=world.controller)
        elif isinstance(effect, act.Send):
            world = _sent(world, effect.message)
        elif isinstance(effect, act.ListDeployments):
            both = {ONE: inputs.Deployed(), TWO: inputs.Deployed()}
            answer = inputs.DeploymentsListed(now, both)
        elif isinstance(effect, act.Pack):
            answer = inputs.Packed(now, effect.number, Packing(packing))
        elif isinstance(effect, act.DeleteConsumer):
            world = _deleted(world, effect.consumer)
            answer = inputs.ConsumerDeleted(now, effect.consumer)
        elif isinstance(effect, act.CreateConsumer):
            world = _restarted(world, effect.consumer)
        if answer is not None:
            state, more = Machine().step(world.controller, answer)
            check_whole(state)
            world = replace(world, controller=state)
            queue += more
    return world


def _reborn(world: SmallWorld, packing: Assignment) -> SmallWorld:
    """The controller died; the next life starts at once, with a higher epoch."""
    state, effects = Machine().begin(
        controller_epoch=world.controller.controller_epoch + 1,
        settings=SETTINGS,
        now_ms=world.controller.now_ms,
        saved=world.saved,
    )
    return _done(replace(world, controller=state), effects, packing, None)


def _sent(world: SmallWorld, message: Message) -> SmallWorld:
    index = message.mailbox - 1
    if index < 0:
        return world
    if isinstance(message, StartConsumingCommand):
        _nobody_else_reads(world, message)
    boxes = list(world.to_consumer)
    boxes[index] = (*boxes[index], message)
    return replace(world, to_consumer=(boxes[0], boxes[1]))


def _nobody_else_reads(world: SmallWorld, message: StartConsumingCommand) -> None:
    """S4, judged from outside."""
    for life in world.lives:
        who = (int(life.ownership.consumer_id), life.ownership.incarnation)
        if who == (message.consumer_id, message.incarnation) or who in world.fenced:
            continue
        for row in message.partitions:
            if row.topic_partition in life.ownership.owned:
                raise ViolationError("S4", f"{row.topic_partition} is started while {who} reads it")


def _deleted(world: SmallWorld, consumer: ConsumerId) -> SmallWorld:
    life = world.lives[consumer - 1]
    who = (int(consumer), life.ownership.incarnation)
    return replace(world, fenced=world.fenced | {who})


def _restarted(world: SmallWorld, consumer: ConsumerId) -> SmallWorld:
    """A new life, which knows nothing but its number, and says that it is there."""
    index = consumer - 1
    former = world.lives[index].ownership
    lives = list(world.lives)
    lives[index] = Life(Ownership(consumer, former.incarnation + 1))
    return _told(replace(world, lives=(lives[0], lives[1])), index, told.ReportDue())


# The consumers' side


def _told(world: SmallWorld, index: int, given: told.Input) -> SmallWorld:
    life = world.lives[index]
    after, effects = ownership.step(life.ownership, given)
    return _obeyed(world, index, replace(life, ownership=after), effects)


def _obeyed(
    world: SmallWorld, index: int, life: Life, effects: tuple[ConsumerEffect, ...]
) -> SmallWorld:
    said = list(world.to_controller)
    for effect in effects:
        if isinstance(effect, Say) and isinstance(effect.message, FromConsumer):
            said.append(effect.message)
        elif isinstance(effect, ReadLedger):
            life = replace(life, reads=(*life.reads, (effect.partition, effect.epoch)))
    lives = list(world.lives)
    lives[index] = life
    return replace(world, lives=(lives[0], lives[1]), to_controller=tuple(said))


def _read(world: SmallWorld, index: int, message: Message) -> SmallWorld:
    if isinstance(message, (StartConsumingCommand, StopConsumingCommand)):
        return _told(world, index, told.CommandRead(message))
    if isinstance(message, StateQuery):
        return _told(world, index, told.QueryRead(message))
    raise ValueError(f"not for a consumer: {message.event_type}")


def _ledger_read(world: SmallWorld, index: int) -> SmallWorld:
    life = world.lives[index]
    (partition, epoch), *rest = life.reads
    lives = list(world.lives)
    lives[index] = replace(life, reads=tuple(rest))
    offset = world.ledger[partition.partition]
    world = replace(world, lives=(lives[0], lives[1]))
    return _told(world, index, told.LedgerRead(partition, epoch, offset))


def _batch_begun(world: SmallWorld, index: int, ranges: dict[TopicPartition, int]) -> SmallWorld:
    owned = world.lives[index].ownership.owned
    batch = tuple((p, start, owned[p].epoch) for p, start in sorted(ranges.items()))
    world = _told(world, index, told.BatchBegan(tuple(ranges)))
    lives = list(world.lives)
    lives[index] = replace(lives[index], batch=batch)
    return replace(world, lives=(lives[0], lives[1]))


def _batch_ended(world: SmallWorld, index: int) -> SmallWorld:
    """One record of every partition, by compare-and-set."""
    ledger = list(world.ledger)
    committed: dict[TopicPartition, int] = {}
    refused = []
    for partition, start, _ in world.lives[index].batch:
        if ledger[partition.partition] == start:
            ledger[partition.partition] = committed[partition] = start + 1
        else:
            refused.append(partition)
    lives = list(world.lives)
    lives[index] = replace(lives[index], batch=())
    world = replace(world, lives=(lives[0], lives[1]), ledger=(ledger[0], ledger[1], ledger[2]))
    return _told(world, index, told.BatchEnded(committed, refused))


# What can happen next


def ordinary(world: SmallWorld) -> Iterator[SmallWorld]:
    """What happens without any fault, in every order."""
    if world.to_controller:
        first, *rest = world.to_controller
        calmer = replace(world, to_controller=tuple(rest), quiet_rounds=0)
        yield _step(calmer, inputs.ConsumerSpoke(world.controller.now_ms, first))
    for index in range(2):
        box = world.to_consumer[index]
        if box:
            yield _read(_without(world, index, 0), index, box[0])
        life = world.lives[index]
        if life.reads:
            yield _ledger_read(world, index)
        if life.batch:
            yield _batch_ended(world, index)
        else:
            readable = life.ownership.readable
            ranges = {p: start for p, start in readable.items() if start < world.records}
            if ranges:
                yield _batch_begun(world, index, ranges)


def _without(world: SmallWorld, index: int, place: int) -> SmallWorld:
    boxes = list(world.to_consumer)
    boxes[index] = boxes[index][:place] + boxes[index][place + 1 :]
    return replace(world, to_consumer=(boxes[0], boxes[1]), quiet_rounds=0)


def faulty(world: SmallWorld) -> Iterator[SmallWorld]:
    """One fault, at every place where it can be."""
    if not world.faults_left:
        return
    hurt = replace(world, faults_left=world.faults_left - 1)
    for index in range(2):
        box = world.to_consumer[index]
        if box:
            yield _without(hurt, index, 0)
            yield _read(hurt, index, box[0])
        if len(box) > 1:
            yield _read(_without(hurt, index, 1), index, box[1])
        yield _restarted(hurt, ConsumerId(index + 1))
    said = world.to_controller
    if said:
        now = world.controller.now_ms
        first = inputs.ConsumerSpoke(now, said[0])
        yield replace(hurt, to_controller=said[1:])
        yield _step(hurt, first)
        if len(said) > 1:
            overtaken = replace(hurt, to_controller=(said[0], *said[2:]))
            yield _step(overtaken, inputs.ConsumerSpoke(now, said[1]))
        _, effects = Machine().step(world.controller, first)
        for number in range(len(effects)):
            yield _step(replace(hurt, to_controller=said[1:]), first, die_after=number)


def quiet(world: SmallWorld) -> SmallWorld:
    """Nothing is on its way: time passes, and the consumers report."""
    if world.quiet_rounds >= QUIET_ROUNDS_MAX:
        raise ViolationError("L1", "nothing happens any more, and the group has not converged")
    now = world.controller.now_ms + QUIET_MS
    rounds = world.quiet_rounds + 1
    world = _step(world, inputs.SpeedsMeasured(now, SPEEDS))
    world = _step(world, inputs.Tick(now))
    for index in range(2):
        world = _told(world, index, told.ReportDue())
    return replace(world, quiet_rounds=rounds)
