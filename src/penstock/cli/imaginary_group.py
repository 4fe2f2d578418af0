"""The group that `penstock recommend` leads: the controller's own rules, and no consumer. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.cli.recommendation import Watched
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
)
from penstock.packing.worthwhile import is_worthwhile


@dataclass(slots=True)
class ImaginaryGroup:
    """The group that the recommendation leads: what the controller would remember."""

    policy: TriggerPolicy
    algorithm: PackingAlgorithm
    assignment: Assignment = field(default_factory=Assignment)
    memory: TriggerMemory = field(default_factory=TriggerMemory)
    trend: Trend = field(default_factory=Trend)
    speeds: SpeedMemory = field(default_factory=SpeedMemory)

    def at_least(self, speeds: Mapping[TopicPartition, float]) -> int:
        """The fewest consumers that could carry these speeds, however they are packed."""
        group = load_of_assignment(self.policy, speeds, self.assignment, self.speeds)
        return consumers_at_least(problem_for(self.policy, group, Reason.OVER_CAPACITY, None))

    def measured(self, speeds: Mapping[TopicPartition, float], now_ms: int) -> tuple[str, bool]:
        """What the controller would do now, and whether that changes the assignment."""
        policy = self.policy
        self.speeds = remember(
            self.speeds, speeds, now_ms, policy.over_capacity_ms, policy.scale_down_period_ms
        )
        self.trend = observe(self.trend, self.speeds.established, now_ms)
        group = load_of_assignment(policy, speeds, self.assignment, self.speeds)
        self.memory, decision = decide(policy, self.memory, group, now_ms)
        if not decision.repack:
            total = speed_text(sum(speeds.values()))
            partitions = counted(len(speeds), "partition")
            consumers = counted(len(self.assignment), "consumer")
            return f"{total} in {partitions} on {consumers}; {decision.explanation}.", False
        ahead = forecast(self.trend, policy.look_ahead_ms) if policy.look_ahead_ms else None
        problem = problem_for(policy, group, decision.reason, ahead)
        packing = self.algorithm.pack(problem)
        before = self.assignment
        after = same_size_or_larger(policy, group, decision.reason, packing.assignment)
        changed = before != after and is_worthwhile(policy, group, decision.reason, after)
        self.memory = after_repack(self.memory, decision.reason, now_ms, changed=changed)
        if not changed:
            return f"{decision.explanation}; no better assignment was found.", False
        self.assignment = after
        lines = [_change(decision.explanation, problem, before, after)]
        lines += [f"  {p} alone is more than one consumer carries." for p in packing.oversize]
        return "\n".join(lines), True


def take(
    watched: Watched, group: ImaginaryGroup, speeds: Mapping[TopicPartition, float], now_ms: int
) -> tuple[str, bool]:
    """One measurement: what the imaginary group does with it, and what is remembered of that."""
    before = group.assignment
    text, is_change = group.measured(speeds, now_ms)
    watched.samples.append(dict(speeds))
    watched.times_ms.append(now_ms)
    watched.consumers.append(len(group.assignment))
    watched.at_least.append(group.at_least(speeds))
    if is_change and before:
        watched.changes += 1
        watched.moves += moves_between(before, group.assignment, speeds).partitions
    return text, is_change


def _change(why: str, problem: PackingProblem, before: Assignment, after: Assignment) -> str:
    least = consumers_at_least(problem)
    moved = moves_between(before, after, problem.load_bytes_per_s)
    return (
        f"{why[0].upper()}{why[1:]}. Would use {counted(len(after), 'consumer')} (at least {least} "
        f"needed), moving {counted(moved.partitions, 'partition')} "
        f"({speed_text(moved.load_bytes_per_s)})."
    )
