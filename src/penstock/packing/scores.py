"""Scores of packings: the two published ones, balance, consumer-hours and moves per hour.

- R: the load that moved, in capacities of a consumer. A first assignment does not count.
- CBS: the share of consumers above the fewest of the compared algorithms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from penstock.model import Assignment, TopicPartition

SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Moves:
    """What moved between two assignments. New and deleted partitions do not count."""

    partitions: int
    load_bytes_per_s: float

    def score(self, capacity_bytes_per_s: float) -> float:
        """R of one run."""
        return self.load_bytes_per_s / capacity_bytes_per_s


def moves_between(
    before: Assignment,
    after: Assignment,
    write_speed_bytes_per_s: Mapping[TopicPartition, float],
) -> Moves:
    owners = before.owners
    moved = [
        partition
        for partition, consumer in after.owners.items()
        if owners.get(partition, consumer) != consumer
    ]
    return Moves(len(moved), fsum(write_speed_bytes_per_s.get(p, 0.0) for p in moved))


def cardinal_bin_scores(consumers: Mapping[str, Sequence[int]]) -> dict[str, float]:
    """CBS by algorithm, from each algorithm's number of consumers in every run.

    The score depends on the compared set: the fewest are the fewest of its algorithms.
    """
    fewest = [min(counts) for counts in zip(*consumers.values(), strict=True)]
    return {
        name: fsum((count - least) / max(1, least) for count, least in zip(c, fewest, strict=True))
        / max(1, len(fewest))
        for name, c in consumers.items()
    }


def loads_bytes_per_s(
    assignment: Assignment, write_speed_bytes_per_s: Mapping[TopicPartition, float]
) -> dict[int, float]:
    """Consumer -> the sum of its partitions' speeds, independent of their order."""
    return {
        consumer: fsum(write_speed_bytes_per_s.get(partition, 0.0) for partition in partitions)
        for consumer, partitions in assignment.items()
    }


def load_balance(loads: Sequence[float]) -> float:
    """The mean load as a share of the highest: 1 is perfectly even."""
    highest = max(loads, default=0.0)
    return 1.0 if highest == 0 else fsum(loads) / len(loads) / highest


def consumer_hours(consumers: Sequence[int], interval_s: float) -> float:
    """Consumers over time; each count stands for one interval."""
    return sum(consumers) * interval_s / SECONDS_PER_HOUR


def per_hour(count: float, measurements: int, interval_s: float) -> float:
    hours = measurements * interval_s / SECONDS_PER_HOUR
    return count / hours if hours else 0.0
