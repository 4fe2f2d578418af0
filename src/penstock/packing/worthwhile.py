"""Whether a packing that was found is worth its moves."""

from penstock.model import Assignment
from penstock.packing.trigger import GroupLoad, Reason, TriggerPolicy, load_of_consumer


def is_worthwhile(
    policy: TriggerPolicy, group: GroupLoad, reason: Reason, after: Assignment
) -> bool:
    """A repack for unread partitions is always worthwhile.

    A packing that only saves consumers must save enough of them. One that leaves consumers over
    their capacity must relieve the most loaded one by enough: else partitions would move without
    end between consumers that all have too much.
    """
    if reason is Reason.FEWER_WOULD_DO:
        return _working(group.current) - _working(after) >= policy.consumers_saved_min
    if reason is not Reason.OVER_CAPACITY:
        return reason is not Reason.CALM
    left, before = highest_overload(policy, group, after), highest_overload(policy, group)
    return left <= 1 or left <= before * (1 - policy.relief_min)


def _working(assignment: Assignment) -> int:
    return sum(1 for held in assignment.values() if held)


def highest_overload(
    policy: TriggerPolicy, group: GroupLoad, after: Assignment | None = None
) -> float:
    """Load over capacity of the most loaded consumer that a packing can help, now or `after` it."""
    assignment, usual = group.current if after is None else after, policy.capacity_bytes_per_s
    return max(
        (
            load_of_consumer(assignment, consumer, group.load_bytes_per_s)
            / group.capacity_by_consumer.get(consumer, usual)
            for consumer, held in assignment.items()
            if len(held) > 1
        ),
        default=0.0,
    )
