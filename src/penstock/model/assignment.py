"""Which consumer owns which partitions. An assignment is immutable.

It may contain consumers that own nothing (a spare, or one about to be removed). Creating an
assignment in which a partition has two owners is an error.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from penstock.model.consumer_id import ConsumerId
from penstock.model.consumer_list_diff import ConsumerListDiff
from penstock.model.topic_partition import TopicPartition


class Assignment(Mapping[ConsumerId, frozenset[TopicPartition]]):
    """Consumer -> the partitions it owns; iterates consumers in ascending order."""

    __slots__ = ("_by_consumer", "_by_partition")

    def __init__(
        self, by_consumer: Mapping[ConsumerId, Iterable[TopicPartition]] | None = None
    ) -> None:
        given = by_consumer or {}
        owned = {consumer: frozenset(given[consumer]) for consumer in sorted(given)}
        owner: dict[TopicPartition, ConsumerId] = {}
        for consumer, partitions in owned.items():
            for partition in partitions:
                other = owner.setdefault(partition, consumer)
                if other != consumer:
                    raise ValueError(f"{partition} has two owners: {other} and {consumer}")
        self._by_consumer = owned
        self._by_partition = owner

    def __getitem__(self, consumer: ConsumerId) -> frozenset[TopicPartition]:
        return self._by_consumer[consumer]

    def __iter__(self) -> Iterator[ConsumerId]:
        return iter(self._by_consumer)

    def __len__(self) -> int:
        return len(self._by_consumer)

    def __hash__(self) -> int:
        return hash(tuple(self._by_consumer.items()))

    def __repr__(self) -> str:
        parts = ", ".join(
            f"{consumer}: [{' '.join(str(p) for p in sorted(partitions))}]"
            for consumer, partitions in self._by_consumer.items()
        )
        return f"Assignment({parts})"

    def __sub__(self, current: "Assignment") -> ConsumerListDiff:
        """What turns `current` into this assignment: `future - current`."""
        nothing: frozenset[TopicPartition] = frozenset()
        consumers = sorted({*self, *current})
        stop = {c: sorted(current.get(c, nothing) - self.get(c, nothing)) for c in consumers}
        start = {c: sorted(self.get(c, nothing) - current.get(c, nothing)) for c in consumers}
        return ConsumerListDiff(
            create=tuple(c for c in self if c not in current),
            remove=tuple(c for c in current if c not in self),
            stop={c: tuple(partitions) for c, partitions in stop.items() if partitions},
            start={c: tuple(partitions) for c, partitions in start.items() if partitions},
        )

    def owner_of(self, partition: TopicPartition) -> ConsumerId | None:
        return self._by_partition.get(partition)

    @property
    def owners(self) -> Mapping[TopicPartition, ConsumerId]:
        return MappingProxyType(self._by_partition)
