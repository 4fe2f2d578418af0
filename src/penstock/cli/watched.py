"""What a watch remembers of its measurements. Pure.

It does not grow with the time, so a day can be watched as well as a minute.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.cli.known_capacities import KnownCapacities
from penstock.controller.core.capacity import speeds_by_topic
from penstock.model import TopicPartition

POINTS_DRAWN = 240
# So many points are kept at most, and half as many at least, so that the parts drawn are even.
POINTS_KEPT_MAX = 8 * POINTS_DRAWN
BUSIEST_KEPT = 60

Speeds = Mapping[TopicPartition, float]


@dataclass(slots=True)
class OverTime:
    """One figure over time: its mean, its highest value, and how it went."""

    number: int = 0
    total: float = 0.0
    highest: float = 0.0
    newest: float = 0.0
    # The highest of each part; a part is so many values.
    parts: list[float] = field(default_factory=list)
    values_in_a_part: int = 1

    def add(self, value: float) -> None:
        if self.number % self.values_in_a_part:
            self.parts[-1] = max(self.parts[-1], value)
        else:
            if len(self.parts) == POINTS_KEPT_MAX:
                self.parts = [max(pair) for pair in zip(*[iter(self.parts)] * 2, strict=True)]
                self.values_in_a_part *= 2
            self.parts.append(value)
        self.number += 1
        self.total += value
        self.highest = max(self.highest, value)
        self.newest = value

    @property
    def mean(self) -> float:
        return self.total / self.number

    def drawn(self) -> tuple[float, ...]:
        return drawn(self.parts)


@dataclass(slots=True)
class Watched:
    """What was seen: speeds, and what the imaginary group did with them."""

    seconds: float = 0.0
    measurements: int = 0
    written: OverTime = field(default_factory=OverTime)
    consumers: OverTime = field(default_factory=OverTime)
    # The load, as the number of consumers that it fills.
    load: OverTime = field(default_factory=OverTime)
    consumers_at_least: int = 0
    changes: int = 0
    moves: int = 0
    # The highest speed of each partition, and the sum of all speeds of each topic.
    highest: dict[TopicPartition, float] = field(default_factory=dict)
    written_by_topic: dict[str, float] = field(default_factory=dict)
    # The newest measurement, row by row.
    rows: list[dict[str, Any]] = field(default_factory=list)
    # With the load and the place of each, the least busy first.
    _busiest: list[tuple[float, int, Speeds]] = field(default_factory=list)

    def note(self, speeds: Speeds, known: KnownCapacities) -> None:
        """One measurement."""
        by_topic = speeds_by_topic(speeds, speeds)
        for topic, speed in by_topic.items():
            self.written_by_topic[topic] = self.written_by_topic.get(topic, 0.0) + speed
        usual = known.weighed(by_topic)
        load = sum(speed / usual.of(topic) for topic, speed in by_topic.items())
        self.measurements += 1
        self.written.add(sum(by_topic.values()))
        self.load.add(load)
        for partition, speed in speeds.items():
            if speed >= self.highest.get(partition, 0.0):
                self.highest[partition] = speed
        one = (load, -self.measurements, speeds)
        if len(self._busiest) < BUSIEST_KEPT:
            heapq.heappush(self._busiest, one)
        else:
            heapq.heappushpop(self._busiest, one)

    @property
    def busiest(self) -> list[Speeds]:
        """The measurements with the highest load, the busiest first."""
        return [speeds for _, _, speeds in sorted(self._busiest, key=lambda one: -one[0])]


def drawn(values: Sequence[float]) -> tuple[float, ...]:
    """At most `POINTS_DRAWN` values: the highest of each even part."""
    number = min(len(values), POINTS_DRAWN)
    ends = [len(values) * (place + 1) // number for place in range(number)]
    return tuple(
        max(values[begin:end]) for begin, end in zip([0, *ends], ends, strict=False) if end > begin
    )
