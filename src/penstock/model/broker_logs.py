"""What brokers tell of their logs: who leads which, how large each is, where it begins and ends.

A log is named by a plain (topic, partition) pair: thousands are handled every second, and the names
come from the broker itself. Times are monotonic seconds, halfway between question and answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

LogName: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class LogPlace:
    """Which topic this is (its id changes when it is made again), and the broker that leads it."""

    topic_id: str
    leader: int
    is_internal: bool = False


@dataclass(frozen=True, slots=True)
class BrokerLogSizes:
    """Bytes on one broker's disks: leaders and followers alike."""

    broker_id: int
    taken_at_s: float
    size_bytes: Mapping[LogName, int]


@dataclass(frozen=True, slots=True)
class LogOffsets:
    """Where logs begin and end, told by the broker that leads them; what it could not is absent."""

    broker_id: int
    taken_at_s: float
    start: Mapping[LogName, int]
    end: Mapping[LogName, int]
