"""When to repack: a pure policy, the same in `penstock simulate --trigger` and in the controller.

    memory, verdict = decide(policy, memory, group, now_s)
    if verdict.repack:
        packing = algorithm.pack(problem_for(policy, group, assignment))
        if is_worthwhile(policy, verdict.reason, assignment, packing): ...carry it out
        memory = after_repack(memory, verdict.reason, now_s, changed=...)

Two capacities keep it calm. A consumer raises the alarm above `capacity_bytes_per_s`, but is packed
only to a share of it (the hysteresis), so that a packing does not stand at the brink. A consumer
between the two is left as it is: it gets nothing more and loses nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf, nextafter
from typing import ClassVar

from penstock.model import Assignment, ConsumerId, TopicPartition
from penstock.model.shortened_list import shortened_list
from penstock.packing.lower_bound import consumers_at_least
from penstock.packing.problem import Packing, PackingProblem
from penstock.packing.scores import loads_bytes_per_s


class Reason(StrEnum):
    """Why to repack, the most urgent first."""

    UNASSIGNED_PARTITION = "unassigned-partition"
    PARTITION_VANISHED = "partition-vanished"
    OVER_CAPACITY = "over-capacity"
    FEWER_CONSUMERS = "fewer-consumers"
    CALM = "calm"


@dataclass(frozen=True, slots=True)
class GroupView:
    """What the trigger looks at: who carries how much of what it can, and what nobody reads.

    Only consumers that can work appear. The load of a partition is its write speed, and in the live
    group what it takes to be rid of a backlog. `is_fresh` is whether the load was measured lately.
    """

    owner: Mapping[TopicPartition, ConsumerId]
    load_bytes_per_s: Mapping[TopicPartition, float]
    load_by_consumer: Mapping[ConsumerId, float]
    partitions_by_consumer: Mapping[ConsumerId, int]
    capacity_by_consumer: Mapping[ConsumerId, float]
    unread: tuple[TopicPartition, ...] = ()
    vanished: tuple[TopicPartition, ...] = ()
    is_fresh: bool = True
    is_behind: bool = False


@dataclass(frozen=True, slots=True)
class TriggerPolicy:
    """When the packer runs. The defaults are what docs/development/studies/frequency.md found.

    `hysteresis` is the share of a consumer's capacity left free when packing.
    """

    HYSTERESIS: ClassVar[float] = 0.15
    SCALE_DOWN_PERIOD_S: ClassVar[float] = 300.0
    REPACK_INTERVAL_S: ClassVar[float] = 3.0
    FUTILE_WAIT_S: ClassVar[float] = 15.0

    capacity_bytes_per_s: float
    hysteresis: float = HYSTERESIS
    scale_down_period_s: float = SCALE_DOWN_PERIOD_S
    consumers_saved_min: int = 1
    over_capacity_s: float = 0.0
    repack_interval_s: float = REPACK_INTERVAL_S
    futile_wait_s: float = FUTILE_WAIT_S
    partitions_per_consumer_max: int | None = None
    consumers_max: int | None = None

    def __post_init__(self) -> None:
        if not (0 < self.capacity_bytes_per_s < inf):
            raise ValueError(f"a capacity is a finite number > 0, got {self.capacity_bytes_per_s}")
        if not 0 <= self.hysteresis < 1:
            raise ValueError(f"hysteresis is a share from 0 to below 1, got {self.hysteresis}")
        waits_s = (self.scale_down_period_s, self.over_capacity_s)
        for wait_s in (*waits_s, self.repack_interval_s, self.futile_wait_s):
            if not 0 <= wait_s < inf:
                raise ValueError(f"a wait is a finite number of seconds >= 0, got {wait_s}")
        if self.consumers_saved_min < 1:
            raise ValueError(f"a minimum gain is at least 1, got {self.consumers_saved_min}")

    @property
    def packing_capacity_bytes_per_s(self) -> float:
        return self.capacity_bytes_per_s * (1 - self.hysteresis)


@dataclass(frozen=True, slots=True)
class TriggerMemory:
    """What the trigger remembers between measurements. Starts empty."""

    over_since_s: Mapping[ConsumerId, float] = field(default_factory=dict)
    looked_for_fewer_at_s: float | None = None
    repacked_at_s: float | None = None
    futile_at_s: float | None = None


@dataclass(frozen=True, slots=True)
class TriggerDecision:
    reason: Reason
    explanation: str

    @property
    def repack(self) -> bool:
        return self.reason is not Reason.CALM


def view_of(
    policy: TriggerPolicy,
    write_speed_bytes_per_s: Mapping[TopicPartition, float],
    assignment: Assignment,
) -> GroupView:
    """A group as it is in a simulation: nobody dies, nobody is behind, all speeds are known."""
    owners = assignment.owners
    holding = {consumer: len(held) for consumer, held in assignment.items() if held}
    loads = loads_bytes_per_s(assignment, write_speed_bytes_per_s)
    return GroupView(
        owner=owners,
        load_bytes_per_s=write_speed_bytes_per_s,
        load_by_consumer={consumer: loads[consumer] for consumer in holding},
        partitions_by_consumer=holding,
        capacity_by_consumer=dict.fromkeys(holding, policy.capacity_bytes_per_s),
        unread=tuple(p for p in write_speed_bytes_per_s if p not in owners),
        vanished=tuple(p for p in owners if p not in write_speed_bytes_per_s),
    )


def decide(
    policy: TriggerPolicy, memory: TriggerMemory, group: GroupView, now_s: float
) -> tuple[TriggerMemory, TriggerDecision]:
    """One look at the group in, a verdict out."""
    memory = _watch_overload(memory, group, now_s)
    if memory.looked_for_fewer_at_s is None:
        memory = replace(memory, looked_for_fewer_at_s=now_s)
    verdict = _membership(group)
    if verdict is not None:
        return memory, verdict
    if not group.is_fresh:
        return memory, _calm("the last measurement is too old to act on")
    if _is_within(memory.repacked_at_s, policy.repack_interval_s, now_s):
        return memory, _calm("the last plan was made a moment ago")
    verdict = _overload(policy, memory, now_s)
    return (memory, verdict) if verdict is not None else _scale_down(policy, memory, group, now_s)


def _scale_down(
    policy: TriggerPolicy, memory: TriggerMemory, group: GroupView, now_s: float
) -> tuple[TriggerMemory, TriggerDecision]:
    """On its own, slower timer."""
    if _is_within(memory.looked_for_fewer_at_s, policy.scale_down_period_s, now_s):
        return memory, _calm("the load is carried")
    if group.is_behind:
        return memory, _calm("the group is behind, and is not made smaller")
    return replace(memory, looked_for_fewer_at_s=now_s), _fewer(policy, group)


def problem_for(
    policy: TriggerPolicy,
    group: GroupView,
    assignment: Assignment,
    forecast_bytes_per_s: Mapping[TopicPartition, float] | None = None,
) -> PackingProblem:
    """The question to the packer: pack to the lower capacity, leave alone who is in between."""
    usual = policy.packing_capacity_bytes_per_s
    capacities = {
        consumer: _packed_to(capacity, policy.hysteresis, group.load_by_consumer.get(consumer, 0.0))
        for consumer, capacity in group.capacity_by_consumer.items()
    }
    return PackingProblem(
        write_speed_bytes_per_s=group.load_bytes_per_s,
        current=assignment,
        capacity_bytes_per_s=usual,
        capacity_bytes_per_s_by_consumer={c: x for c, x in capacities.items() if x != usual},
        partitions_per_consumer_max=policy.partitions_per_consumer_max,
        consumers_max=policy.consumers_max,
        forecast_bytes_per_s=forecast_bytes_per_s or {},
    )


def _packed_to(capacity: float, hysteresis: float, load: float) -> float:
    packed_to = capacity * (1 - hysteresis)
    return nextafter(load, inf) if packed_to < load <= capacity else packed_to


def is_worthwhile(
    policy: TriggerPolicy, reason: Reason, assignment: Assignment, packing: Packing
) -> bool:
    """What must be repaired is; a packing that only saves consumers must save enough of them."""
    if reason is not Reason.FEWER_CONSUMERS:
        return reason is not Reason.CALM
    saved = _number(assignment.owners.values()) - _number(packing.assignment.owners.values())
    return saved >= policy.consumers_saved_min


def after_repack(
    memory: TriggerMemory, reason: Reason, now_s: float, *, changed: bool
) -> TriggerMemory:
    """To be called after every repack.

    If consumers were over their capacity and nothing could be changed, that is not tried again at
    once; looking in vain for fewer consumers has its own timer.
    """
    if changed:
        return replace(memory, over_since_s={}, repacked_at_s=now_s, futile_at_s=None)
    if reason is Reason.OVER_CAPACITY:
        return replace(memory, futile_at_s=now_s)
    return memory


def _calm(explanation: str) -> TriggerDecision:
    return TriggerDecision(Reason.CALM, explanation)


def _names(partitions: Iterable[TopicPartition]) -> str:
    return shortened_list([str(partition) for partition in sorted(partitions)])


def _number(owners: Iterable[ConsumerId]) -> int:
    return len(set(owners))


def _is_within(since_s: float | None, wait_s: float, now_s: float) -> bool:
    return since_s is not None and now_s - since_s < wait_s


def _membership(group: GroupView) -> TriggerDecision | None:
    if group.unread:
        explanation = f"nobody reads {_names(group.unread)}"
        return TriggerDecision(Reason.UNASSIGNED_PARTITION, explanation)
    if group.vanished:
        explanation = f"gone are {_names(group.vanished)}"
        return TriggerDecision(Reason.PARTITION_VANISHED, explanation)
    return None


def _watch_overload(memory: TriggerMemory, group: GroupView, now_s: float) -> TriggerMemory:
    """Since when each consumer is over its capacity.

    One partition alone is never too much: no packing could help it.
    """
    over = {
        consumer: memory.over_since_s.get(consumer, now_s)
        for consumer, load in group.load_by_consumer.items()
        if load > group.capacity_by_consumer[consumer]
        and group.partitions_by_consumer[consumer] > 1
    }
    return memory if over == memory.over_since_s else replace(memory, over_since_s=over)


def _overload(policy: TriggerPolicy, memory: TriggerMemory, now_s: float) -> TriggerDecision | None:
    if _is_within(memory.futile_at_s, policy.futile_wait_s, now_s):
        return None
    over = [
        c for c, since in memory.over_since_s.items() if now_s - since >= policy.over_capacity_s
    ]
    if not over:
        return None
    names = shortened_list([str(consumer) for consumer in sorted(over)])
    return TriggerDecision(Reason.OVER_CAPACITY, f"more is written than consumers {names} carry")


def _fewer(policy: TriggerPolicy, group: GroupView) -> TriggerDecision:
    """Whether fewer would do even if each could carry as much as the strongest."""
    strongest = max(group.capacity_by_consumer.values(), default=policy.capacity_bytes_per_s)
    problem = PackingProblem(
        group.load_bytes_per_s,
        Assignment(),
        strongest * (1 - policy.hysteresis),
        partitions_per_consumer_max=policy.partitions_per_consumer_max,
    )
    least, held = consumers_at_least(problem), len(group.partitions_by_consumer)
    if held - least < policy.consumers_saved_min:
        return _calm(f"{held} consumers carry the load; no fewer than {least} could")
    return TriggerDecision(Reason.FEWER_CONSUMERS, f"{least} consumers may do instead of {held}")
