"""How long a simulated group may take to carry what is waiting when nothing is written any more.

It follows from what the scenario lets consumers carry, not from the controller's plans: a group
that holds its partitions badly, or too few consumers for them, is too slow.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.laboratory.protocol_simulation.simulated_consumer import (
    BATCH_MS,
    READ_LIMIT,
    READ_MS,
)

if TYPE_CHECKING:
    from penstock.laboratory.protocol_simulation.simulated_group import SimulatedGroup


@dataclass(frozen=True, slots=True)
class Throughput:
    """What one consumer carries when it works alone, and the largest group in all."""

    one_bytes_per_s: float
    all_bytes_per_s: float


def throughput(group: "SimulatedGroup") -> Throughput:
    """A consumer is held up by its slow batches, by the fixed time of each and by its read limit.

    Batches are bounded, so the fixed time counts however much is waiting: on average that of a
    batch and of the look at the logs before it.
    """
    scenario, capacity = group.scenario, group.capacity_bytes_per_s
    batch_bytes = group.batch_s * capacity
    shares = [share for share in (scenario.carried_by_one, scenario.carried_by_all) if share]
    slow_ms = batch_bytes * 1_000 / (min(shares) * capacity) if shares else 0.0
    fixed_ms = range(BATCH_MS[0], BATCH_MS[1] + 1)
    batch_ms = sum(max(ms, slow_ms) for ms in fixed_ms) / len(fixed_ms) + sum(READ_MS) / 2
    one = min(batch_bytes * 1_000 / batch_ms, READ_LIMIT * capacity)
    of_all = one * scenario.consumers_max
    if scenario.carried_by_all:
        of_all = min(of_all, scenario.carried_by_all * capacity)
    return Throughput(one, of_all)


def drain_ms(waiting_bytes: Collection[int], can_carry: Throughput) -> int:
    """How long the partitions with these backlogs take in a group that shares them out well.

    Only one consumer reads a partition, so the longest backlog takes as long as one consumer needs
    for it, however many there are. Meanwhile and before, all of them carry the rest.
    """
    longest = max(waiting_bytes, default=0)
    rest = sum(waiting_bytes) - longest
    seconds = longest / can_carry.one_bytes_per_s + rest / can_carry.all_bytes_per_s
    return round(seconds * 1_000)


def drain_ms_of(group: "SimulatedGroup") -> int:
    """How long the group may take for what is waiting now."""
    waiting = [
        group.end_offset(partition) - group.ledger.read(key)
        for partition in group.logs
        if (key := group.ledger_key(partition)) is not None
    ]
    return drain_ms(waiting, throughput(group))
