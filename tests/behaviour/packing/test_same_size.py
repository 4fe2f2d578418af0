"""A plan for unread partitions does not make the group smaller."""

from dataclasses import replace

from kit.packing.packing_cases import named
from penstock.controller.core.settings import controller_settings
from penstock.model import Assignment, ConsumerId, TopicPartition
from penstock.packing.same_size import same_size_or_larger
from penstock.packing.trigger import GroupLoad, Reason, load_of_assignment
from penstock.settings import Settings

POLICY = replace(controller_settings(Settings()).policy, capacity_bytes_per_s=100)


def speeds(*values: float) -> dict[TopicPartition, float]:
    return {named(number): value for number, value in enumerate(values)}


def held(*consumers: list[int]) -> Assignment:
    return Assignment(
        {ConsumerId(n): [named(p) for p in parts] for n, parts in enumerate(consumers, start=1)}
    )


def group(values: dict[TopicPartition, float], current: Assignment) -> GroupLoad:
    return load_of_assignment(POLICY, values, current)


def test_nothing_moves_when_the_packer_would_use_fewer() -> None:
    """The load is low for a moment: the two that work keep theirs, and take what nobody reads."""
    load = group(speeds(1, 3, 5, 1), held([0], [1], []))
    after = same_size_or_larger(POLICY, load, Reason.UNREAD_PARTITION, held([0, 1, 2, 3]))
    assert after == held([0, 2], [1, 3], [])


def test_a_larger_group_is_taken_as_packed() -> None:
    """An answer with as many consumers or more is the packer's own."""
    load = group(speeds(50, 50, 50), held([0], [1]))
    for packed in (held([0, 2], [1]), held([0], [1], [2])):
        assert same_size_or_larger(POLICY, load, Reason.UNREAD_PARTITION, packed) == packed


def test_a_plan_for_fewer_makes_the_group_smaller() -> None:
    """So do those for a lowered maximum and for an overload."""
    load = group(speeds(1, 1), held([0], [1]))
    for reason in (Reason.FEWER_WOULD_DO, Reason.OVER_MAXIMUM, Reason.OVER_CAPACITY):
        assert same_size_or_larger(POLICY, load, reason, held([0, 1])) == held([0, 1])


def test_the_most_partitions_of_a_consumer_are_kept() -> None:
    """Where no consumer that works may take another partition, the packer decides."""
    policy = replace(POLICY, partitions_per_consumer_max=2)
    load = group(speeds(1, 3, 5, 1), held([0, 2], [1]))
    packed = held([0, 1, 2, 3])
    after = same_size_or_larger(policy, load, Reason.UNREAD_PARTITION, packed)
    assert after == held([0, 2], [1, 3])
    full = replace(POLICY, partitions_per_consumer_max=1)
    assert same_size_or_larger(full, load, Reason.UNREAD_PARTITION, packed) == packed
