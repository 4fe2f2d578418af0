"""When to repack: a pure policy, the same in `penstock simulate --trigger` and in the controller.

    memory, verdict = decide(policy, memory, speeds, assignment, now_s)
    if verdict.repack:
        packing = algorithm.pack(problem_for(policy, speeds, assignment))
        if is_worthwhile(policy, verdict, assignment, packing): ...carry it out
        memory = after_repack(memory, verdict, now_s, changed=...)

Two capacities keep it calm. A consumer raises the alarm above `capacity_bytes_per_s`, but is packed
only to a share of it (the hysteresis), so that a packing does not stand at the brink. A consumer
between the two is left as it is: it gets nothing more and loses nothing.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf, nextafter
from typing import ClassVar

from penstock.model import Assignment, ConsumerId, TopicPartition
from penstock.packing.lower_bound import consumers_at_least
from penstock.packing.problem import Packing, PackingProblem
from penstock.packing.scores import loads_bytes_per_s


class Reason(StrEnum):
    """Why to repack, the most urgent first."""

    CONSUMER_GONE = "consumer-gone"
    UNASSIGNED_PARTITION = "unassigned-partition"
    PARTITION_VANISHED = "partition-vanished"
    OVER_CAPACITY = "over-capacity"
    FEWER_CONSUMERS = "fewer-consumers"
    CALM = "calm"


@dataclass(frozen=True, slots=True)
class TriggerPolicy:
    """When the packer runs. The defaults are what docs/studies/frequency.md found.

    `hysteresis` is the share of a consumer's capacity left free when packing.
    """

    HYSTERESIS: ClassVar[float] = 0.1
    SCALE_DOWN_PERIOD_S: ClassVar[float] = 60.0

    capacity_bytes_per_s: float
    hysteresis: float = HYSTERESIS
    scale_down_period_s: float = SCALE_DOWN_PERIOD_S
    consumers_saved_min: int = 1
    over_capacity_s: float = 0.0
    futile_wait_s: float = 60.0
    partitions_per_consumer_max: int | None = None
    consumers_max: int | None = None

    def __post_init__(self) -> None:
        if not (0 < self.capacity_bytes_per_s < inf):
            raise ValueError(f"a capacity is a finite number > 0, got {self.capacity_bytes_per_s}")
        if not 0 <= self.hysteresis < 1:
            raise ValueError(f"hysteresis is a share from 0 to below 1, got {self.hysteresis}")
        for wait_s in (self.scale_down_period_s, self.over_capacity_s, self.futile_wait_s):
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
    futile_at_s: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    reason: Reason
    words: str

    @property
    def repack(self) -> bool:
        return self.reason is not Reason.CALM


def decide(
    policy: TriggerPolicy,
    memory: TriggerMemory,
    write_speed_bytes_per_s: Mapping[TopicPartition, float],
    assignment: Assignment,
    now_s: float,
    *,
    consumers_alive: Collection[ConsumerId] | None = None,
) -> tuple[TriggerMemory, Verdict]:
    """One measurement in, a verdict out. `consumers_alive` is None where deaths are not seen."""
    memory = _watch_overload(policy, memory, write_speed_bytes_per_s, assignment, now_s)
    verdict = _membership(write_speed_bytes_per_s, assignment, consumers_alive)
    if verdict is None:
        verdict = _overload(policy, memory, now_s)
    if verdict is not None:
        return memory, verdict
    last = memory.looked_for_fewer_at_s
    if last is None:
        return replace(memory, looked_for_fewer_at_s=now_s), _calm("The load is carried.")
    if now_s - last < policy.scale_down_period_s:
        return memory, _calm("The load is carried.")
    memory = replace(memory, looked_for_fewer_at_s=now_s)
    return memory, _fewer(policy, write_speed_bytes_per_s, assignment)


def problem_for(
    policy: TriggerPolicy,
    write_speed_bytes_per_s: Mapping[TopicPartition, float],
    assignment: Assignment,
    forecast_bytes_per_s: Mapping[TopicPartition, float] | None = None,
) -> PackingProblem:
    """The question to the packer: pack to the lower capacity, leave alone who is in between."""
    capacity = policy.packing_capacity_bytes_per_s
    loads = loads_bytes_per_s(assignment, write_speed_bytes_per_s)
    in_between = {
        ConsumerId(consumer): nextafter(load, inf)
        for consumer, load in loads.items()
        if capacity < load <= policy.capacity_bytes_per_s
    }
    return PackingProblem(
        write_speed_bytes_per_s=write_speed_bytes_per_s,
        current=assignment,
        capacity_bytes_per_s=capacity,
        capacity_bytes_per_s_by_consumer=in_between,
        partitions_per_consumer_max=policy.partitions_per_consumer_max,
        consumers_max=policy.consumers_max,
        forecast_bytes_per_s=forecast_bytes_per_s or {},
    )


def is_worthwhile(
    policy: TriggerPolicy, verdict: Verdict, assignment: Assignment, packing: Packing
) -> bool:
    """What must be repaired is; a packing that only saves consumers must save enough of them."""
    if verdict.reason is not Reason.FEWER_CONSUMERS:
        return verdict.repack
    saved = _holding(assignment) - _holding(packing.assignment)
    return saved >= policy.consumers_saved_min


def after_repack(
    memory: TriggerMemory, verdict: Verdict, now_s: float, *, changed: bool
) -> TriggerMemory:
    """To be called after every repack.

    If consumers were over their capacity and nothing could be changed, that is not tried again at
    once; looking in vain for fewer consumers has its own timer.
    """
    if changed:
        return replace(memory, over_since_s={}, futile_at_s=None)
    if verdict.reason is Reason.OVER_CAPACITY:
        return replace(memory, futile_at_s=now_s)
    return memory


def _calm(words: str) -> Verdict:
    return Verdict(Reason.CALM, words)


def _holding(assignment: Assignment) -> int:
    return sum(1 for partitions in assignment.values() if partitions)


def _membership(
    speeds: Mapping[TopicPartition, float],
    assignment: Assignment,
    consumers_alive: Collection[ConsumerId] | None,
) -> Verdict | None:
    owners = assignment.owners
    if consumers_alive is not None:
        gone = [c for c in assignment if assignment[c] and c not in consumers_alive]
        if gone:
            return Verdict(Reason.CONSUMER_GONE, f"Consumer {gone[0]} is gone.")
    unowned = sorted(partition for partition in speeds if partition not in owners)
    if unowned:
        words = f"{len(unowned)} partitions have no consumer, first {unowned[0]}."
        return Verdict(Reason.UNASSIGNED_PARTITION, words)
    vanished = sorted(partition for partition in owners if partition not in speeds)
    if vanished:
        words = f"{len(vanished)} partitions are gone, first {vanished[0]}."
        return Verdict(Reason.PARTITION_VANISHED, words)
    return None


def _watch_overload(
    policy: TriggerPolicy,
    memory: TriggerMemory,
    speeds: Mapping[TopicPartition, float],
    assignment: Assignment,
    now_s: float,
) -> TriggerMemory:
    """Since when each consumer is over its capacity.

    One partition alone is never too much: no packing could help it.
    """
    loads = loads_bytes_per_s(assignment, speeds)
    over = {
        consumer: memory.over_since_s.get(consumer, now_s)
        for consumer in assignment
        if loads[consumer] > policy.capacity_bytes_per_s and len(assignment[consumer]) > 1
    }
    return replace(memory, over_since_s=over)


def _overload(policy: TriggerPolicy, memory: TriggerMemory, now_s: float) -> Verdict | None:
    if memory.futile_at_s is not None and now_s - memory.futile_at_s < policy.futile_wait_s:
        return None
    over = [
        c for c, since in memory.over_since_s.items() if now_s - since >= policy.over_capacity_s
    ]
    if not over:
        return None
    words = f"{len(over)} consumers are over their capacity, first {over[0]}."
    return Verdict(Reason.OVER_CAPACITY, words)


def _fewer(
    policy: TriggerPolicy, speeds: Mapping[TopicPartition, float], assignment: Assignment
) -> Verdict:
    least = consumers_at_least(problem_for(policy, speeds, Assignment()))
    held = _holding(assignment)
    if held - least < policy.consumers_saved_min:
        return _calm(f"{held} consumers carry the load; no fewer than {least} could.")
    return Verdict(Reason.FEWER_CONSUMERS, f"{held} consumers carry what {least} might.")
