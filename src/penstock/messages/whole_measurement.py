"""One measurement put together again from its parts, and how old it is.

The age is what a reader decides by: an old measurement is no reason to act. It is the age of the
newest sample when the measurement was published, plus the time since. The time since is counted by
the reader's monotonic clock from the moment it read the message; only for what was there before the
reader came does it have to trust the two wall clocks.
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

    @classmethod
    def from_parts(cls, parts: Sequence[WriteSpeedMeasurement]) -> Self:
        """`parts` are all of one measurement, in order, as `PartAssembler` gives them."""
        first = parts[0]
        return cls(
            monitor_incarnation=first.monitor_incarnation,
            sequence=first.sequence,
            published_at_unix_ms=first.published_at_unix_ms,
            age_ms=first.age_ms,
            window_ms=first.window_ms,
            partitions=tuple(row for part in parts for row in part.partitions),
        )


@dataclass(frozen=True, slots=True)
class NewestMeasurement:
    measurement: WholeMeasurement
    read_at_s: float
    age_when_read_s: float

    def age_s(self, now_s: float) -> float:
        """`now_s` is of the same monotonic clock that `read_at_s` is of."""
        return self.age_when_read_s + max(0.0, now_s - self.read_at_s)
