"""Run an algorithm over a stream, measurement by measurement, from the assignment it made before.

On every measurement, as published; or only when the trigger says so, as the live controller would,
through the same policy code. The clock that times a run is given by the caller.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from penstock.laboratory.packing_replay.stream import Stream
from penstock.model import Assignment
from penstock.packing import PackingAlgorithm, PackingProblem
from penstock.packing.lower_bound import consumers_at_least
from penstock.packing.scores import load_balance, loads_bytes_per_s, moves_between
from penstock.packing.trend import Trend, forecast, observe
from penstock.packing.trigger import (
    Reason,
    TriggerMemory,
    TriggerPolicy,
    after_repack,
    decide,
    group_load,
    is_worthwhile,
    problem_for,
)

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """What one measurement led to. `took_s` is None where the packer did not run."""

    measurement: int
    assignment: Assignment
    consumers: int
    moved_partitions: int
    moved_score: float
    balance: float
    over_capacity: int
    oversize: int
    took_s: float | None
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class OnEveryMeasurement:
    """The published way. The bounds are those of the problem."""

    capacity_bytes_per_s: float
    partitions_per_consumer_max: int | None = None
    consumers_max: int | None = None


@dataclass(frozen=True, slots=True)
class ThroughTrigger:
    """The controller's way. `period_s`: the trigger is asked no more often than this."""

    policy: TriggerPolicy
    interval_s: float = 5.0
    period_s: float = 0.0


@dataclass(slots=True)
class _Live:
    """What the controller would carry from one measurement to the next."""

    assignment: Assignment = field(default_factory=Assignment)
    memory: TriggerMemory = field(default_factory=TriggerMemory)
    trend: Trend = field(default_factory=Trend)
    asked_at_ms: int | None = None


def replay(
    algorithm: PackingAlgorithm,
    stream: Stream,
    way: OnEveryMeasurement | ThroughTrigger,
    clock: Clock,
) -> Iterator[ReplayStep]:
    """One step per measurement, as they are made."""
    if isinstance(way, OnEveryMeasurement):
        return _on_every_measurement(algorithm, stream, way, clock)
    return _through_trigger(algorithm, stream, way, clock)


def lower_bounds(stream: Stream, capacity_bytes_per_s: float) -> list[int]:
    """The fewest consumers any packing could use, for every measurement."""
    return [
        consumers_at_least(
            PackingProblem(stream.speeds(measurement), Assignment(), capacity_bytes_per_s)
        )
        for measurement in range(len(stream))
    ]


def _on_every_measurement(
    algorithm: PackingAlgorithm, stream: Stream, way: OnEveryMeasurement, clock: Clock
) -> Iterator[ReplayStep]:
    assignment = Assignment()
    for measurement in range(len(stream)):
        speeds = stream.speeds(measurement)
        problem = PackingProblem(
            speeds,
            assignment,
            way.capacity_bytes_per_s,
            partitions_per_consumer_max=way.partitions_per_consumer_max,
            consumers_max=way.consumers_max,
        )
        began = clock()
        after = algorithm.pack(problem).assignment
        took_s = clock() - began
        yield _step(stream, measurement, (assignment, after), way.capacity_bytes_per_s, took_s)
        assignment = after


def _through_trigger(
    algorithm: PackingAlgorithm, stream: Stream, way: ThroughTrigger, clock: Clock
) -> Iterator[ReplayStep]:
    live = _Live()
    capacity = way.policy.capacity_bytes_per_s
    for measurement in range(len(stream)):
        before = live.assignment
        took_s, reason = _live_through(algorithm, stream, way, live, clock, measurement)
        change = (before, live.assignment)
        yield _step(stream, measurement, change, capacity, took_s, reason)


def _live_through(
    algorithm: PackingAlgorithm,
    stream: Stream,
    way: ThroughTrigger,
    live: _Live,
    clock: Clock,
    measurement: int,
) -> tuple[float | None, Reason | None]:
    policy, speeds = way.policy, stream.speeds(measurement)
    now_ms = round(measurement * way.interval_s * 1_000)
    live.trend = observe(live.trend, speeds, now_ms)
    if live.asked_at_ms is not None and now_ms - live.asked_at_ms < way.period_s * 1_000:
        return None, None
    live.asked_at_ms = now_ms
    group = group_load(policy, speeds, live.assignment)
    live.memory, decision = decide(policy, live.memory, group, now_ms)
    if not decision.repack:
        return None, decision.reason
    ahead = forecast(live.trend, policy.look_ahead_ms) if policy.look_ahead_ms else None
    began = clock()
    after = algorithm.pack(problem_for(policy, group, ahead)).assignment
    took_s = clock() - began
    before = live.assignment
    if is_worthwhile(policy, decision.reason, _working(before), _working(after)):
        live.assignment = after
    changed = live.assignment != before
    live.memory = after_repack(live.memory, decision.reason, now_ms, changed=changed)
    return took_s, decision.reason


def _working(assignment: Assignment) -> int:
    return sum(1 for partitions in assignment.values() if partitions)


def _step(
    stream: Stream,
    measurement: int,
    change: tuple[Assignment, Assignment],
    capacity: float,
    took_s: float | None,
    reason: Reason | None = None,
) -> ReplayStep:
    before, after = change
    speeds = stream.speeds(measurement)
    moves = moves_between(before, after, speeds)
    loads = loads_bytes_per_s(after, speeds)
    return ReplayStep(
        measurement=measurement,
        assignment=after,
        consumers=_working(after),
        moved_partitions=moves.partitions,
        moved_score=moves.score(capacity),
        balance=load_balance(list(loads.values())),
        over_capacity=sum(1 for c in after if len(after[c]) > 1 and loads[c] > capacity),
        oversize=sum(1 for speed in speeds.values() if speed > capacity),
        took_s=took_s,
        reason=reason,
    )
