"""The difference between two assignments: `future - current`.

It names the consumers to create and to remove, and what each consumer must stop and start. It has
no order: group management starts a partition only after its stop, and removes a consumer only after
its last stop.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.model.consumer_id import ConsumerId
from penstock.model.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class ConsumerListDiff:
    create: tuple[ConsumerId, ...]
    remove: tuple[ConsumerId, ...]
    stop: Mapping[ConsumerId, tuple[TopicPartition, ...]]
    start: Mapping[ConsumerId, tuple[TopicPartition, ...]]

    def __bool__(self) -> bool:
        return bool(self.create or self.remove or self.stop or self.start)

    @property
    def moves(self) -> tuple[TopicPartition, ...]:
        """Partitions that move from one consumer to another; each move costs a short pause."""
        stopped = {partition for partitions in self.stop.values() for partition in partitions}
        return tuple(
            sorted(
                partition
                for partitions in self.start.values()
                for partition in partitions
                if partition in stopped
            )
        )
