"""What brokers report about their logs: leaders, sizes, first and last offsets.

A log is named by a plain (topic, partition) pair, because thousands are handled every second and
the broker's names need no check. Times are monotonic seconds, halfway between request and answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

LogName: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class LogPlace:
    """The topic's id (a re-created topic has a new one), and the broker that leads the log."""

    topic_id: str
    leader: int
    is_internal: bool = False


@dataclass(frozen=True, slots=True)
class BrokerLogSizes:
    """Bytes on one broker's disks, of leaders and followers."""

    broker_id: int
    taken_at_s: float
    size_bytes: Mapping[LogName, int]


@dataclass(frozen=True, slots=True)
class LogOffsets:
    """First and last offsets, from the broker that leads the logs; unknown ones are absent."""

    broker_id: int
    taken_at_s: float
    start: Mapping[LogName, int]
    end: Mapping[LogName, int]
