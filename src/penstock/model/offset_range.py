"""A range of offsets of one partition, from `start` up to but not including `end`.

Offsets may be sparse (transaction markers, compaction), so the length of a range is only an upper
bound of its records.
"""

from dataclasses import dataclass

from penstock.model.topic_partition import TopicPartition

OFFSET_MAX = 2**63 - 1


@dataclass(frozen=True, order=True, slots=True)
class OffsetRange:
    partition: TopicPartition
    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end <= OFFSET_MAX:
            raise ValueError(
                f"{self.partition}: offsets run from 0 upwards, got {self.start} to {self.end}"
            )

    def __str__(self) -> str:
        return f"{self.partition} [{self.start}, {self.end})"

    def __len__(self) -> int:
        return self.end - self.start

    def follows(self, other: "OffsetRange") -> bool:
        """Whether this range starts exactly where the other one ends."""
        return self.partition == other.partition and self.start == other.end
