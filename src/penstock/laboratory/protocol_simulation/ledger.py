"""A simulated ledger: a compare-and-set per partition, one commit per table.

A commit has a start and an end for each of its partitions. It is accepted as a whole only if every
stored offset equals its start, and what its writer expects the ledger to hold. Tests turn
`checks_start` off to show that "the highest end wins" duplicates records.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.model import ConsumerId, Epoch, OffsetRange, TopicPartition

LedgerKey = tuple[str, int]  # topic id and partition; a re-created topic has a new id


@dataclass(frozen=True, slots=True)
class SimulatedCommit:
    key: LedgerKey
    start: int
    end: int
    epoch: Epoch
    consumer: ConsumerId
    incarnation: int


@dataclass(slots=True)
class Ledger:
    checks_start: bool = True
    next_offset: dict[LedgerKey, int] = field(default_factory=dict)
    last_epoch: dict[LedgerKey, Epoch] = field(default_factory=dict)
    commits: list[SimulatedCommit] = field(default_factory=list)

    def read(self, key: LedgerKey) -> int:
        return self.next_offset.get(key, 0)

    def commit(
        self,
        ranges: Mapping[LedgerKey, OffsetRange],
        epochs: Mapping[TopicPartition, Epoch],
        consumer: ConsumerId,
        incarnation: int,
        expected: Mapping[LedgerKey, int | None] | None = None,
    ) -> tuple[LedgerKey, ...]:
        """Empty if accepted; else the partitions in which another writer was first.

        `expected` is what the writer read in the ledger, with None for a new partition; without it
        only the starts are compared.
        """
        if self.checks_start:
            late = tuple(
                p
                for p, r in ranges.items()
                if self.read(p) != r.start
                or (expected is not None and self.next_offset.get(p) != expected[p])
            )
        else:
            late = tuple(p for p, r in ranges.items() if self.read(p) >= r.end)
        if late:
            return late
        for key, taken in ranges.items():
            epoch = epochs[taken.partition]
            commit = SimulatedCommit(key, taken.start, taken.end, epoch, consumer, incarnation)
            self.next_offset[key] = taken.end
            self.last_epoch[key] = epoch
            self.commits.append(commit)
        return ()
