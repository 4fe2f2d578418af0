"""What happens in the demo and when. Pure: a load over time, and what is done to the group.

The load rises, shifts from topic to topic, bursts and falls. One consumer is killed, the controller
is killed while partitions move, and a topic gets more partitions.
"""

from dataclasses import dataclass

from penstock.load.shapes import Replay
from penstock.load.targets import Target
from penstock.model import TopicPartition

TOPICS = ("orders", "clicks", "payments")
PARTITIONS_PER_TOPIC = 8
GROWN_TOPIC, GROWN_BY = "orders", 4
CAPACITY_BYTES_PER_S = 400_000

# From which second on, and how fast each partition of each topic is written (bytes/s).
_PHASES: tuple[tuple[float, dict[str, float]], ...] = (
    (0.0, {"orders": 20e3, "clicks": 10e3, "payments": 10e3}),
    (20.0, {"orders": 80e3, "clicks": 20e3, "payments": 20e3}),
    (48.0, {"orders": 20e3, "clicks": 90e3, "payments": 40e3}),
    (74.0, {"orders": 30e3, "clicks": 60e3, "payments": 110e3}),
    (88.0, {"orders": 10e3, "clicks": 10e3, "payments": 10e3}),
)
DURATION_S = 125.0
KILL_CONSUMER_AT_S = 38.0
KILL_CONTROLLER_AFTER_S = 48.0
ADD_PARTITIONS_AT_S = 66.0
DRAIN_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that was done to the group, for the picture and the report."""

    at_s: float
    words: str


def targets() -> list[Target]:
    return [
        Target(TopicPartition(topic, number), _shape(topic, 0.0))
        for topic in TOPICS
        for number in range(PARTITIONS_PER_TOPIC)
    ]


def added_targets(since_s: float) -> list[Target]:
    """The load of the partitions that are added: it follows the topic's from then on."""
    numbers = range(PARTITIONS_PER_TOPIC, PARTITIONS_PER_TOPIC + GROWN_BY)
    return [
        Target(TopicPartition(GROWN_TOPIC, number), _shape(GROWN_TOPIC, since_s))
        for number in numbers
    ]


def _shape(topic: str, since_s: float) -> Replay:
    later = [(max(0.0, start_s - since_s), speeds[topic]) for start_s, speeds in _PHASES]
    # Of the phases that are over already only the last one counts.
    first = max(index for index, (start_s, _) in enumerate(later) if start_s == 0.0)
    return Replay([start_s for start_s, _ in later[first:]], [speed for _, speed in later[first:]])
