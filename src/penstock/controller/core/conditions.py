"""What is not well with the group, each with its reason; none when all is well.

Scripts read them from `penstock status -o json`, and its exit code says whether there are any.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from penstock.controller.core.backlog_trend import BacklogDirection, backlog_trend
from penstock.controller.core.capacity import capacities_of
from penstock.controller.core.decisions import Code
from penstock.controller.core.load import consumer_capacities, oversize
from penstock.controller.core.state import PauseRecord, State, by_name
from penstock.controller.core.step_draft import StepDraft
from penstock.controller.core.waiting import Waiting
from penstock.model import ConsumerId, TopicPartition
from penstock.model.sentences import (
    counted,
    duration_text,
    load_of_capacity,
    shortened_list,
    speed_text,
)
from penstock.packing.trigger import GroupLoad, is_over_capacity

# A partition that a plan moves is without a consumer for a moment; after this it is not moving.
MOVE_GRACE_MS = 30_000


class ConditionName(StrEnum):
    BLIND = "blind"
    UNREAD = "unread"
    STOPPED = "stopped"
    FALLING_BEHIND = "falling behind"
    AT_MAXIMUM = "at maximum"
    OVERSIZE = "oversize"
    HELD = "held"
    UNSAVED = "unsaved"


@dataclass(frozen=True, slots=True)
class Condition:
    name: ConditionName
    reason: str


def conditions(
    state: State, load: Callable[[], GroupLoad], waiting: Waiting, *, is_degraded: bool
) -> list[Condition]:
    """All that hold now, the worst first. `load` is called only where it is needed: it is dear."""
    return [
        *_blind(state),
        *_unread(state),
        *_stopped(state),
        *_falling_behind(state, waiting),
        *_at_maximum(state, load),
        *_oversize(state),
        *_held(state),
        *_unsaved(is_degraded=is_degraded),
    ]


def _names(partitions: list[TopicPartition]) -> str:
    return shortened_list([str(one) for one in sorted(partitions, key=by_name)])


def _blind(state: State) -> Iterator[Condition]:
    remedy = "check that `penstock monitor` runs; until then nothing is planned"
    if state.speeds is None:
        first = "the first one comes some seconds after a start; if it does not,"
        yield Condition(ConditionName.BLIND, f"there is no measurement yet: {first} {remedy}")
        return
    age_ms = state.now_ms - state.speeds.measured_ms
    if age_ms > state.settings.speeds_stale_ms:
        reason = f"the newest measurement is {duration_text(age_ms // 1_000)} old: {remedy}"
        yield Condition(ConditionName.BLIND, reason)


def _unread(state: State) -> Iterator[Condition]:
    plan = state.plan
    is_young = plan is not None and state.now_ms - plan.made_ms <= MOVE_GRACE_MS
    moving = plan.open if plan is not None and is_young else frozenset()
    unread = [
        partition
        for partition in state.write_speeds
        if partition not in state.holdings
        and partition not in state.parked
        and partition not in moving
    ]
    if unread:
        reason = f"nobody reads {counted(len(unread), 'partition')}: {_names(unread)}"
        yield Condition(ConditionName.UNREAD, reason)


def _stopped(state: State) -> Iterator[Condition]:
    by_reason: dict[tuple[str, str], list[TopicPartition]] = {}
    for partition, parked in state.parked.items():
        by_reason.setdefault((parked.reason, parked.detail), []).append(partition)
    for (reason, detail), partitions in sorted(by_reason.items()):
        why = f"{reason}: {detail}" if detail else reason
        yield Condition(ConditionName.STOPPED, f"{_names(partitions)}: {why}")
    yield from _overdue(state)


def _overdue(state: State) -> Iterator[Condition]:
    """Starts that only their own consumers wait for."""
    by_consumer: dict[ConsumerId, list[TopicPartition]] = {}
    for partition in state.in_flight:
        holding = state.holdings[partition]
        if holding.is_overdue:
            by_consumer.setdefault(holding.consumer, []).append(partition)
    for consumer, partitions in sorted(by_consumer.items()):
        why = state.consumers[consumer].occupation or "does not say why"
        reason = f"{_names(partitions)}: not started yet: consumer {consumer} {why}"
        yield Condition(ConditionName.STOPPED, reason)


def _falling_behind(state: State, waiting: Waiting) -> Iterator[Condition]:
    """The backlog has grown over more than two batches, because less is carried than written."""
    trend = backlog_trend(state, waiting)
    if trend.direction is BacklogDirection.GROWING and trend.carried_bytes_per_s is not None:
        yield Condition(
            ConditionName.FALLING_BEHIND,
            f"{speed_text(trend.written_bytes_per_s)} are written and "
            f"{speed_text(trend.carried_bytes_per_s)} carried, in the last "
            f"{duration_text(trend.over_ms / 1_000)}; "
            f"{counted_records(waiting)} wait{_what_consumers_wait_for(state)}",
        )


def _what_consumers_wait_for(state: State) -> str:
    """What consumers say holds them up: the lake, Spark or Kafka."""
    by_reason: dict[str, list[str]] = {}
    for consumer, record in sorted(state.consumers.items()):
        if "waits for" in record.occupation:
            by_reason.setdefault(record.occupation, []).append(f"consumer {consumer}")
    return "".join(f"; {shortened_list(them)} {why}" for why, them in sorted(by_reason.items()))


def counted_records(waiting: Waiting) -> str:
    at_most = "at most " if waiting.is_at_most else ""
    return f"{at_most}{waiting.records:,} {'record' if waiting.records == 1 else 'records'}"


def _at_maximum(state: State, load_of: Callable[[], GroupLoad]) -> Iterator[Condition]:
    most = state.settings.consumers_max
    if len(state.consumers) < most:
        return
    group = load_of()
    working = len(group.load_by_consumer)
    if working >= most and is_over_capacity(group):
        load = sum(group.load_by_consumer.values())
        capacity = sum(group.capacity_by_consumer[c] for c in group.load_by_consumer)
        is_set = not state.settings.capacity_is_measured
        remedy = "raise it, or packing.capacity" if is_set else "raise it"
        yield Condition(
            ConditionName.AT_MAXIMUM,
            f"{working} of {counted(most, 'consumer')} (controller.consumers_max) work, with "
            f"{load_of_capacity(load, capacity)}: {remedy}",
        )


def _oversize(state: State) -> Iterator[Condition]:
    usual = capacities_of(state)
    capacities = consumer_capacities(StepDraft(state, state.now_ms), usual)
    by_weight: dict[float, list[TopicPartition]] = {}
    for partition in oversize(state, usual, capacities):
        weight = usual.weights.get(partition.topic, 1.0)
        by_weight.setdefault(weight, []).append(partition)
    strongest = max((usual.usual_bytes_per_s, *capacities.values()))
    for weight, partitions in sorted(by_weight.items()):
        carried = speed_text(strongest / weight)
        yield Condition(
            ConditionName.OVERSIZE,
            f"{_names(partitions)}: faster than one consumer carries ({carried}); more "
            "partitions or another key would spread the records",
        )


def _held(state: State) -> Iterator[Condition]:
    for pause in (*state.pauses, *state.excluded):
        yield Condition(ConditionName.HELD, _pause_text(pause))
    if state.shared_silence is not None:
        since_ms = state.shared_silence.since_heartbeat_time_ms
        for_s = round((state.heartbeats.heartbeat_time_ms - since_ms) / 1_000)
        names = shortened_list([str(consumer) for consumer in state.shared_silence.consumers])
        yield Condition(
            ConditionName.HELD,
            f"held by silence for {duration_text(for_s)}: consumers {names} are silent or late",
        )
    if state.now_ms < state.creation_blocked_until_ms:
        failed = [one.explanation for one in state.history if one.code is Code.CREATION_FAILED]
        why = failed[-1] if failed else "the last one failed"
        yield Condition(ConditionName.HELD, f"no consumer is created for now: {why}")
    limit = state.growth_limit
    if limit is not None:
        left_s = max(0, limit.until_ms - state.now_ms) // 1_000
        most = counted(limit.consumers_max, "consumer")
        yield Condition(
            ConditionName.HELD,
            f"growth did not help: at most {most} for {duration_text(left_s)}, or until the load "
            "changes",
        )


def _pause_text(pause: PauseRecord) -> str:
    until = pause.until_unix_ms
    ends = "" if until is None else f" until {datetime.fromtimestamp(until / 1000, UTC):%F %T} UTC"
    return f"paused ({pause.direction.value}){ends}: {pause.reason or 'no reason given'}"


def _unsaved(*, is_degraded: bool) -> Iterator[Condition]:
    if is_degraded:
        yield Condition(
            ConditionName.UNSAVED, "the controller cannot save its state: is the disk full?"
        )
