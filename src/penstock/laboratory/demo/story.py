"""The script of the demo: the load over time, and when the group is disrupted. Pure.

The load rises, shifts from topic to topic, bursts and falls. One consumer is killed, the controller
is killed while partitions move, and a topic gets more partitions. SHORT does the same with a
smaller group in less time.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.laboratory.load.shapes import Replay
from penstock.laboratory.load.targets import Target
from penstock.model import TopicPartition

CAPACITY_BYTES_PER_S = 400_000
DRAIN_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class DemoIncident:
    """A disruption of the group, for the picture and the report."""

    at_s: float
    explanation: str


@dataclass(frozen=True, slots=True)
class Story:
    """`phases`: the second at which each begins, and the speed of each topic's partitions."""

    partitions_per_topic: int
    grown_topic: str
    grown_by: int
    phases: tuple[tuple[float, Mapping[str, float]], ...]
    duration_s: float
    kill_consumer_at_s: float
    kill_controller_after_s: float
    add_partitions_at_s: float
    scale_down_period_s: float

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(self.phases[0][1])

    def targets(self) -> list[Target]:
        return [
            Target(TopicPartition(topic, number), self._shape(topic, 0.0))
            for topic in self.topics
            for number in range(self.partitions_per_topic)
        ]

    def added_targets(self, since_s: float) -> list[Target]:
        """The load of the added partitions: the topic's speed from then on."""
        first = self.partitions_per_topic
        return [
            Target(TopicPartition(self.grown_topic, number), self._shape(self.grown_topic, since_s))
            for number in range(first, first + self.grown_by)
        ]

    def _shape(self, topic: str, since_s: float) -> Replay:
        later = [(max(0.0, start_s - since_s), speeds[topic]) for start_s, speeds in self.phases]
        # Of the phases that have begun already only the last one counts.
        first = max(index for index, (start_s, _) in enumerate(later) if start_s == 0.0)
        return Replay(
            [start_s for start_s, _ in later[first:]], [speed for _, speed in later[first:]]
        )


WHOLE = Story(
    partitions_per_topic=8,
    grown_topic="orders",
    grown_by=4,
    phases=(
        (0.0, {"orders": 20e3, "clicks": 10e3, "payments": 10e3}),
        (20.0, {"orders": 80e3, "clicks": 20e3, "payments": 20e3}),
        (48.0, {"orders": 20e3, "clicks": 90e3, "payments": 40e3}),
        (74.0, {"orders": 30e3, "clicks": 60e3, "payments": 110e3}),
        (88.0, {"orders": 10e3, "clicks": 10e3, "payments": 10e3}),
    ),
    duration_s=125.0,
    kill_consumer_at_s=38.0,
    kill_controller_after_s=48.0,
    add_partitions_at_s=66.0,
    scale_down_period_s=15.0,
)
SHORT = Story(
    partitions_per_topic=4,
    grown_topic="orders",
    grown_by=2,
    phases=(
        (0.0, {"orders": 30e3, "clicks": 20e3}),
        (5.0, {"orders": 120e3, "clicks": 40e3}),
        (20.0, {"orders": 40e3, "clicks": 150e3}),
        (34.0, {"orders": 10e3, "clicks": 10e3}),
    ),
    duration_s=52.0,
    kill_consumer_at_s=14.0,
    kill_controller_after_s=20.0,
    add_partitions_at_s=28.0,
    scale_down_period_s=6.0,
)
