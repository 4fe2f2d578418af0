"""The group that `penstock recommend` leads: the controller's own rules, and no consumer. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from penstock.cli.known_capacities import KnownCapacities
from penstock.cli.watched import Watched
from penstock.controller.core.capacity import Capacities, Source, speeds_by_topic
from penstock.model import Assignment, TopicPartition
from penstock.model.sentences import counted, speed_text
from penstock.packing import PackingAlgorithm, PackingProblem
from penstock.packing.lower_bound import consumers_at_least
from penstock.packing.same_size import same_size_or_larger
from penstock.packing.scores import moves_between
from penstock.packing.speed_memory import SpeedMemory, remember
from penstock.packing.trend import Trend, forecast, observe
from penstock.packing.trigger import (
    Reason,
    TriggerMemory,
    TriggerPolicy,
    after_repack,
    decide,
    load_of_assignment,
    problem_for,
    weighted_speeds,
)
from penstock.packing.worthwhile import is_worthwhile


@dataclass(slots=True)
class ImaginaryGroup:
    """The group that the recommendation leads: what the controller would remember."""

    policy: TriggerPolicy
    algorithm: PackingAlgorithm
    known: KnownCapacities
    assignment: Assignment = field(default_factory=Assignment)
    memory: TriggerMemory = field(default_factory=TriggerMemory)
    trend: Trend = field(default_factory=Trend)
    speeds: SpeedMemory = field(default_factory=SpeedMemory)

    def at_least(self, speeds: Mapping[TopicPartition, float]) -> int:
        """The fewest consumers that could carry these speeds, however they are packed."""
        policy, usual = self._weighed(speeds)
        group = load_of_assignment(policy, speeds, self.assignment, self.speeds, usual.weights)
        return consumers_at_least(problem_for(policy, group, Reason.OVER_CAPACITY, None))

    def _weighed(self, speeds: Mapping[TopicPartition, float]) -> tuple[TriggerPolicy, Capacities]:
        """With what one consumer carries of topics that are written like this."""
        usual = self.known.weighed(speeds_by_topic(speeds, speeds))
        return replace(self.policy, capacity_bytes_per_s=usual.usual_bytes_per_s), usual

    def measured(self, speeds: Mapping[TopicPartition, float], now_ms: int) -> tuple[str, bool]:
        """What the controller would do now, and whether that changes the assignment."""
        policy, usual = self._weighed(speeds)
        self.speeds = remember(
            self.speeds, speeds, now_ms, policy.over_capacity_ms, policy.scale_down_period_ms
        )
        self.trend = observe(self.trend, self.speeds.established, now_ms)
        group = load_of_assignment(policy, speeds, self.assignment, self.speeds, usual.weights)
        self.memory, decision = decide(policy, self.memory, group, now_ms)
        if not decision.repack:
            total = speed_text(sum(speeds.values()))
            partitions = counted(len(speeds), "partition")
            consumers = counted(len(self.assignment), "consumer")
            return f"{total} in {partitions} on {consumers}; {decision.explanation}.", False
        ahead = forecast(self.trend, policy.look_ahead_ms) if policy.look_ahead_ms else None
        expected = weighted_speeds(ahead or {}, usual.weights)
        problem = problem_for(policy, group, decision.reason, expected)
        packing = self.algorithm.pack(problem)
        before = self.assignment
        after = same_size_or_larger(policy, group, decision.reason, packing.assignment)
        changed = before != after and is_worthwhile(policy, group, decision.reason, after)
        self.memory = after_repack(self.memory, decision.reason, now_ms, changed=changed)
        if not changed:
            return f"{decision.explanation}; no better assignment was found.", False
        self.assignment = after
        lines = [_change(decision.explanation, problem, before, after, usual)]
        lines += [f"  {p} alone {self._too_much(p, usual)}." for p in packing.oversize]
        return "\n".join(lines), True

    def _too_much(self, partition: TopicPartition, usual: Capacities) -> str:
        """Of a partition that gets a consumer alone."""
        carried, topic = usual.of(partition.topic), partition.topic
        if self.speeds.established[partition] <= carried:
            return "fills one consumer"
        if self.known.source_of(topic) is not Source.ASSUMED:
            return "is more than one consumer carries"
        return f"may be more than one consumer carries, if one carries {speed_text(carried)}"


def take(
    watched: Watched, group: ImaginaryGroup, speeds: Mapping[TopicPartition, float], now_ms: int
) -> tuple[str, bool]:
    """One measurement: what the imaginary group does with it, and what is remembered of that."""
    before = group.assignment
    text, is_change = group.measured(speeds, now_ms)
    watched.note(dict(speeds), group.known)
    watched.consumers.add(len(group.assignment))
    watched.consumers_at_least = max(watched.consumers_at_least, group.at_least(speeds))
    if is_change and before:
        watched.changes += 1
        watched.moves += moves_between(before, group.assignment, speeds).partitions
    return text, is_change


def _change(
    why: str, problem: PackingProblem, before: Assignment, after: Assignment, usual: Capacities
) -> str:
    least, weights = consumers_at_least(problem), usual.weights
    real = {p: load / weights.get(p.topic, 1.0) for p, load in problem.load_bytes_per_s.items()}
    moved = moves_between(before, after, real)
    return (
        f"{why[0].upper()}{why[1:]}. Would use {counted(len(after), 'consumer')} (at least {least} "
        f"needed), moving {counted(moved.partitions, 'partition')} "
        f"({speed_text(moved.load_bytes_per_s)})."
    )
