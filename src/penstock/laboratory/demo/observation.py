"""Observations of the group during the demo, and their summary. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from penstock.model import Assignment, TopicPartition
from penstock.packing import PackingProblem
from penstock.packing.lower_bound import consumers_at_least


@dataclass(frozen=True, slots=True)
class Moment:
    """The group at one moment, from the controller's status."""

    at_s: float
    phase: str
    written_bytes_per_s: float
    load_by_consumer: Mapping[int, float]
    consumers_up: int
    consumers_needed: int
    moving: int


def moment(at_s: float, status: dict[str, Any], capacity_bytes_per_s: float) -> Moment:
    speeds = {
        TopicPartition.parse(name): float(one["write_speed_bytes_per_s"])
        for name, one in status["partitions"].items()
        if one["write_speed_bytes_per_s"] is not None
    }
    problem = PackingProblem(speeds, Assignment(), capacity_bytes_per_s)
    return Moment(
        at_s=at_s,
        phase=status["phase"],
        written_bytes_per_s=sum(speeds.values()),
        load_by_consumer={
            one["consumer"]: one["load_bytes_per_s"]
            for one in status["consumers"]
            if one["partitions"]
        },
        consumers_up=len(status["consumers"]),
        consumers_needed=consumers_at_least(problem) if speeds else 0,
        moving=len(status["moves"]),
    )


def has_grown(moments: Sequence[Moment]) -> bool:
    used = [len(one.load_by_consumer) for one in moments] or [0]
    return max(used) > used[0]


def has_shrunk(moments: Sequence[Moment]) -> bool:
    """At its end fewer consumers carry the load than at its height."""
    used = [len(one.load_by_consumer) for one in moments] or [0]
    return max(used) > used[-1]


@dataclass(frozen=True, slots=True)
class HandOver:
    """A move of one partition; no consumer reads it between the stop and the next start."""

    partition: str
    from_consumer: int
    to_consumer: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ConsumptionChange:
    """A stop or start that a consumer reported, with the broker's timestamp."""

    at_ms: int
    consumer: int
    partition: str
    is_start: bool


def hand_overs(changes: Sequence[ConsumptionChange]) -> list[HandOver]:
    """Every stop, with the start at another consumer that followed it."""
    stopped: dict[str, ConsumptionChange] = {}
    found = []
    for one in sorted(changes, key=lambda one: (one.at_ms, one.is_start, one.partition)):
        if not one.is_start:
            stopped[one.partition] = one
        elif (before := stopped.pop(one.partition, None)) and before.consumer != one.consumer:
            seconds = (one.at_ms - before.at_ms) / 1000
            found.append(HandOver(one.partition, before.consumer, one.consumer, seconds))
    return found


def demo_figures(moments: Sequence[Moment], moved: Sequence[HandOver]) -> dict[str, float]:
    seconds = sorted(one.seconds for one in moved)
    return {
        "consumers_mean": mean(len(one.load_by_consumer) for one in moments) if moments else 0.0,
        "consumers_max": max((len(one.load_by_consumer) for one in moments), default=0),
        "needed_mean": mean(one.consumers_needed for one in moments) if moments else 0.0,
        "needed_max": max((one.consumers_needed for one in moments), default=0),
        "hand_overs": len(seconds),
        "hand_over_median_s": median(seconds) if seconds else 0.0,
        "hand_over_p99_s": seconds[min(len(seconds) - 1, int(0.99 * len(seconds)))]
        if seconds
        else 0.0,
    }
