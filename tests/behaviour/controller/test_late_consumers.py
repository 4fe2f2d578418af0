"""Consumers that do not come up, or do not stay up: what they have does not stay unread."""

from collections.abc import Callable
from typing import Any

import pytest

from kit.controller.imagined_group import MB, NEVER_MS, ImaginedGroup, Log, constant, partitions
from penstock.model import ConsumerId, TopicPartition


def a_group(**options: Any) -> ImaginedGroup:
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


def spare_is_given_up(up_s: int) -> bool:
    """Whether a spare is that ends so long after each of its starts."""
    group = ImaginedGroup(
        partitions(2, 0.5 * MB), controller__spare_consumers=1, controller__patience="20s"
    ).run(30)
    (spare,) = [consumer for consumer, worker in group.workers.items() if not worker.owned]
    for _ in range(group.settings.controller.restarts_max + 2):
        if spare in group.workers:
            group.kill(spare)
            group.run(up_s)
    return bool(group.said("consumer_fenced"))


def test_a_spare_that_stayed_up_has_not_ended_in_vain() -> None:
    """It carries nothing because it has nothing; its ends count only when they come soon."""
    assert spare_is_given_up(10)
    assert not spare_is_given_up(30)


def die_again_and_again(group: ImaginedGroup, victim: ConsumerId, lives: int) -> int:
    """It ends every ten seconds, before its first commit; returns how many lives it had."""
    for life in range(lives):
        worker = group.workers.get(victim)
        if worker is None:
            return life
        group.kill(victim)
        group.can_carry = {c for c in group.workers if c != victim}
        group.run(10)
    return lives


def test_a_consumer_that_does_not_stay_up_is_given_up() -> None:
    """Its partitions are read by another one, and its number is not used again for a while."""
    group = ImaginedGroup(partitions(6, 0.5 * MB), controller__spare_consumers=0)
    group.run(60)
    victim = next(c for c, worker in group.workers.items() if worker.owned)
    most = group.settings.controller.restarts_max
    assert most < die_again_and_again(group, victim, 20) <= most + 2
    assert "without carrying anything" in group.said("consumer_fenced")[0]
    group.run(60)
    assert victim not in group.workers
    assert group.working == 2


def test_who_has_carried_may_start_again_often() -> None:
    """A process that works between its ends is better than none."""
    group = ImaginedGroup(partitions(6, 0.5 * MB), controller__spare_consumers=0)
    group.run(60)
    victim = next(c for c, worker in group.workers.items() if worker.owned)
    for _ in range(2 * group.settings.controller.restarts_max):
        assert die_again_and_again(group, victim, 1) == 1
        group.can_carry = None
        group.run(20)
    assert not group.said("consumer_fenced")
