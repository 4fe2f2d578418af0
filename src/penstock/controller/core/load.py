"""The load of the group: write speeds and backlogs, added up by consumer.

The load that is planned for is the established write speed plus a bounded share of the backlog,
times the weight of its topic (see `capacity`). A consumer's capacity is the operator's figure, or
what is measured. What no plan can help is set aside before the rest is judged.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from penstock.controller.core.backlog import behind_by_partition, catch_up_load
from penstock.controller.core.capacity import Capacities, capacities_of, strength_of
from penstock.controller.core.membership import AVAILABLE
from penstock.controller.core.state import KnownSpeeds, State
from penstock.controller.core.step_draft import StepDraft
from penstock.model import Assignment, ConsumerId, TopicPartition
from penstock.packing import PackingProblem
from penstock.packing.trend import forecast
from penstock.packing.trigger import GroupLoad, Reason, problem_for, weighted_speeds


def usual_capacity(draft: StepDraft) -> float:
    """What one consumer carries of all topics as they are written now: set, measured or assumed."""
    return capacities_of(draft.state).usual_bytes_per_s


def consumer_capacities(draft: StepDraft, usual: Capacities) -> dict[ConsumerId, float]:
    state, records = draft.state, draft.consumers
    return {
        consumer: usual.usual_bytes_per_s * strength_of(state, records[consumer], usual)
        for consumer in available(draft)
    }


def available(draft: StepDraft) -> list[ConsumerId]:
    """The consumers that have partitions or may get some."""
    return sorted(c for c, r in draft.consumers.now.items() if r.status in AVAILABLE)


def owner_of(draft: StepDraft, partition: TopicPartition) -> ConsumerId | None:
    """Where a partition belongs now: where the plan wants it, else where it is."""
    plan = draft.state.plan
    target = None if plan is None else plan.target.get(partition)
    if target is None:
        holding = draft.holdings.get(partition)
        target = None if holding is None else holding.consumer
    record = None if target is None else draft.consumers.get(target)
    return target if record is not None and record.status in AVAILABLE else None


def held_by_whom(draft: StepDraft, partition: TopicPartition) -> ConsumerId | None:
    """Where a partition is now, whatever the plan wants."""
    holding = draft.holdings.get(partition)
    return None if holding is None else holding.consumer


def group_load(
    draft: StepDraft,
    where: Callable[[StepDraft, TopicPartition], ConsumerId | None] = owner_of,
) -> GroupLoad:
    """The group as the trigger and the packer see it."""
    settings, speeds, memory = draft.state.settings, draft.state.speeds, draft.state.speed_memory
    current: dict[ConsumerId, list[TopicPartition]] = {c: [] for c in available(draft)}
    usual = capacities_of(draft.state)
    capacities = consumer_capacities(draft, usual)
    weights = usual.weights
    set_aside = _set_aside(draft, usual, capacities)
    behind = behind_by_partition(draft)
    extra = catch_up_load(draft, behind, set_aside)
    load: dict[TopicPartition, float] = {}
    by_consumer: dict[ConsumerId, float] = {}
    real_by_consumer: dict[ConsumerId, float] = {}
    unread = []
    parked, holdings = draft.parked.now, draft.holdings.now  # there may be 10,000 partitions
    for partition, speed in draft.state.write_speeds.items():
        is_stopped = partition in parked
        added = extra.get(partition, 0.0)
        # A stopped partition is read by nobody: it needs a place, but no capacity.
        established = memory.established.get(partition, speed)
        weight = weights.get(partition.topic, 1.0) if weights else 1.0
        load[partition] = 0.0 if is_stopped else (established + added) * weight
        if partition not in holdings and not is_stopped:
            unread.append(partition)
        consumer = where(draft, partition)
        if consumer in current:
            current[consumer].append(partition)
            now = 0.0 if is_stopped else speed + added
            by_consumer[consumer] = by_consumer.get(consumer, 0.0) + now * weight
            if weights:
                real_by_consumer[consumer] = real_by_consumer.get(consumer, 0.0) + now
    # A smaller group would have to carry the backlog without its strongest consumer.
    at_work = [capacities[consumer] for consumer in by_consumer]
    left_bytes_per_s = sum(at_work) - max(at_work, default=0.0)
    behind_bytes = sum(
        bytes_ * weights.get(p.topic, 1.0) for p, bytes_ in behind.items() if p not in set_aside
    )
    tolerated = settings.behind_tolerated_ms / 1_000 * left_bytes_per_s
    return GroupLoad(
        current=Assignment(current),
        load_bytes_per_s=load,
        load_by_consumer=by_consumer,
        capacity_by_consumer=capacities,
        unread=tuple(unread),
        highest_bytes_per_s=weighted_speeds(memory.highest, weights),
        is_fresh=(
            speeds is not None and draft.now_ms - speeds.measured_ms <= settings.speeds_stale_ms
        ),
        measured_ms_ago=None if speeds is None else draft.now_ms - speeds.measured_ms,
        is_behind=behind_bytes > tolerated,
        weight_by_consumer={
            consumer: by_consumer[consumer] / real
            for consumer, real in real_by_consumer.items()
            if real
        },
    )


def _set_aside(
    draft: StepDraft, usual: Capacities, capacities: Mapping[ConsumerId, float]
) -> frozenset[TopicPartition]:
    """Partitions that no plan can help: stopped, or faster than any consumer.

    Their backlog would only grow, and decide for all the others.
    """
    return frozenset((*draft.parked.now, *oversize(draft.state, usual, capacities)))


def oversize(
    state: State, usual: Capacities, capacities: Mapping[ConsumerId, float]
) -> list[TopicPartition]:
    """Partitions that are faster than any consumer."""
    strongest = max((usual.usual_bytes_per_s, *capacities.values()))
    speeds, weights = state.speed_memory.established, usual.weights
    return [p for p, speed in speeds.items() if speed * weights.get(p.topic, 1.0) > strongest]


def problem_of(
    draft: StepDraft, consumers_max: int, reason: Reason, group: GroupLoad | None = None
) -> PackingProblem:
    """The question for the packer. Spares are part of it, as consumers that own nothing.

    `group` is the group's load, where the caller has it already.
    """
    group = group or group_load(draft)
    policy = replace(
        draft.state.settings.policy,
        capacity_bytes_per_s=usual_capacity(draft),
        consumers_max=consumers_max,
    )
    return problem_for(policy, group, reason, _expected(draft, group))


def _expected(draft: StepDraft, group: GroupLoad) -> dict[TopicPartition, float]:
    """The load when the write speeds follow their trend; backlogs stay what they are."""
    look_ahead_ms = draft.state.settings.policy.look_ahead_ms
    if not look_ahead_ms:
        return {}
    speeds, weights = draft.state.speed_memory.established, capacities_of(draft.state).weights
    load = group.load_bytes_per_s
    return {
        p: max(0.0, load[p] + (speed - speeds[p]) * weights.get(p.topic, 1.0))
        for p, speed in forecast(draft.state.trend, look_ahead_ms).items()
        if p in speeds
    }


def remembered_speeds(
    known: KnownSpeeds | None,
    measured: Mapping[TopicPartition, float | None],
    measured_ms: int,
    vanish_after: int,
    topic_ids: Mapping[str, str],
) -> KnownSpeeds:
    """The new measurement, with the last known speed where it has none.

    A partition that is not named at all stays until it was missing often enough. While its topic is
    named under the same id it stays for ever: Kafka takes no partition from a topic. One whose
    speed was never known counts with the mean of its topic, because a consumer must read it. A
    speed that is not a finite number of zero or more counts as unknown.
    """
    former = {} if known is None else known.bytes_per_s
    missing_before = {} if known is None else known.missing
    speeds: dict[TopicPartition, float] = {}
    sums: dict[str, tuple[float, int]] = {}
    unknown = []
    for partition, speed in measured.items():
        if speed is None or not math.isfinite(speed) or speed < 0:
            unknown.append(partition)
            continue
        speeds[partition] = speed
        total, number = sums.get(partition.topic, (0.0, 0))
        sums[partition.topic] = (total + speed, number + 1)
    for partition in unknown:
        total, number = sums.get(partition.topic, (0.0, 1))
        speeds[partition] = former.get(partition, total / number)
    missing: dict[TopicPartition, int] = {}
    former_ids = {} if known is None else known.topic_ids
    same = {topic for topic in topic_ids if topic_ids[topic] == former_ids.get(topic)}
    for partition in former.keys() - speeds.keys():
        before = missing_before.get(partition, 0)
        # Once it was missing under another id, or with its topic, it must be seen again.
        times = 0 if partition.topic in same and not before else before + 1
        if times < vanish_after:
            missing[partition] = times
            speeds[partition] = former[partition]
    # A topic that is missing for a moment keeps its id: it may come back with another one.
    kept = {one.topic: former_ids[one.topic] for one in missing if one.topic in former_ids}
    return KnownSpeeds(measured_ms, speeds, missing, {**kept, **topic_ids})
