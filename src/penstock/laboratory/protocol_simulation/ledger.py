"""The simulated ledger: a compare-and-set per partition, one commit per table.

A commit names where each of its partitions starts and ends. It is accepted only if every stored
offset equals the start; else nothing of it is. `refuses_the_late` can be turned off, to show what
a ledger does in which the highest end wins.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.model import ConsumerId, Epoch, OffsetRange, TopicPartition

Place = tuple[str, int]  # topic id and partition: a topic that is made again starts afresh


@dataclass(frozen=True, slots=True)
class SimulatedCommit:
    place: Place
    start: int
    end: int
    epoch: Epoch
    consumer: ConsumerId
    incarnation: int


@dataclass(slots=True)
class Ledger:
    refuses_the_late: bool = True
    next_offset: dict[Place, int] = field(default_factory=dict)
    last_epoch: dict[Place, Epoch] = field(default_factory=dict)
    commits: list[SimulatedCommit] = field(default_factory=list)

    def read(self, place: Place) -> int:
        return self.next_offset.get(place, 0)

    def commit(
        self,
        ranges: Mapping[Place, OffsetRange],
        epochs: Mapping[TopicPartition, Epoch],
        consumer: ConsumerId,
        incarnation: int,
    ) -> tuple[Place, ...]:
        """Nothing when it was accepted; else the places where another writer was first."""
        if self.refuses_the_late:
            late = tuple(p for p, r in ranges.items() if self.read(p) != r.start)
        else:
            late = tuple(p for p, r in ranges.items() if self.read(p) >= r.end)
        if late:
            return late
        for place, taken in ranges.items():
            epoch = epochs[taken.partition]
            commit = SimulatedCommit(place, taken.start, taken.end, epoch, consumer, incarnation)
            self.next_offset[place] = taken.end
            self.last_epoch[place] = epoch
            self.commits.append(commit)
        return ()
