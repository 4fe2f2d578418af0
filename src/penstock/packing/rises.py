"""How far the load of consumers rises before a plan can help. Pure.

A group is packed for what it has seen: a peak that comes again is carried already. What needs head
room is a rise above the highest load of the scale-down window, within the time from the rise until
its partitions have moved. Each such rise is a share of a consumer's capacity, and counts once for
each consumer and look.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from math import ceil

from penstock.model import ConsumerId, TopicPartition
from penstock.packing.speed_memory import SpeedMemory

# Rises are counted in bins of this width; the last bin has all that are larger.
_BIN = 0.02
_BINS = 51
# What was seen an hour ago counts half.
_HALVED_AFTER_MS = 3_600_000
# With fewer looks nothing is said: a group that has just begun has seen no peak yet.
_MEASURED_MS_MIN = 600_000


@dataclass(frozen=True, slots=True)
class Rises:
    """What is remembered between measurements. Starts empty."""

    began_ms: int | None = None
    looked_ms: int | None = None
    # The highest load of each partition at the last look.
    highest_bytes_per_s: Mapping[TopicPartition, float] = field(default_factory=dict)
    # How many rises were that large, the older the less.
    counted: tuple[float, ...] = (0.0,) * _BINS

    def not_exceeded(self, share: float) -> float | None:
        """The rise that is not exceeded in this share of the looks; None while it is unknown."""
        if self.began_ms is None or self.looked_ms is None:
            return None
        total = sum(self.counted)
        if self.looked_ms - self.began_ms < _MEASURED_MS_MIN or not total:
            return None
        up_to = accumulate(self.counted)
        return next(n * _BIN for n, seen in enumerate(up_to) if seen >= share * total)


def look(
    rises: Rises,
    speeds: Mapping[TopicPartition, float],
    memory: SpeedMemory,
    held_by: Mapping[ConsumerId, Collection[TopicPartition]],
    capacity_bytes_per_s: float,
    now_ms: int,
    every_ms: int,
    weights: Mapping[str, float] | None = None,
    strengths: Mapping[ConsumerId, float] | None = None,
) -> Rises:
    """The rises after one more measurement; `every_ms` is how long a plan takes to help.

    `weights` say how much the load of a topic counts for the capacity, and `strengths` how much a
    consumer carries of what a usual one does, where it is not 1.
    """
    if rises.looked_ms is not None and now_ms - rises.looked_ms < every_ms:
        return rises
    began_ms = now_ms if rises.began_ms is None else rises.began_ms
    if rises.looked_ms is None:
        return Rises(began_ms, now_ms, memory.highest)
    kept = 0.5 ** ((now_ms - rises.looked_ms) / _HALVED_AFTER_MS)
    counted = [number * kept for number in rises.counted]
    before, counts, strong = rises.highest_bytes_per_s, weights or {}, strengths or {}
    for consumer, held in held_by.items():
        known = [partition for partition in held if partition in before]
        if known:
            over = sum((speeds.get(p, 0.0) - before[p]) * counts.get(p.topic, 1.0) for p in known)
            share = max(0.0, over / (capacity_bytes_per_s * strong.get(consumer, 1.0)))
            counted[min(_BINS - 1, ceil(share / _BIN))] += 1
    return Rises(began_ms, now_ms, memory.highest, tuple(counted))
