"""One measurement joined from its parts, and its age.

The controller does not act on an old measurement. The age is that of the newest sample at
publication, plus the time since. The reader measures that time with its monotonic clock from the
moment it read the message; only for a message published before the reader started does it compare
wall clocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from penstock.messages.write_speed import PartitionSpeed, WriteSpeedMeasurement


@dataclass(frozen=True, slots=True)
class WholeMeasurement:
    monitor_incarnation: int
    sequence: int
    published_at_unix_ms: int
    age_ms: int
    window_ms: int
    partitions: tuple[PartitionSpeed, ...]
    read_at_s: float
    age_when_read_s: float

    @classmethod
    def from_parts(
        cls, parts: Sequence[WriteSpeedMeasurement], *, read_at_s: float, unread_s: float = 0.0
    ) -> Self:
        """`parts` are all parts of one measurement, in order, as `PartAssembler` returns them.

        `unread_s` is the time between publication and reading, where it is known.
        """
        first = parts[0]
        return cls(
            monitor_incarnation=first.monitor_incarnation,
            sequence=first.sequence,
            published_at_unix_ms=first.published_at_unix_ms,
            age_ms=first.age_ms,
            window_ms=first.window_ms,
            partitions=tuple(row for part in parts for row in part.partitions),
            read_at_s=read_at_s,
            age_when_read_s=first.age_ms / 1000 + unread_s,
        )

    def age_s(self, now_s: float) -> float:
        """`now_s` comes from the same monotonic clock as `read_at_s`."""
        return self.age_when_read_s + max(0.0, now_s - self.read_at_s)
