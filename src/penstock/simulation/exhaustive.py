"""The search through every state of a small world: what was seen, what ends where.

Two worlds are the same when everything but the absolute time is. What is found is counted, and the
tests pin the numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass

from penstock.controller.state import HoldingStatus, Phase
from penstock.messages import Message
from penstock.simulation.small_world import (
    PARTITIONS,
    Life,
    SmallWorld,
    beginning,
    faulty,
    ordinary,
    quiet,
)


def has_converged(world: SmallWorld) -> bool:
    state = world.controller
    if state.phase is not Phase.SENTINEL or state.in_flight:
        return False
    for partition in PARTITIONS:
        holding = state.holdings.get(partition)
        if holding is None or holding.status is not HoldingStatus.OWNED:
            return False
        for life in world.lives:
            owned = life.ownership.owned.get(partition)
            is_owner = life.ownership.consumer_id == holding.consumer
            if is_owner != (owned is not None and owned.next_offset is not None):
                return False
    return True


def key_of(world: SmallWorld) -> object:
    """What makes two worlds the same: everything but the absolute time."""
    state = world.controller
    now = state.now_ms
    return (
        state.phase,
        state.controller_epoch,
        state.plan_number,
        state.epochs_used,
        tuple((c, r.status, r.incarnation, r.sequence) for c, r in sorted(state.consumers.items())),
        tuple(
            (p, h.consumer, h.incarnation, h.epoch, h.status, now - h.since_ms, now - h.sent_ms)
            for p, h in sorted(state.holdings.items())
        ),
        None if state.plan is None else state.plan.open,
        tuple(sorted(state.answers)),
        state.is_confirming,
        tuple(_life_key(life) for life in world.lives),
        tuple(tuple(_message_key(m) for m in box) for box in world.to_consumer),
        tuple(_message_key(m) for m in world.to_controller),
        world.ledger,
        world.faults_left,
        world.saved is None or (world.saved.plan_number, world.saved.controller_epoch),
        world.quiet_rounds,
    )


def _life_key(life: Life) -> object:
    own = life.ownership
    return (
        own.incarnation,
        own.sequence,
        own.controller_epoch,
        own.plan_number,
        tuple(sorted(own.owned.items(), key=lambda item: item[0])),
        tuple(sorted(own.ended.items())),
        own.queries,
        life.reads,
        life.batch,
    )


def _message_key(message: Message) -> object:
    return message.event_type, *(v for v in message.__dict__.values())


@dataclass(frozen=True, slots=True)
class Explored:
    states: int
    endings: int


def explore(
    faults: int,
    *,
    has_all_orders: bool = True,
    has_batches: bool = True,
    after_each: Callable[[int], None] | None = None,
) -> Explored:
    """Every state that can be reached. Raises at the first violation.

    Without `has_all_orders` what is no fault happens in one order only, and what overtakes is a
    fault: that is how three faults stay within reach.
    """
    start = beginning(faults)
    seen = {hash(key_of(start))}
    todo = [start]
    endings = 0
    while todo:
        world = todo.pop()
        following = list(ordinary(world, has_batches=has_batches))
        if not has_all_orders:
            following = following[:1]
        if not following:
            if has_converged(world) and not world.faults_left:
                endings += 1
                continue
            if has_converged(world):
                endings += 1
            else:
                following = [quiet(world)]
        following += faulty(world)
        for candidate in following:
            key = hash(key_of(candidate))
            if key not in seen:
                seen.add(key)
                todo.append(candidate)
                if after_each is not None:
                    after_each(len(seen))
    return Explored(len(seen), endings)
