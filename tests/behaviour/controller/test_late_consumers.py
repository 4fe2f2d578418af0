"""A cluster without room: what is unread does not wait for consumers that do not come up."""

from collections.abc import Callable

import pytest

from kit.controller.imagined_group import MB, NEVER_MS, ImaginedGroup, Log, constant, partitions
from penstock.model import TopicPartition


def a_group(**options: object) -> ImaginedGroup:
    """Two consumers, and then there is room for no more."""
    group = ImaginedGroup(partitions(6, 0.5 * MB), controller__spare_consumers=0, **options)
    group.run(120)
    assert group.working == 2
    group.is_cluster_full = True
    return group


def needs_growth(group: ImaginedGroup) -> None:
    for log in group.logs.values():
        log.bytes_per_s = constant(0.9 * MB)
    group.run(20)


def a_new_topic(group: ImaginedGroup) -> None:
    needs_growth(group)
    group.logs[TopicPartition("new", 0)] = Log(constant(1_000.0))


def a_death(group: ImaginedGroup) -> None:
    victim = next(c for c, worker in group.workers.items() if worker.owned)
    group.workers[victim].up_at_ms = NEVER_MS


def a_death_while_it_grows(group: ImaginedGroup) -> None:
    needs_growth(group)
    a_death(group)


def longest_unread_s(group: ImaginedGroup, for_s: int) -> float:
    since: dict[TopicPartition, float] = {}
    longest_s = 0.0
    for _ in range(for_s):
        group.run(1)
        for partition in group.logs:
            if partition in group.state.holdings:
                since.pop(partition, None)
            else:
                longest_s = max(longest_s, group.second - since.setdefault(partition, group.second))
    return longest_s


@pytest.mark.parametrize("happens", [a_new_topic, a_death, a_death_while_it_grows])
def test_what_is_unread_is_read_by_those_that_are_up(
    happens: Callable[[ImaginedGroup], None],
) -> None:
    """Not after the quarter of an hour in which a new consumer may come up."""
    group = a_group()
    happens(group)
    assert longest_unread_s(group, 300) <= 20
    assert group.said("read_meanwhile")


def test_what_is_read_meanwhile_moves_on() -> None:
    """The plan stays: its consumers get their partitions when they come up after all."""
    group = a_group()
    a_death(group)
    group.run(60)
    assert group.working == 1
    group.is_cluster_full = False
    for worker in group.workers.values():
        if worker.up_at_ms == NEVER_MS:
            worker.up_at_ms = group.now_ms + 1_000
    group.run(30)
    assert group.working == 2
    assert all(load <= 2 * MB for load in group.loads().values())


def test_a_usual_start_is_waited_for() -> None:
    """Nothing is read meanwhile when consumers take no longer than others did."""
    group = ImaginedGroup(partitions(6, 0.5 * MB), controller__spare_consumers=0)
    group.run(120)
    a_death(group)
    group.run(120)
    assert group.working == 2
    assert not group.said("read_meanwhile")


def test_no_consumer_gets_more_partitions_than_it_may_have() -> None:
    """Then some stay unread."""
    group = a_group(packing__partitions_per_consumer_max=4)
    a_death(group)
    group.run(60)
    assert [len(worker.owned) for worker in group.workers.values() if worker.owned] == [4]
    assert group.state.plan is not None
    assert len(group.state.plan.open) == 3  # one of the four is to move on
