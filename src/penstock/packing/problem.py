"""The problem that every packing algorithm solves, and its result.

The problem is validated here, so that no algorithm sees NaN, a negative speed or a zero capacity.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Protocol

from penstock.model import Assignment, ConsumerId, TopicPartition

# The smallest capacity that a person may set or a consumer may report. A share of a much smaller
# one can round to 0, which is no capacity.
CAPACITY_BYTES_PER_S_MIN = 1.0


@dataclass(frozen=True, slots=True)
class PackingProblem:
    """Partitions with their load, who reads them now, and what a consumer can carry.

    The load of a partition is its write speed plus, in a live group, what it takes to be rid of its
    backlog in time. `current` may name partitions that have no load any more (they vanished) and
    consumers that own nothing; partitions with a load and no owner are new. Consumers not in
    `capacity_bytes_per_s_by_consumer` carry `capacity_bytes_per_s`. `forecast_bytes_per_s` says
    what a partition is expected to write soon (see `trend`); algorithms may use it to choose among
    answers that are equally good now, never to leave capacity unheld.
    """

    load_bytes_per_s: Mapping[TopicPartition, float]
    current: Assignment
    capacity_bytes_per_s: float
    capacity_bytes_per_s_by_consumer: Mapping[ConsumerId, float] = field(default_factory=dict)
    partitions_per_consumer_max: int | None = None
    consumers_max: int | None = None
    forecast_bytes_per_s: Mapping[TopicPartition, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for partition, load in chain(
            self.load_bytes_per_s.items(), self.forecast_bytes_per_s.items()
        ):
            if not (math.isfinite(load) and load >= 0):
                raise ValueError(f"{partition}: a load is a finite number >= 0, got {load!r}")
        capacities = [self.capacity_bytes_per_s, *self.capacity_bytes_per_s_by_consumer.values()]
        for capacity in capacities:
            if not (math.isfinite(capacity) and capacity > 0):
                raise ValueError(f"a capacity is a finite number > 0, got {capacity!r}")
        for bound in (self.partitions_per_consumer_max, self.consumers_max):
            if bound is not None and bound < 1:
                raise ValueError(f"a maximum is at least 1, got {bound!r}")

    def capacity_of(self, consumer: ConsumerId) -> float:
        return self.capacity_bytes_per_s_by_consumer.get(consumer, self.capacity_bytes_per_s)


@dataclass(frozen=True, slots=True)
class Packing:
    """The result: every partition exactly once, and only consumers that hold something.

    `oversize` are partitions faster than a whole consumer, each alone on one. `overloaded` are
    consumers above their capacity because the maximum number of consumers is reached.
    """

    assignment: Assignment
    oversize: tuple[TopicPartition, ...] = ()
    overloaded: tuple[ConsumerId, ...] = ()


class PackingAlgorithm(Protocol):
    """A packing algorithm: its name, a sentence on when to use it, and `pack`."""

    @property
    def name(self) -> str: ...

    @property
    def sentence(self) -> str: ...

    def pack(self, problem: PackingProblem) -> Packing: ...
