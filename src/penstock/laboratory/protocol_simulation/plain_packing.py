"""A simple, fast packer for the simulation; not meant for real loads.

Partitions stay where they fit. The rest goes, fastest first, to the first consumer with enough free
capacity, or to a new consumer while the maximum allows.
"""

from penstock.model import Assignment, ConsumerId, TopicPartition
from penstock.packing import Packing, PackingProblem


class PlainPacking:
    name = "plain"
    sentence = "For simulations: keeps what fits, first fit decreasing for the rest."

    def pack(self, problem: PackingProblem) -> Packing:
        speeds = problem.load_bytes_per_s
        bins: dict[ConsumerId, list[TopicPartition]] = {c: [] for c in problem.current}
        free = {c: problem.capacity_of(c) for c in bins}
        counts_max = problem.partitions_per_consumer_max or len(speeds) + 1
        unplaced = []
        for partition in sorted(speeds, key=lambda p: (-speeds[p], p.topic, p.partition)):
            owner = problem.current.owner_of(partition)
            if owner is not None and (
                (speeds[partition] <= free[owner] and len(bins[owner]) < counts_max)
                or not bins[owner]
            ):
                bins[owner].append(partition)
                free[owner] -= speeds[partition]
            else:
                unplaced.append(partition)
        if self._would_empty_one(problem, bins, free):
            unplaced = self._empty_the_lightest(problem, bins, free) + unplaced
        for partition in unplaced:
            self._place(problem, partition, bins, free, counts_max)
        used = {c: parts for c, parts in bins.items() if parts}
        oversize = [p for c, ps in used.items() for p in ps if speeds[p] > problem.capacity_of(c)]
        overloaded = [c for c, ps in used.items() if len(ps) > 1 and free[c] < 0]
        return Packing(Assignment(used), tuple(sorted(oversize)), tuple(sorted(overloaded)))

    def _place(
        self,
        problem: PackingProblem,
        partition: TopicPartition,
        bins: dict[ConsumerId, list[TopicPartition]],
        free: dict[ConsumerId, float],
        counts_max: int,
    ) -> None:
        speed = problem.load_bytes_per_s[partition]
        used = [c for c in sorted(bins) if bins[c]]
        fitting = [c for c in used if speed <= free[c] and len(bins[c]) < counts_max]
        if fitting:
            chosen = fitting[0]
        elif problem.consumers_max is None or len(used) < problem.consumers_max:
            empty = [c for c in sorted(bins) if not bins[c]]
            chosen = empty[0] if empty else ConsumerId(max(bins, default=0) + 1)
            bins.setdefault(chosen, [])
            free.setdefault(chosen, problem.capacity_of(chosen))
        else:
            chosen = max(used, key=lambda c: (free[c], -c))
        bins[chosen].append(partition)
        free[chosen] -= speed

    def _would_empty_one(
        self,
        problem: PackingProblem,
        bins: dict[ConsumerId, list[TopicPartition]],
        free: dict[ConsumerId, float],
    ) -> bool:
        """Whether the others have at least twice the free capacity that the lightest one needs."""
        used = [c for c in bins if bins[c]]
        if len(used) < 2:
            return False
        lightest = min(used, key=lambda c: (problem.capacity_of(c) - free[c], c))
        load = problem.capacity_of(lightest) - free[lightest]
        return sum(max(0.0, free[c]) for c in used if c != lightest) > 2 * load

    def _empty_the_lightest(
        self,
        problem: PackingProblem,
        bins: dict[ConsumerId, list[TopicPartition]],
        free: dict[ConsumerId, float],
    ) -> list[TopicPartition]:
        used = [c for c in bins if bins[c]]
        lightest = min(used, key=lambda c: (problem.capacity_of(c) - free[c], c))
        moved, bins[lightest] = bins[lightest], []
        free[lightest] = problem.capacity_of(lightest)
        return moved
