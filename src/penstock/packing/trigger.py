"""When to repack: one pure policy for the controller, `recommend` and `simulate --trigger`.

    memory, decision = decide(policy, memory, group, now_ms)
    if decision.repack:
        after = algorithm.pack(problem_for(policy, group, decision.reason)).assignment
        if is_worthwhile(policy, group, decision.reason, after): ...carry out (see `worthwhile`)
        memory = after_repack(memory, decision.reason, now_ms, changed=...)

Two capacities keep the group calm. A consumer above `capacity_bytes_per_s` triggers a repack, but
consumers are filled only to `target_utilisation` of it, so that a packing does not end just below
the threshold. A consumer between the two keeps what it has and gets nothing more.

Growth follows speeds that last, and a smaller group must have been able to carry the highest speeds
of a whole period (see `speed_memory`). Where the maximum leaves consumers over their capacity, only
a real relief is worth a move.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import fsum, inf, nextafter

from penstock.model import Assignment, ConsumerId, TopicPartition
from penstock.model.sentences import counted, load_of_capacity, shortened_list
from penstock.packing.lower_bound import consumers_at_least
from penstock.packing.problem import PackingProblem
from penstock.packing.scores import loads_bytes_per_s
from penstock.packing.speed_memory import SpeedMemory


class Reason(StrEnum):
    """Why to repack, the most urgent first. The controller's history uses the same codes."""

    UNREAD_PARTITION = "unread_partition"
    PARTITION_VANISHED = "partition_vanished"
    OVER_MAXIMUM = "over_maximum"
    OVER_CAPACITY = "over_capacity"
    FEWER_WOULD_DO = "fewer_would_do"
    CALM = "calm"


@dataclass(frozen=True, slots=True)
class GroupLoad:
    """What the trigger looks at: who reads what, with what load, of what capacity.

    `current` names the consumers that can work, also those that read nothing. The load of a
    partition is its established write speed and, in the live group, a share of its backlog; a
    consumer's is that with the write speeds of the moment. `highest_bytes_per_s` is the highest
    load of a partition lately, where it was above the load. `is_fresh` is whether the load was
    measured lately; `measured_ms_ago` is None before the first measurement.
    """

    current: Assignment
    load_bytes_per_s: Mapping[TopicPartition, float]
    load_by_consumer: Mapping[ConsumerId, float]
    capacity_by_consumer: Mapping[ConsumerId, float]
    unread: tuple[TopicPartition, ...] = ()
    vanished: tuple[TopicPartition, ...] = ()
    highest_bytes_per_s: Mapping[TopicPartition, float] = field(default_factory=dict)
    is_fresh: bool = True
    measured_ms_ago: int | None = 0
    is_behind: bool = False
    # Where partitions cost differently, loads and capacities are weighted: for people they are
    # divided by this, by consumer.
    weight_by_consumer: Mapping[ConsumerId, float] = field(default_factory=dict)

    def load_for(self, reason: Reason) -> Mapping[TopicPartition, float]:
        """What a packing must carry: a smaller group also the highest loads of a while."""
        if reason is not Reason.FEWER_WOULD_DO or not self.highest_bytes_per_s:
            return self.load_bytes_per_s
        highest = self.highest_bytes_per_s
        return {p: max(load, highest.get(p, load)) for p, load in self.load_bytes_per_s.items()}

    def load_on(self, consumer: ConsumerId) -> float:
        """The established load of a consumer, without the speeds of the moment."""
        return fsum(self.load_bytes_per_s.get(p, 0.0) for p in self.current[consumer])


@dataclass(frozen=True, slots=True)
class TriggerPolicy:
    """When the packer runs, and within which bounds.

    No figure has a default here: the settings catalogue has, and `controller_settings` builds this
    from it. docs/development/studies/frequency.md says how those defaults were found.
    """

    capacity_bytes_per_s: float
    # The share of its capacity to which a consumer is filled.
    target_utilisation: float
    scale_down_period_ms: int
    # The fewest consumers that a plan must save when nothing else asks for it.
    consumers_saved_min: int
    # The least share by which a repack must lower the highest load of a consumer that stays over
    # its capacity.
    relief_min: float
    # How long a consumer must be over its capacity before that is a reason, and how long a speed
    # must last before growth follows it.
    over_capacity_ms: int
    # Two plans are at least this far apart, unless a partition has no reader.
    plan_interval_ms: int
    # After a repack that could not relieve an overload, the next one waits for this.
    no_gain_wait_ms: int
    # How far to follow the trend of the speeds when choosing a consumer; 0 ignores the trend.
    look_ahead_ms: int
    partitions_per_consumer_max: int | None
    consumers_max: int

    def __post_init__(self) -> None:
        if not (0 < self.capacity_bytes_per_s < inf):
            raise ValueError(f"a capacity is a finite number > 0, got {self.capacity_bytes_per_s}")
        if not 0 < self.target_utilisation <= 1:
            raise ValueError(
                f"target_utilisation is above 0 and at most 1, got {self.target_utilisation}"
            )
        waits_ms = (self.scale_down_period_ms, self.over_capacity_ms, self.plan_interval_ms)
        for wait_ms in (*waits_ms, self.no_gain_wait_ms, self.look_ahead_ms):
            if not 0 <= wait_ms < inf:
                raise ValueError(f"a wait is a finite number of milliseconds >= 0, got {wait_ms}")
        if not 0 <= self.relief_min < 1:
            raise ValueError(f"relief_min is at least 0 and below 1, got {self.relief_min}")
        if self.consumers_saved_min < 1:
            raise ValueError(f"a minimum gain is at least 1, got {self.consumers_saved_min}")

    @property
    def packing_capacity_bytes_per_s(self) -> float:
        return self.capacity_bytes_per_s * self.target_utilisation


@dataclass(frozen=True, slots=True)
class TriggerMemory:
    """What the trigger remembers between measurements. Starts empty."""

    over_since_ms: Mapping[ConsumerId, int] = field(default_factory=dict)
    began_ms: int = 0
    looked_for_fewer_at_ms: int | None = None
    was_behind: bool = False
    repacked_at_ms: int | None = None
    no_gain_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class TriggerDecision:
    """What the trigger says, with the figures in a sentence."""

    reason: Reason
    explanation: str

    @property
    def repack(self) -> bool:
        return self.reason is not Reason.CALM


def load_of_assignment(
    policy: TriggerPolicy,
    write_speed_bytes_per_s: Mapping[TopicPartition, float],
    assignment: Assignment,
    memory: SpeedMemory | None = None,
    weights: Mapping[str, float] | None = None,
) -> GroupLoad:
    """A group without faults or backlogs, as simulations and `recommend` imagine it.

    `weights` say how much the load of a topic counts for the capacity, where it is not 1.
    """
    owners = assignment.owners
    counts = weights or {}
    weighted = weighted_speeds(write_speed_bytes_per_s, counts)
    loads = loads_bytes_per_s(assignment, weighted)
    real = loads_bytes_per_s(assignment, write_speed_bytes_per_s) if counts else loads
    working = [consumer for consumer, held in assignment.items() if held]
    return GroupLoad(
        current=assignment,
        load_bytes_per_s=weighted
        if memory is None
        else weighted_speeds(memory.established, counts),
        highest_bytes_per_s={} if memory is None else weighted_speeds(memory.highest, counts),
        load_by_consumer={consumer: loads[consumer] for consumer in working},
        capacity_by_consumer=dict.fromkeys(working, policy.capacity_bytes_per_s),
        unread=tuple(p for p in write_speed_bytes_per_s if p not in owners),
        vanished=tuple(p for p in owners if p not in write_speed_bytes_per_s),
        weight_by_consumer={c: loads[c] / real[c] for c in working if counts and real[c]},
    )


def weighted_speeds(
    speeds: Mapping[TopicPartition, float], weights: Mapping[str, float]
) -> Mapping[TopicPartition, float]:
    """As they count for the capacity; `weights` are by topic, where it is not 1."""
    if not weights:
        return speeds
    return {p: speed * weights.get(p.topic, 1.0) for p, speed in speeds.items()}


def decide(
    policy: TriggerPolicy, memory: TriggerMemory, group: GroupLoad, now_ms: int
) -> tuple[TriggerMemory, TriggerDecision]:
    """Whether to repack now, and why."""
    memory = _note_overload(memory, group, now_ms)
    if memory.looked_for_fewer_at_ms is None:
        memory = replace(memory, began_ms=now_ms, looked_for_fewer_at_ms=now_ms)
    if group.is_behind != memory.was_behind:
        memory = _note_backlog(memory, policy, is_behind=group.is_behind, now_ms=now_ms)
    decision = _partitions_changed(group)
    if decision is not None:
        return memory, decision
    if not group.is_fresh:
        return memory, _calm(_how_old(group.measured_ms_ago))
    if _is_within(memory.repacked_at_ms, policy.plan_interval_ms, now_ms):
        least = f"{policy.plan_interval_ms / 1_000:g} s"
        return memory, _calm(f"the last plan was made less than {least} ago")
    if not _is_within(memory.no_gain_at_ms, policy.no_gain_wait_ms, now_ms):
        decision = _over_maximum(policy, group) or _over_capacity(policy, memory, group, now_ms)
    return (memory, decision) if decision else _scale_down(policy, memory, group, now_ms)


def problem_for(
    policy: TriggerPolicy,
    group: GroupLoad,
    reason: Reason,
    forecast_bytes_per_s: Mapping[TopicPartition, float] | None = None,
) -> PackingProblem:
    """The packer's question: fill consumers to the target.

    Consumers between target and capacity keep their partitions.
    """
    usual = policy.packing_capacity_bytes_per_s
    load = group.load_for(reason)
    capacities = {
        consumer: _filled_to(policy, capacity, load_of_consumer(group.current, consumer, load))
        for consumer, capacity in group.capacity_by_consumer.items()
    }
    return PackingProblem(
        load_bytes_per_s=load,
        current=group.current,
        capacity_bytes_per_s=usual,
        capacity_bytes_per_s_by_consumer={c: x for c, x in capacities.items() if x != usual},
        partitions_per_consumer_max=policy.partitions_per_consumer_max,
        consumers_max=policy.consumers_max,
        forecast_bytes_per_s=forecast_bytes_per_s or {},
    )


def _filled_to(policy: TriggerPolicy, capacity: float, load: float) -> float:
    filled_to = capacity * policy.target_utilisation
    return nextafter(load, inf) if filled_to < load <= capacity else filled_to


def load_of_consumer(
    assignment: Assignment, consumer: ConsumerId, load: Mapping[TopicPartition, float]
) -> float:
    # Exact, so that the order of a set does not matter.
    return fsum(load.get(partition, 0.0) for partition in assignment.get(consumer, ()))


def after_repack(
    memory: TriggerMemory, reason: Reason, now_ms: int, *, changed: bool
) -> TriggerMemory:
    """To be called after every repack.

    A repair that changed nothing is not tried again at once; looking for fewer consumers has its
    own timer.
    """
    if changed:
        return replace(memory, over_since_ms={}, repacked_at_ms=now_ms, no_gain_at_ms=None)
    if reason in {Reason.OVER_CAPACITY, Reason.OVER_MAXIMUM}:
        return replace(memory, no_gain_at_ms=now_ms)
    return memory


def try_again(memory: TriggerMemory) -> TriggerMemory:
    """The settings changed: a repack that gained nothing before may gain something now."""
    return replace(memory, no_gain_at_ms=None)


def _calm(explanation: str) -> TriggerDecision:
    return TriggerDecision(Reason.CALM, explanation)


def _how_old(measured_ms_ago: int | None) -> str:
    if measured_ms_ago is None:
        return "nothing is measured yet"
    return f"the last measurement is {measured_ms_ago / 1_000:.1f} s old, too old to act on"


def _names(partitions: Iterable[TopicPartition]) -> str:
    return shortened_list([str(partition) for partition in sorted(partitions)])


def _is_within(since_ms: int | None, wait_ms: int, now_ms: int) -> bool:
    return since_ms is not None and now_ms - since_ms < wait_ms


def _partitions_changed(group: GroupLoad) -> TriggerDecision | None:
    if group.unread:
        explanation = f"no consumer reads {_names(group.unread)}"
        return TriggerDecision(Reason.UNREAD_PARTITION, explanation)
    if group.vanished:
        explanation = f"partitions are gone: {_names(group.vanished)}"
        return TriggerDecision(Reason.PARTITION_VANISHED, explanation)
    return None


def _over_maximum(policy: TriggerPolicy, group: GroupLoad) -> TriggerDecision | None:
    """The maximum was lowered below the number of consumers that have partitions."""
    working = len(group.load_by_consumer)
    if working <= policy.consumers_max:
        return None
    explanation = f"{working} consumers have partitions, the maximum is {policy.consumers_max}"
    return TriggerDecision(Reason.OVER_MAXIMUM, explanation)


def is_over_capacity(group: GroupLoad) -> bool:
    """Whether a consumer is over its capacity now, and a packing can help it."""
    return any(_is_over(group, consumer) for consumer in group.load_by_consumer)


def _is_over(group: GroupLoad, consumer: ConsumerId) -> bool:
    """A consumer with one partition is never over: no packing could help it."""
    is_too_much = group.load_by_consumer[consumer] > group.capacity_by_consumer[consumer]
    return is_too_much and len(group.current[consumer]) > 1


def _note_overload(memory: TriggerMemory, group: GroupLoad, now_ms: int) -> TriggerMemory:
    """Remember since when each consumer is over its capacity."""
    over = {
        consumer: memory.over_since_ms.get(consumer, now_ms)
        for consumer in group.load_by_consumer
        if _is_over(group, consumer)
    }
    return memory if over == memory.over_since_ms else replace(memory, over_since_ms=over)


def _note_backlog(
    memory: TriggerMemory, policy: TriggerPolicy, *, is_behind: bool, now_ms: int
) -> TriggerMemory:
    """A group that has caught up looks at once, if it knows the speeds of a whole period."""
    if is_behind:
        return replace(memory, was_behind=True)
    due_ms = max(memory.began_ms, now_ms - policy.scale_down_period_ms)
    return replace(memory, was_behind=False, looked_for_fewer_at_ms=due_ms)


def _over_capacity(
    policy: TriggerPolicy, memory: TriggerMemory, group: GroupLoad, now_ms: int
) -> TriggerDecision | None:
    """Consumers over capacity for `over_capacity_for`, by established speeds too."""
    over = sorted(
        consumer
        for consumer, since_ms in memory.over_since_ms.items()
        if now_ms - since_ms >= policy.over_capacity_ms
        and group.load_on(consumer) > group.capacity_by_consumer[consumer]
    )
    if not over:
        return None
    figures = {c: _figures(group, c) for c in over}
    if len(over) == 1:
        explanation = f"consumer {over[0]} is over capacity: {figures[over[0]]}"
    else:
        names = shortened_list([f"{consumer} ({figure})" for consumer, figure in figures.items()])
        explanation = f"consumers are over capacity: {names}"
    return TriggerDecision(Reason.OVER_CAPACITY, explanation)


def _figures(group: GroupLoad, consumer: ConsumerId) -> str:
    weight = group.weight_by_consumer.get(consumer, 1.0)
    load, capacity = group.load_by_consumer[consumer], group.capacity_by_consumer[consumer]
    return load_of_capacity(load / weight, capacity / weight)


def _scale_down(
    policy: TriggerPolicy, memory: TriggerMemory, group: GroupLoad, now_ms: int
) -> tuple[TriggerMemory, TriggerDecision]:
    """On its own, slower timer."""
    if _is_within(memory.looked_for_fewer_at_ms, policy.scale_down_period_ms, now_ms):
        return memory, _calm("no consumer is over capacity")
    if group.is_behind:
        return memory, _calm("the group is behind, and is not made smaller")
    return replace(memory, looked_for_fewer_at_ms=now_ms), _fewer(policy, group)


def _fewer(policy: TriggerPolicy, group: GroupLoad) -> TriggerDecision:
    """Whether fewer would do even if each could carry as much as the strongest."""
    strongest = max(group.capacity_by_consumer.values(), default=policy.capacity_bytes_per_s)
    highest = group.load_for(Reason.FEWER_WOULD_DO)
    problem = PackingProblem(
        highest,
        Assignment(),
        strongest * policy.target_utilisation,
        partitions_per_consumer_max=policy.partitions_per_consumer_max,
    )
    least, working = consumers_at_least(problem), len(group.load_by_consumer)
    load = load_of_capacity(sum(highest.values()), least * strongest)
    if working - least < policy.consumers_saved_min:
        return _calm(f"{counted(least, 'consumer')} at least must carry the load: {load}")
    explanation = f"{counted(least, 'consumer')} may do instead of {working}: {load}"
    return TriggerDecision(Reason.FEWER_WOULD_DO, explanation)
