"""The time that a simulated group has to carry what is waiting."""

from dataclasses import replace

import pytest

from penstock.laboratory.protocol_simulation.drain_bound import Throughput, drain_ms, throughput
from penstock.laboratory.protocol_simulation.scenario import scenario
from penstock.laboratory.protocol_simulation.simulated_group import SimulatedGroup


def can_carry(carried_by_one: float, carried_by_all: float) -> Throughput:
    """What consumers of 1,000 B/s carry, in a group of at most five."""
    of_seed = replace(scenario(318), carried_by_one=carried_by_one, carried_by_all=carried_by_all)
    return throughput(SimulatedGroup(of_seed))


def test_more_consumers_do_not_carry_one_partition_sooner() -> None:
    """A hot partition takes as long as one consumer needs for it, and others are shared out."""
    five = Throughput(one_bytes_per_s=1_000, all_bytes_per_s=5_000)
    assert drain_ms([600_000], five) == 600_000
    assert drain_ms([600_000, 50_000, 50_000], five) == 620_000
    assert drain_ms([], five) == 0


def test_the_rest_is_not_carried_by_one_consumer_alone() -> None:
    """A group that leaves many equal backlogs to one consumer of five is too slow."""
    five = Throughput(one_bytes_per_s=1_000, all_bytes_per_s=5_000)
    assert drain_ms([60_000] * 10, five) == 168_000


def test_a_consumer_is_no_faster_than_its_batches_allow() -> None:
    """Batches of 500 bytes take 438 ms and a look at the logs: less than the limit of 1.5 kB/s."""
    slow = can_carry(carried_by_one=1.5, carried_by_all=0.0)
    assert slow.one_bytes_per_s == pytest.approx(1_101, abs=2)
    assert slow.all_bytes_per_s == pytest.approx(5 * slow.one_bytes_per_s)


def test_a_fast_consumer_keeps_to_its_read_limit() -> None:
    """Without slow batches a consumer carries the four capacities that it may read."""
    assert can_carry(carried_by_one=0.0, carried_by_all=0.0) == Throughput(4_000, 20_000)


def test_all_together_keep_to_a_shared_limit() -> None:
    """Consumers that share two capacities carry no more in all, however many there are."""
    shared = can_carry(carried_by_one=0.0, carried_by_all=2.0)
    assert shared.all_bytes_per_s == 2_000
    assert 1_000 < shared.one_bytes_per_s < 2_000
