"""Write speeds over time: which are established, and how high they were lately.

A group grows for a speed that lasts, and shrinks only when fewer consumers could have carried the
highest speeds of a while. So one absurd measurement changes nothing, and a load that comes and goes
does not make the group grow and shrink with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from penstock.model import TopicPartition

Speeds = Mapping[TopicPartition, float]

# The highest speeds are kept in this many pieces of their window: enough to forget evenly, few
# enough for ten thousand partitions.
PIECES = 10


@dataclass(frozen=True, slots=True)
class HighestSpeeds:
    """The highest speed of each partition from one measurement to another."""

    began_ms: int
    ended_ms: int
    bytes_per_s: Speeds


@dataclass(frozen=True)
class SpeedMemory:
    """What is remembered between measurements. Starts empty."""

    # The measurements of the shorter window, the oldest first.
    recent: tuple[tuple[int, Speeds], ...] = ()
    # The lowest speed of each partition among them.
    established: Speeds = field(default_factory=dict)
    # The highest established speeds in pieces of the longer window, the oldest first.
    pieces: tuple[HighestSpeeds, ...] = ()

    @cached_property
    def highest(self) -> Speeds:
        """The highest established speed of each partition within the longer window."""
        found = dict(self.established)
        for piece in self.pieces:
            for partition, speed in piece.bytes_per_s.items():
                if speed > found.get(partition, speed):
                    found[partition] = speed
        return found


def remember(
    memory: SpeedMemory, speeds: Speeds, now_ms: int, established_ms: int, highest_ms: int
) -> SpeedMemory:
    """The memory after one more measurement.

    A speed is established when it lasted for `established_ms`, and for two measurements at least:
    a slow monitor's single measurement proves no more than a quick one's.
    """
    recent = (*memory.recent, (now_ms, speeds))
    if established_ms:
        young = [one for one in recent if now_ms - one[0] <= established_ms]
        recent = tuple(young) if len(young) > 1 else recent[-2:]
    else:
        recent = recent[-1:]
    established = dict(speeds)
    for _, former in recent[:-1]:
        for partition, speed in former.items():
            if speed < established.get(partition, speed):
                established[partition] = speed
    return SpeedMemory(recent, established, _pieces(memory, established, now_ms, highest_ms))


def _pieces(
    memory: SpeedMemory, established: Speeds, now_ms: int, highest_ms: int
) -> tuple[HighestSpeeds, ...]:
    kept = tuple(one for one in memory.pieces if now_ms - one.ended_ms < highest_ms)
    if not kept or now_ms - kept[-1].began_ms >= highest_ms / PIECES:
        return (*kept, HighestSpeeds(now_ms, now_ms, established))
    last = kept[-1]
    highest = {p: max(speed, last.bytes_per_s.get(p, speed)) for p, speed in established.items()}
    return (*kept[:-1], HighestSpeeds(last.began_ms, now_ms, highest))
