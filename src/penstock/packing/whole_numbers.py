"""The packing problem in whole numbers and in one fixed order.

Sums of floating-point numbers depend on their order, so "load + speed fits the capacity" could be
true in one order and false in another. Here every speed and capacity becomes a whole number of one
common unit (a float is a fraction whose denominator is a power of two), so every comparison is
exact. Partitions are sorted by name, so the order of the input does not matter.

Every algorithm starts from an `IntegerProblem` and ends with its `answer`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

from penstock.model import Assignment, ConsumerId, TopicPartition
from penstock.packing.problem import Packing, PackingProblem

NO_CONSUMER = 0
"""The home of a partition that no consumer owns: one below the lowest consumer."""


@dataclass(frozen=True, slots=True)
class IntegerProblem:
    """Items are partitions, numbered in the order of their names; consumers keep their numbers.

    `home` is the present owner of each item. Without a forecast `sizes_ahead` is `sizes` itself.
    """

    partitions: tuple[TopicPartition, ...]
    sizes: tuple[int, ...]
    sizes_ahead: tuple[int, ...]
    home: tuple[int, ...]
    consumers_now: tuple[int, ...]
    capacity: int
    capacity_by_consumer: Mapping[int, int]
    items_max: int

    @classmethod
    def of(cls, problem: PackingProblem) -> "IntegerProblem":
        speeds = problem.load_bytes_per_s
        ahead = problem.forecast_bytes_per_s
        partitions = tuple(sorted(speeds))
        now = [speeds[partition] for partition in partitions]
        later = [max(speeds[p], ahead.get(p, 0)) for p in partitions] if ahead else now
        special = problem.capacity_bytes_per_s_by_consumer
        capacity = problem.capacity_bytes_per_s
        unit = lcm(
            *{value.as_integer_ratio()[1] for value in now},
            *({value.as_integer_ratio()[1] for value in later} if ahead else ()),
            *{value.as_integer_ratio()[1] for value in (capacity, *special.values())},
        )
        owners = problem.current.owners
        sizes = tuple(_whole(now, unit))
        return cls(
            partitions=partitions,
            sizes=sizes,
            sizes_ahead=tuple(_whole(later, unit)) if ahead else sizes,
            home=tuple(owners.get(partition, NO_CONSUMER) for partition in partitions),
            consumers_now=tuple(problem.current),
            capacity=next(_whole([capacity], unit)),
            capacity_by_consumer=dict(zip(special, _whole(special.values(), unit), strict=True)),
            items_max=problem.partitions_per_consumer_max or max(1, len(partitions)),
        )

    def stretched(self, stretch: Fraction) -> "IntegerProblem":
        """The same problem with every capacity multiplied: see `bounded` for when that is needed.

        The part below one unit is cut off; sums of sizes are whole, so the same sums fit.
        """
        special = self.capacity_by_consumer
        return replace(
            self,
            capacity=int(self.capacity * stretch),
            capacity_by_consumer={c: int(special[c] * stretch) for c in special},
        )

    @property
    def capacity_max(self) -> int:
        return max(self.capacity, *self.capacity_by_consumer.values(), 0)

    def capacity_of(self, consumer: int) -> int:
        return self.capacity_by_consumer.get(consumer, self.capacity)

    def members_now(self) -> dict[int, list[int]]:
        """Consumer -> its items, for consumers that hold some, in ascending order."""
        members: dict[int, list[int]] = {}
        for item, consumer in enumerate(self.home):
            if consumer != NO_CONSUMER:
                members.setdefault(consumer, []).append(item)
        return {consumer: members[consumer] for consumer in sorted(members)}

    def answer(self, members: Mapping[int, Iterable[int]]) -> Packing:
        """Convert the result back to partitions, and flag oversize and overloaded ones."""
        held = {consumer: tuple(members[consumer]) for consumer in sorted(members)}
        held = {consumer: items for consumer, items in held.items() if items}
        oversize = sorted(
            item
            for consumer, items in held.items()
            for item in items
            if self.sizes[item] > self.capacity_of(consumer)
        )
        return Packing(
            assignment=Assignment(
                {ConsumerId(c): [self.partitions[i] for i in held[c]] for c in held}
            ),
            oversize=tuple(self.partitions[item] for item in oversize),
            overloaded=tuple(
                ConsumerId(c)
                for c, items in held.items()
                if len(items) > 1 and self._is_too_much(c, items)
            ),
        )

    def _is_too_much(self, consumer: int, items: Sequence[int]) -> bool:
        load = sum(self.sizes[item] for item in items)
        return load > self.capacity_of(consumer) or len(items) > self.items_max


def _whole(values: Iterable[float], unit: int) -> Iterator[int]:
    for value in values:
        above, below = value.as_integer_ratio()
        yield above * (unit // below)
