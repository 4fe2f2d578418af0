"""A plan that gives unread partitions a reader does not make the group smaller.

The packer looks for the fewest consumers for the load it is given. After an outage or a restart of
the controller that load may be low for a moment, and the highest speeds of a whole period are not
known. So a plan for another reason than `fewer_would_do` keeps the consumers that work: everything
stays where it is, and what nobody reads goes where the most room is.
"""

from penstock.model import Assignment, ConsumerId, TopicPartition
from penstock.packing.trigger import GroupLoad, Reason, TriggerPolicy, load_of_consumer


def same_size_or_larger(
    policy: TriggerPolicy, group: GroupLoad, reason: Reason, packed: Assignment
) -> Assignment:
    """The packer's answer, or the present assignment with what nobody reads added to it."""
    held = {consumer: list(partitions) for consumer, partitions in group.current.items()}
    working = {consumer: partitions for consumer, partitions in held.items() if partitions}
    if reason is not Reason.UNREAD_PARTITION or _working(packed) >= len(working):
        return packed
    load_by_consumer = {
        consumer: load_of_consumer(group.current, consumer, group.load_bytes_per_s)
        for consumer in working
    }
    most = policy.partitions_per_consumer_max

    def fullness(consumer: ConsumerId) -> tuple[float, ConsumerId]:
        return load_by_consumer[consumer] / group.capacity_by_consumer[consumer], consumer

    for partition in _without_owner(group, packed):
        free = [one for one, has in working.items() if most is None or len(has) < most]
        if not free:
            return packed
        chosen = min(free, key=fullness)
        working[chosen].append(partition)
        load_by_consumer[chosen] += group.load_bytes_per_s[partition]
    return Assignment(held)


def _working(assignment: Assignment) -> int:
    return sum(1 for partitions in assignment.values() if partitions)


def _without_owner(group: GroupLoad, packed: Assignment) -> list[TopicPartition]:
    """The largest first, so that the small ones even out what they leave."""
    owned = group.current.owners
    return sorted(
        (partition for partition in packed.owners if partition not in owned),
        key=lambda partition: (-group.load_bytes_per_s[partition], partition),
    )
