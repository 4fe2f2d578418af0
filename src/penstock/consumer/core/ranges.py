"""Which offsets the next batch reads: fair across partitions, bounded by bytes.

Every partition gets the same number of bytes; what a short one leaves goes to the longer ones.
When not even one record of each fits, the partitions that waited longest go first, so that none
starves.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.model import OffsetRange, TopicPartition

# The size of one offset until it was measured.
BYTES_PER_OFFSET_GUESS = 1_000.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """The unread offsets of one partition: from `start` up to `end`, without it."""

    start: int
    end: int
    bytes_per_offset: float = BYTES_PER_OFFSET_GUESS
    # The number of the last batch it was in; a lower one has waited longer.
    last_batch_number: int = 0

    @property
    def offsets(self) -> int:
        return max(0, self.end - self.start)

    @property
    def size_bytes(self) -> float:
        return self.offsets * self.bytes_per_offset


@dataclass(frozen=True, slots=True)
class RangePlan:
    """`is_full` says that the budget did not reach for all records: there is a backlog."""

    ranges: tuple[OffsetRange, ...] = ()
    size_bytes: float = 0.0
    is_full: bool = False


def plan_ranges(waiting: Mapping[TopicPartition, Waiting], budget_bytes: float) -> RangePlan:
    """At most `budget_bytes`, but always at least one offset if anything waits and budget is left.

    A record larger than the whole budget is read alone: the bound must not stop a partition.
    """
    there = {partition: one for partition, one in waiting.items() if one.offsets}
    if not there or budget_bytes <= 0:
        return RangePlan(is_full=bool(there))
    left = budget_bytes
    taken: dict[TopicPartition, int] = {}
    # One record of each, in turn, while the budget lasts.
    for partition in sorted(there, key=lambda name: (there[name].last_batch_number, name)):
        weight = there[partition].bytes_per_offset
        if taken and weight > left:
            continue
        taken[partition] = 1
        left -= weight
    # The rest in equal shares; the short ones first, so that what they leave is shared too.
    by_size = sorted(taken, key=lambda name: (there[name].size_bytes, name))
    for number, partition in enumerate(by_size):
        one = there[partition]
        share = max(0.0, left) / (len(by_size) - number)
        more = min(one.offsets - 1, int(share / one.bytes_per_offset))
        taken[partition] += more
        left -= more * one.bytes_per_offset
    return _as_plan(there, taken)


def _as_plan(
    there: Mapping[TopicPartition, Waiting], taken: Mapping[TopicPartition, int]
) -> RangePlan:
    ranges = tuple(
        OffsetRange(partition, there[partition].start, there[partition].start + taken[partition])
        for partition in sorted(taken)
    )
    return RangePlan(
        ranges=ranges,
        size_bytes=sum(len(one) * there[one.partition].bytes_per_offset for one in ranges),
        is_full=sum(len(one) for one in ranges) < sum(one.offsets for one in there.values()),
    )
