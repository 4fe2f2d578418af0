"""A packer for simulated worlds: quick, sticky and plain. It is not one to use for real loads.

Partitions stay where they fit; the rest goes, largest first, to the first consumer with room, and a
new consumer is taken while the maximum allows.
"""

from penstock.model import Assignment, ConsumerId, TopicPartition
from penstock.packing import Packing, PackingProblem


class PlainPacking:
    name = "plain"
    sentence = "For simulated worlds: keeps what fits, first fit decreasing for the rest."

    def pack(self, problem: PackingProblem) -> Packing:
        speeds = problem.load_bytes_per_s
        bins: dict[ConsumerId, list[TopicPartition]] = {c: [] for c in problem.current}
        room = {c: problem.capacity_of(c) for c in bins}
        counts_max = problem.partitions_per_consumer_max or len(speeds) + 1
        homeless = []
        for partition in sorted(speeds, key=lambda p: (-speeds[p], p.topic, p.partition)):
            owner = problem.current.owner_of(partition)
            if owner is not None and (
                (speeds[partition] <= room[owner] and len(bins[owner]) < counts_max)
                or not bins[owner]
            ):
                bins[owner].append(partition)
                room[owner] -= speeds[partition]
            else:
                homeless.append(partition)
        if self._would_empty_one(problem, bins, room):
            homeless = self._empty_the_lightest(problem, bins, room) + homeless
        for partition in homeless:
            self._place(problem, partition, bins, room, counts_max)
        used = {c: parts for c, parts in bins.items() if parts}
        oversize = [p for c, ps in used.items() for p in ps if speeds[p] > problem.capacity_of(c)]
        overloaded = [c for c, ps in used.items() if len(ps) > 1 and room[c] < 0]
        return Packing(Assignment(used), tuple(sorted(oversize)), tuple(sorted(overloaded)))

    def _place(
        self,
        problem: PackingProblem,
        partition: TopicPartition,
        bins: dict[ConsumerId, list[TopicPartition]],
        room: dict[ConsumerId, float],
        counts_max: int,
    ) -> None:
        speed = problem.load_bytes_per_s[partition]
        used = [c for c in sorted(bins) if bins[c]]
        fitting = [c for c in used if speed <= room[c] and len(bins[c]) < counts_max]
        if fitting:
            chosen = fitting[0]
        elif problem.consumers_max is None or len(used) < problem.consumers_max:
            empty = [c for c in sorted(bins) if not bins[c]]
            chosen = empty[0] if empty else ConsumerId(max(bins, default=0) + 1)
            bins.setdefault(chosen, [])
            room.setdefault(chosen, problem.capacity_of(chosen))
        else:
            chosen = max(used, key=lambda c: (room[c], -c))
        bins[chosen].append(partition)
        room[chosen] -= speed

    def _would_empty_one(
        self,
        problem: PackingProblem,
        bins: dict[ConsumerId, list[TopicPartition]],
        room: dict[ConsumerId, float],
    ) -> bool:
        """Whether the load of the lightest fits well into the room of the others."""
        used = [c for c in bins if bins[c]]
        if len(used) < 2:
            return False
        lightest = min(used, key=lambda c: (problem.capacity_of(c) - room[c], c))
        load = problem.capacity_of(lightest) - room[lightest]
        return sum(max(0.0, room[c]) for c in used if c != lightest) > 2 * load

    def _empty_the_lightest(
        self,
        problem: PackingProblem,
        bins: dict[ConsumerId, list[TopicPartition]],
        room: dict[ConsumerId, float],
    ) -> list[TopicPartition]:
        used = [c for c in bins if bins[c]]
        lightest = min(used, key=lambda c: (problem.capacity_of(c) - room[c], c))
        moved, bins[lightest] = bins[lightest], []
        room[lightest] = problem.capacity_of(lightest)
        return moved
