"""What turns one assignment into another: `future - current`.

It names the consumers to create and to remove, what each consumer must stop, and what each must
start. Every plan of the controller begins as one, and `penstock plan` shows one. The order is not
part of it: group management starts a partition after its stop, and removes a consumer after its
last stop.
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
        """Partitions that change their consumer: each costs a short pause."""
        stopped = {partition for partitions in self.stop.values() for partition in partitions}
        return tuple(
            sorted(
                partition
                for partitions in self.start.values()
                for partition in partitions
                if partition in stopped
            )
        )
