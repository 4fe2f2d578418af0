"""The controller's state as metrics: computed when somebody asks, from one state.

A value that is not known has no series.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from penstock.controller.core.capacity import (
    capacities_of,
    capacity_of_consumer,
    capacity_rows,
)
from penstock.controller.core.conditions import ConditionName, conditions
from penstock.controller.core.decisions import Decision
from penstock.controller.core.freshness import Freshness
from penstock.controller.core.load import group_load
from penstock.controller.core.snapshot import seconds_behind
from penstock.controller.core.state import ConsumerStatus, HoldingStatus, Phase, State
from penstock.controller.core.step_draft import StepDraft
from penstock.controller.core.waiting import Waiting, group_waiting, waiting_by_partition
from penstock.metrics import Metric, Sample
from penstock.metrics import of_controller as of
from penstock.model import TopicPartition

Backlogs = tuple[Metric, Metric, Metric]
_OF_PARTITION: Backlogs = (
    of.PARTITION_BACKLOG,
    of.PARTITION_BACKLOG_BYTES,
    of.PARTITION_BACKLOG_SECONDS,
)
_OF_TOPIC: Backlogs = (of.TOPIC_BACKLOG, of.TOPIC_BACKLOG_BYTES, of.TOPIC_BACKLOG_SECONDS)
_OF_GROUP: Backlogs = (of.GROUP_BACKLOG, of.GROUP_BACKLOG_BYTES, of.GROUP_BACKLOG_SECONDS)
# A consumer that is asked for and does not report yet.
_STARTING = frozenset({ConsumerStatus.QUERIED, ConsumerStatus.WANTED, ConsumerStatus.CREATING})
_FENCE_REASONS = (
    ("sent no message", "silent"),
    ("did not stop", "not_stopping"),
    ("did not start", "not_starting"),
    ("did not come up", "did_not_come_up"),
    ("started again", "restarts_in_vain"),
    ("did not answer", "no_answer"),
    ("shut down", "shut_down"),
)
_CONSUMER = re.compile(r"^consumer \d+ ")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is wanted: `now_ms` may be later than the state's last step."""

    now_ms: int
    is_degraded: bool
    objective_s: float
    with_partitions: bool
    with_lag_names: bool


def group_samples(state: State, freshness: Freshness, asked: Asked) -> Iterator[Sample]:
    """Everything that a leading controller tells."""
    yield from _controller(state, asked)
    yield from _conditions(state, is_degraded=asked.is_degraded)
    yield from _sizes(state)
    yield from _consumers(state, asked.now_ms)
    yield from _capacities(state)
    yield from _partition_states(state, asked)
    yield from _backlogs(state, asked)
    yield from _freshness(state, freshness, asked)


def name_of_phase(phase: Phase) -> str:
    return phase.value.lower().replace(" ", "_")


def fence_reason(decision: Decision) -> str:
    """Why a consumer was given up, in one word."""
    why = _CONSUMER.sub("", decision.explanation)
    return next((word for text, word in _FENCE_REASONS if why.startswith(text)), "other")


def _controller(state: State, asked: Asked) -> Iterator[Sample]:
    yield Sample(of.LEADING, (), float(state.phase is not Phase.SUPERSEDED))
    for phase in Phase:
        yield Sample(of.STATE, (name_of_phase(phase),), float(state.phase is phase))
    yield Sample(of.EPOCH, (), state.controller_epoch)
    yield Sample(of.SILENCE, (), max(0, asked.now_ms - state.now_ms) / 1_000)
    yield Sample(of.PLAN_NUMBER, (), state.plan_number)
    yield Sample(of.FRESHNESS_OBJECTIVE, (), asked.objective_s)
    if state.speeds is not None:
        age_ms = max(0, asked.now_ms - state.speeds.measured_ms)
        yield Sample(of.MEASUREMENT_AGE, (), age_ms / 1_000)
    for event, number in state.counts.items():
        yield Sample(of.EVENTS, (event,), number)


def _conditions(state: State, *, is_degraded: bool) -> Iterator[Sample]:
    load = group_load(StepDraft(state, state.now_ms))
    total = group_waiting(state).total()
    found = {one.name for one in conditions(state, lambda: load, total, is_degraded=is_degraded)}
    for name in ConditionName:
        yield Sample(of.CONDITION, (name.value.replace(" ", "_"),), float(name in found))
    yield Sample(of.GROWTH_HELD, (), float(state.growth_limit is not None))


def _sizes(state: State) -> Iterator[Sample]:
    statuses = [record.status for record in state.consumers.values()]
    leaving = sum(one is ConsumerStatus.LEAVING for one in statuses)
    yield Sample(of.WANTED, (), len(statuses) - leaving)
    yield Sample(of.READY, (), sum(one is ConsumerStatus.READY for one in statuses))
    yield Sample(of.STARTING, (), sum(one in _STARTING for one in statuses))
    yield Sample(of.ENDING, (), leaving + len(state.departing))
    yield Sample(of.MAXIMUM, (), state.settings.consumers_max)
    yield Sample(of.MINIMUM, (), state.settings.consumers_min)


def _consumers(state: State, now_ms: int) -> Iterator[Sample]:
    usual = capacities_of(state)
    for consumer, record in state.consumers.items():
        label = (str(consumer),)
        held = state.held_by.get(consumer, ())
        load = sum(state.write_speeds.get(partition, 0.0) for partition in held)
        capacity = capacity_of_consumer(state, consumer, usual)
        yield Sample(of.ASSIGNED, label, load)
        yield Sample(of.CAPACITY, label, capacity)
        yield Sample(of.UTILISATION, label, load / capacity)
        yield Sample(of.CONSUMER_PARTITIONS, label, len(held))
        if record.heard_ms:
            yield Sample(of.REPORT_AGE, label, max(0, now_ms - record.heard_ms) / 1_000)


def _capacities(state: State) -> Iterator[Sample]:
    for topic, row in capacity_rows(state)["topics"].items():
        yield Sample(of.TOPIC_CAPACITY, (topic, row["source"]), row["bytes_per_s"])
        for bound in ("lowest", "highest"):
            if (found := row[f"{bound}_bytes_per_s"]) is not None:
                yield Sample(of.TOPIC_CAPACITY_FOUND, (topic, bound), found)


def _partition_states(state: State, asked: Asked) -> Iterator[Sample]:
    numbers = dict.fromkeys([*(one.value for one in HoldingStatus), "unread", "stopped"], 0)
    for partition in {*state.write_speeds, *state.holdings}:
        holding = state.holdings.get(partition)
        if holding is not None:
            numbers[holding.status.value] += 1
        elif partition not in state.parked:
            numbers["unread"] += 1
    stopped: dict[tuple[str, str], int] = {}
    for partition, parked in state.parked.items():
        numbers["stopped"] += partition not in state.holdings
        key = (partition.topic, parked.reason)
        stopped[key] = stopped.get(key, 0) + 1
        if asked.with_partitions:
            labels = (partition.topic, str(partition.partition), parked.reason)
            yield Sample(of.PARTITION_STOPPED, labels, 1)
    for name, number in numbers.items():
        yield Sample(of.PARTITIONS, (name,), number)
    for labels_of_topic, number in stopped.items():
        yield Sample(of.STOPPED, labels_of_topic, number)
    yield Sample(of.OPEN_MOVES, (), 0 if state.plan is None else len(state.plan.open))


def _backlogs(state: State, asked: Asked) -> Iterator[Sample]:
    by_topic: dict[str, list[tuple[Waiting, float]]] = {}
    yield Sample(of.GROUP_WRITE_SPEED, (), sum(state.write_speeds.values()))
    for partition, waiting in waiting_by_partition(state).items():
        if waiting is None:
            continue
        speed = state.write_speeds[partition]
        by_topic.setdefault(partition.topic, []).append((waiting, speed))
        if asked.with_partitions:
            labels = (partition.topic, str(partition.partition))
            yield from _backlog(_OF_PARTITION, labels, waiting, speed)
            if asked.with_lag_names:
                yield from _lag(labels, waiting, speed)
    totals = {topic: _total(several) for topic, several in by_topic.items()}
    for topic, (waiting, speed) in totals.items():
        yield from _backlog(_OF_TOPIC, (topic,), waiting, speed)
    if totals:
        yield from _backlog(_OF_GROUP, (), *_total(list(totals.values())))


def _total(several: list[tuple[Waiting, float]]) -> tuple[Waiting, float]:
    sizes = [waiting.log_bytes for waiting, _ in several]
    known = [size for size in sizes if size is not None]
    log_bytes = sum(known) if len(known) == len(sizes) else None
    records = sum(waiting.records for waiting, _ in several)
    return Waiting(records, log_bytes), sum(speed for _, speed in several)


def _backlog(
    metrics: Backlogs, labels: tuple[str, ...], waiting: Waiting, speed: float
) -> Iterator[Sample]:
    records, in_bytes, in_seconds = metrics
    yield Sample(records, labels, waiting.records)
    if waiting.log_bytes is not None:
        yield Sample(in_bytes, labels, waiting.log_bytes)
        seconds = seconds_behind(waiting.log_bytes, speed)
        if seconds is not None:
            yield Sample(in_seconds, labels, seconds)


def _lag(labels: tuple[str, ...], waiting: Waiting, speed: float) -> Iterator[Sample]:
    yield Sample(of.LAG, labels, waiting.records)
    size = waiting.log_bytes
    seconds = None if size is None else seconds_behind(size, speed)
    if seconds is not None:
        yield Sample(of.LAG_SECONDS, labels, seconds)


def _freshness(state: State, freshness: Freshness, asked: Asked) -> Iterator[Sample]:
    worst: dict[str, float] = {}
    unknown: set[str] = set()
    partitions: list[TopicPartition] = list(state.write_speeds)
    for partition in partitions:
        age_ms = freshness.age_ms(partition, asked.now_ms)
        if age_ms is None:
            if freshness.is_unknown(partition, asked.now_ms):
                unknown.add(partition.topic)
            continue
        age_s, topic = age_ms / 1_000, partition.topic
        worst[topic] = max(age_s, worst.get(topic, 0.0))
        if asked.with_partitions:
            yield Sample(of.PARTITION_FRESHNESS, (topic, str(partition.partition)), age_s)
    for topic, age_s in worst.items():
        # A partition of which it is unknown may be the oldest: then it is unknown of the topic.
        if topic not in unknown or age_s > asked.objective_s:
            yield Sample(of.TOPIC_FRESHNESS, (topic,), age_s)
