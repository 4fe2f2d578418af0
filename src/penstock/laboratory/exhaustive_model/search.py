"""The search through every state of a small group: what was seen, and where it ends.

Two groups are the same when everything but the absolute time is. States are counted, and the tests
pin the numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from penstock.controller.core.state import HoldingStatus, Phase, State
from penstock.laboratory.exhaustive_model.next_steps import (
    faulty_steps,
    idle_step,
    initial_group,
    ordinary_steps,
)
from penstock.laboratory.exhaustive_model.small_group import (
    PARTITIONS,
    RunningConsumer,
    SmallGroup,
)
from penstock.messages import Message

Part = TypeVar("Part")
KEYS_KEPT = 10_000


def has_converged(group: SmallGroup) -> bool:
    state = group.controller
    if state.phase is not Phase.SENTINEL or state.in_flight:
        return False
    if any(offset != group.records for offset in group.ledger):
        return False
    for partition in PARTITIONS:
        holding = state.holdings.get(partition)
        if holding is None or holding.status is not HoldingStatus.OWNED:
            return False
        for consumer in group.running:
            owned = consumer.ownership.owned.get(partition)
            is_owner = consumer.ownership.consumer_id == holding.consumer
            if is_owner != (owned is not None and owned.next_offset is not None):
                return False
    return True


class Keys:
    """What makes two groups the same: everything that can matter later, and no absolute time.

    A step changes few parts of a group: the others are the same objects as before, and their keys
    are known.
    """

    def __init__(self) -> None:
        self._controller = _KnownKeys(_controller_key)
        self._saved = _KnownKeys(_saved_key)
        self._consumer = _KnownKeys(_consumer_key)
        self._message = _KnownKeys(_message_key)

    def of(self, group: SmallGroup) -> int:
        now_ms, message = group.controller.now_ms, self._message.of
        return hash(
            (
                self._controller.of(group.controller),
                None if group.saved is None else self._saved.of(group.saved),
                tuple(
                    (self._consumer.of(one), one.state.batches.next_look_ms <= now_ms)
                    for one in group.running
                ),
                tuple(tuple(message(m) for m in box) for box in group.to_consumer),
                tuple(message(m) for m in group.to_controller),
                group.ledger,
                group.faults_left,
                group.fenced,
                group.idle_rounds,
            )
        )


class _KnownKeys(Generic[Part]):
    """The hash of the key of each object that was seen lately."""

    def __init__(self, key_of: Callable[[Part], object]) -> None:
        self._key_of = key_of
        # The object is kept too, so that no other one gets its id.
        self._known: dict[int, tuple[Part, int]] = {}

    def of(self, part: Part) -> int:
        known = self._known.get(id(part))
        if known is not None:
            return known[1]
        if len(self._known) >= KEYS_KEPT:
            self._known.clear()
        key = hash(self._key_of(part))
        self._known[id(part)] = (part, key)
        return key


def _controller_key(state: State) -> object:
    """Times as ages; without history and counters, which decide nothing."""
    now, heartbeat_time = state.now_ms, state.heartbeats.heartbeat_time_ms
    speeds, plan, trigger = state.speeds, state.plan, state.trigger
    return (
        (state.phase, state.controller_epoch, state.plan_number, state.epochs_used),
        (state.queries_sent, now - state.phase_since_ms, now - state.ticked_ms),
        tuple(
            (
                (c, r.status, r.incarnation, r.sequence),
                (
                    heartbeat_time - r.since_heartbeat_time_ms,
                    heartbeat_time - r.heard_heartbeat_time_ms,
                ),
            )
            for c, r in sorted(state.consumers.items())
        ),
        tuple((c, now - asked_ms) for c, asked_ms in sorted(state.departing.items())),
        tuple(sorted(state.incarnation_floor.items())),
        tuple(
            (
                p,
                replace(
                    h,
                    since_heartbeat_time_ms=heartbeat_time - h.since_heartbeat_time_ms,
                    sent_ms=now - h.sent_ms,
                ),
            )
            for p, h in sorted(state.holdings.items())
        ),
        tuple((p, now - parked.until_ms) for p, parked in sorted(state.parked.items())),
        None
        if speeds is None
        else (now - speeds.measured_ms, tuple(sorted(speeds.bytes_per_s.items()))),
        None
        if plan is None
        else (plan.number, tuple(sorted(plan.target.items())), plan.open, now - plan.made_ms),
        (state.is_listed, state.is_confirming, state.is_confirmed),
        heartbeat_time - state.synchronising_since_heartbeat_time_ms
        if state.phase is Phase.SYNCHRONIZE
        else 0,
        None
        if state.shared_silence is None
        else heartbeat_time - state.shared_silence.gave_up_heartbeat_time_ms,
        (now - state.listed_ms, now - state.asked_ms),
        None if state.list_again_ms is None else now - state.list_again_ms,
        tuple((c, _message_key(answer)) for c, answer in sorted(state.answers.items())),
        (state.packing_number, state.packing_code, state.packing_consumers),
        (tuple(sorted(trigger.over_since_ms.items())), trigger.no_gain_at_ms),
    )


def _saved_key(saved: State) -> object:
    """What the next incarnation takes from it."""
    return (
        (saved.controller_epoch, saved.plan_number, saved.queries_sent),
        tuple(sorted(saved.incarnation_floor.items())),
        tuple((c, r.status, r.incarnation) for c, r in sorted(saved.consumers.items())),
        tuple(sorted(saved.departing)),
    )


def _consumer_key(consumer: RunningConsumer) -> object:
    """Without what was counted and measured, which the reports of this group leave out."""
    own = consumer.ownership
    batches = consumer.state.batches
    return (
        own.incarnation,
        own.sequence,
        own.controller_epoch,
        own.plan_number,
        tuple(sorted(own.owned.items(), key=lambda item: item[0])),
        tuple(sorted(own.ended.items())),
        own.queries,
        tuple(sorted(consumer.state.lookups)),
        tuple((p, row.ledger_offset) for p, row in sorted(consumer.state.progress.items())),
        batches.looks_again,
        consumer.ledger_asked,
        consumer.ends_asked,
        consumer.batch,
    )


def _message_key(message: Message) -> object:
    return message.event_type, *(v for v in message.__dict__.values())


@dataclass(frozen=True, slots=True)
class Explored:
    states: int
    endings: int


def explore(
    faults: int, *, records: int, after_each: Callable[[int], None] | None = None
) -> Explored:
    """Visit every reachable state. Raises at the first violation.

    `records` is the number of records in each partition; 0 leaves batches out.
    """
    start = initial_group(faults, records)
    keys = Keys()
    seen = {keys.of(start)}
    todo = [start]
    endings = 0
    while todo:
        group = todo.pop()
        following = list(ordinary_steps(group))
        if not following:
            if has_converged(group):
                endings += 1
            else:
                following = [idle_step(group)]
        following += faulty_steps(group)
        for candidate in following:
            key = keys.of(candidate)
            if key not in seen:
                seen.add(key)
                todo.append(candidate)
                if after_each is not None:
                    after_each(len(seen))
    return Explored(len(seen), endings)
