"""Runs an algorithm over a stream; each measurement starts from the previous assignment.

It packs on every measurement, as in the published study, or only when the trigger fires, with the
controller's own policy code. The caller provides the clock that times a run.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from penstock.laboratory.packing_replay.stream import Stream
from penstock.model import Assignment
from penstock.packing import PackingAlgorithm, PackingProblem
from penstock.packing.lower_bound import consumers_at_least
from penstock.packing.same_size import same_size_or_larger
from penstock.packing.scores import load_balance, loads_bytes_per_s, moves_between
from penstock.packing.speed_memory import SpeedMemory, remember
from penstock.packing.trend import Trend, forecast, observe
from penstock.packing.trigger import (
    Reason,
    TriggerDecision,
    TriggerMemory,
    TriggerPolicy,
    after_repack,
    decide,
    load_of_assignment,
    problem_for,
)
from penstock.packing.worthwhile import is_worthwhile

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class ReplayStep:
    """The result of one measurement. `took_s` is None if the packer did not run.

    With a trigger, `reason` and `explanation` are what it said.
    """

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
    explanation: str = ""


@dataclass(frozen=True, slots=True)
class OnEveryMeasurement:
    """Pack on every measurement, as in the published study."""

    capacity_bytes_per_s: float
    partitions_per_consumer_max: int | None = None
    consumers_max: int | None = None


@dataclass(frozen=True, slots=True)
class ThroughTrigger:
    """Pack when the trigger fires. `period_s` is the shortest time between two decisions."""

    policy: TriggerPolicy
    interval_s: float = 5.0
    period_s: float = 0.0


@dataclass(slots=True)
class _ControllerMemory:
    """What the controller remembers from one measurement to the next."""

    assignment: Assignment = field(default_factory=Assignment)
    memory: TriggerMemory = field(default_factory=TriggerMemory)
    trend: Trend = field(default_factory=Trend)
    speeds: SpeedMemory = field(default_factory=SpeedMemory)
    asked_at_ms: int | None = None


def replay(
    algorithm: PackingAlgorithm,
    stream: Stream,
    mode: OnEveryMeasurement | ThroughTrigger,
    clock: Clock,
) -> Iterator[ReplayStep]:
    """Yield one step per measurement."""
    if isinstance(mode, OnEveryMeasurement):
        return _on_every_measurement(algorithm, stream, mode, clock)
    return _through_trigger(algorithm, stream, mode, clock)


def lower_bounds(stream: Stream, capacity_bytes_per_s: float) -> list[int]:
    """The fewest consumers any packing could use, for every measurement."""
    return [
        consumers_at_least(
            PackingProblem(stream.speeds(measurement), Assignment(), capacity_bytes_per_s)
        )
        for measurement in range(len(stream))
    ]


def _on_every_measurement(
    algorithm: PackingAlgorithm, stream: Stream, mode: OnEveryMeasurement, clock: Clock
) -> Iterator[ReplayStep]:
    assignment = Assignment()
    for measurement in range(len(stream)):
        speeds = stream.speeds(measurement)
        problem = PackingProblem(
            speeds,
            assignment,
            mode.capacity_bytes_per_s,
            partitions_per_consumer_max=mode.partitions_per_consumer_max,
            consumers_max=mode.consumers_max,
        )
        began = clock()
        after = algorithm.pack(problem).assignment
        took_s = clock() - began
        yield _step(stream, measurement, (assignment, after), mode.capacity_bytes_per_s, took_s)
        assignment = after


def _through_trigger(
    algorithm: PackingAlgorithm, stream: Stream, mode: ThroughTrigger, clock: Clock
) -> Iterator[ReplayStep]:
    controller = _ControllerMemory()
    capacity = mode.policy.capacity_bytes_per_s
    for measurement in range(len(stream)):
        before = controller.assignment
        took_s, decision = _trigger_step(algorithm, stream, mode, controller, clock, measurement)
        change = (before, controller.assignment)
        yield _step(stream, measurement, change, capacity, took_s, decision)


def _trigger_step(
    algorithm: PackingAlgorithm,
    stream: Stream,
    mode: ThroughTrigger,
    controller: _ControllerMemory,
    clock: Clock,
    measurement: int,
) -> tuple[float | None, TriggerDecision | None]:
    policy, speeds = mode.policy, stream.speeds(measurement)
    now_ms = round(measurement * mode.interval_s * 1_000)
    controller.speeds = remember(
        controller.speeds, speeds, now_ms, policy.over_capacity_ms, policy.scale_down_period_ms
    )
    controller.trend = observe(controller.trend, controller.speeds.established, now_ms)
    if (
        controller.asked_at_ms is not None
        and now_ms - controller.asked_at_ms < mode.period_s * 1_000
    ):
        return None, None
    controller.asked_at_ms = now_ms
    group = load_of_assignment(policy, speeds, controller.assignment, controller.speeds)
    controller.memory, decision = decide(policy, controller.memory, group, now_ms)
    if not decision.repack:
        return None, decision
    ahead = forecast(controller.trend, policy.look_ahead_ms) if policy.look_ahead_ms else None
    began = clock()
    packed = algorithm.pack(problem_for(policy, group, decision.reason, ahead)).assignment
    took_s = clock() - began
    after = same_size_or_larger(policy, group, decision.reason, packed)
    before = controller.assignment
    if is_worthwhile(policy, group, decision.reason, after):
        controller.assignment = after
    changed = controller.assignment != before
    controller.memory = after_repack(controller.memory, decision.reason, now_ms, changed=changed)
    return took_s, decision


def _working(assignment: Assignment) -> int:
    return sum(1 for partitions in assignment.values() if partitions)


def _step(
    stream: Stream,
    measurement: int,
    change: tuple[Assignment, Assignment],
    capacity: float,
    took_s: float | None,
    decision: TriggerDecision | None = None,
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
        reason=None if decision is None else decision.reason,
        explanation="" if decision is None else decision.explanation,
    )
