"""Limits that every packing algorithm respects."""

from dataclasses import replace

import pytest

from kit.packing.packing_cases import named, numbers, problem
from penstock.model import Assignment, ConsumerId
from penstock.packing import ALGORITHMS, PackingAlgorithm, PackingProblem
from penstock.packing.chain import ChainPacking

EVERY = pytest.mark.parametrize(
    "algorithm", [*ALGORITHMS, ChainPacking(0)], ids=lambda algorithm: algorithm.name
)


@EVERY
def test_a_partition_faster_than_a_consumer_is_alone_and_reported(
    algorithm: PackingAlgorithm,
) -> None:
    """An oversize partition is alone on its consumer and reported."""
    packing = algorithm.pack(problem([150, 0, 30, 150], [1, 1, 1, 2]))
    assert packing.oversize == (named(0), named(3))
    assert packing.overloaded == ()
    owners = packing.assignment.owners
    assert all(
        len(packing.assignment[owners[partition]]) == 1 for partition in (named(0), named(3))
    )


@EVERY
def test_partitions_per_consumer_have_a_maximum(algorithm: PackingAlgorithm) -> None:
    """Ten idle partitions with at most three per consumer need four consumers."""
    packing = algorithm.pack(problem([0] * 10, [1] * 10, items_max=3))
    assert sorted(len(held) for held in packing.assignment.values()) == [1, 3, 3, 3]


@EVERY
def test_capacity_may_differ_between_consumers(algorithm: PackingAlgorithm) -> None:
    """A partition that only consumer 5 can carry goes there."""
    packing = algorithm.pack(problem([140, 60, 60], special={5: 150, 1: 50}))
    assert packing.assignment.owner_of(named(0)) == 5
    assert packing.assignment.owner_of(named(1)) not in {1, None}
    assert packing.oversize == ()


@EVERY
def test_when_the_maximum_of_consumers_binds_the_least_overloaded_is_flagged(
    algorithm: PackingAlgorithm,
) -> None:
    """Six partitions of 60 on two consumers: three each, both flagged as overloaded."""
    packing = algorithm.pack(problem([60] * 6, [1, 1, 2, 2, 3, 3], consumers_max=2))
    assert sorted(len(held) for held in packing.assignment.values()) == [3, 3]
    assert set(packing.overloaded) == set(packing.assignment)


@EVERY
def test_a_hot_partition_does_not_overload_the_others(algorithm: PackingAlgorithm) -> None:
    """A partition as fast as twenty consumers is alone; forty others use all nineteen left.

    Each is half a consumer, so two consumers must hold three, and three do.
    """
    packing = algorithm.pack(problem([2000] + [50] * 40, consumers_max=20))
    owners = packing.assignment.owners
    assert packing.assignment[owners[named(0)]] == {named(0)}
    others = [len(held) for c, held in packing.assignment.items() if c != owners[named(0)]]
    assert len(others) == 19
    assert max(others) == 3
    assert len(packing.overloaded) <= 3


@EVERY
def test_an_answer_under_a_hot_partition_and_a_maximum_is_stable(
    algorithm: PackingAlgorithm,
) -> None:
    """Packed again with the same speeds, nothing moves."""
    question = problem([2000, 70, 70] + [50] * 40, consumers_max=20)
    first = algorithm.pack(question).assignment
    assert algorithm.pack(replace(question, current=first)).assignment == first


@EVERY
def test_too_many_on_one_consumer_under_a_maximum_are_spread(algorithm: PackingAlgorithm) -> None:
    """Two consumers are loaded alike, but one holds eight partitions of at most six."""
    question = problem([120, 120, *[30] * 8], [1, 1, *[2] * 8], consumers_max=2, items_max=6)
    held = algorithm.pack(question).assignment.values()
    assert max(len(partitions) for partitions in held) <= 6


def test_what_fits_no_new_consumer_stays_where_it_is() -> None:
    """Two oversize partitions share a consumer; a small third one cannot take either."""
    question = problem([150, 150, 150], special={1: 400, 2: 20, 3: 20}, consumers_max=2)
    assert len(ChainPacking(0).pack(question).assignment.owners) == 3


@EVERY
def test_both_maxima_together_give_way_as_little_as_possible(algorithm: PackingAlgorithm) -> None:
    """Seven partitions on two consumers of at most three: four on one, flagged."""
    packing = algorithm.pack(problem([1] * 7, consumers_max=2, items_max=3))
    assert sorted(len(held) for held in packing.assignment.values()) == [3, 4]
    assert len(packing.overloaded) == 1


@EVERY
def test_vanished_partitions_vanish_and_idle_consumers_are_not_named(
    algorithm: PackingAlgorithm,
) -> None:
    """Deleted partitions and idle consumers are not in the result."""
    current = Assignment({ConsumerId(1): [named(0), named(9)], ConsumerId(2): []})
    packing = algorithm.pack(PackingProblem({named(0): 10}, current, 100))
    assert numbers(packing) == {1: {0}}


@EVERY
def test_no_partitions_need_no_consumers(algorithm: PackingAlgorithm) -> None:
    """No partitions give an empty packing."""
    assert len(algorithm.pack(problem([])).assignment) == 0


@EVERY
def test_exact_where_floating_point_is_not(algorithm: PackingAlgorithm) -> None:
    """Ten partitions of the float 0.1 do not fit a capacity of 1 exactly."""
    packing = algorithm.pack(problem([0.1] * 10, [1] * 10, capacity=1.0))
    assert len(packing.assignment) == 2, "ten times the float 0.1 is a little more than 1"


@pytest.mark.parametrize("speed", [float("nan"), float("inf"), -1.0])
def test_poison_speeds_never_reach_an_algorithm(speed: float) -> None:
    """The question itself is refused, and names the partition."""
    with pytest.raises(ValueError, match="orders-0: a load is a finite number >= 0"):
        problem([speed])


@pytest.mark.parametrize("capacity", [0.0, -1.0, float("nan"), float("inf")])
def test_wrong_capacities_of_a_problem_are_refused(capacity: float) -> None:
    """A zero, negative, infinite or NaN capacity is refused."""
    with pytest.raises(ValueError, match="a capacity is a finite number > 0"):
        problem([1], capacity=capacity)
    with pytest.raises(ValueError, match="a capacity is a finite number > 0"):
        problem([1], special={1: capacity})


def test_a_maximum_below_one_is_refused() -> None:
    """A maximum below one is refused."""
    with pytest.raises(ValueError, match="at least 1"):
        problem([1], consumers_max=0)
    with pytest.raises(ValueError, match="at least 1"):
        problem([1], items_max=0)


def test_huge_and_tiny_speeds_are_exact() -> None:
    """2 ** 63 and the smallest fraction are packed without rounding."""
    packing = ChainPacking().pack(problem([2**63, 2.0**-40], [1, 1], capacity=2.0**63))
    assert numbers(packing) == {1: {0}, 2: {1}}


def test_one_round_under_a_maximum_may_be_enough() -> None:
    """Packed again from its own answer, the second round is already stable."""
    question = PackingProblem(
        {named(0): 50.0, named(1): 50.0},
        Assignment({ConsumerId(2): [named(1)]}),
        100.0,
        capacity_bytes_per_s_by_consumer={
            ConsumerId(1): 40.0,
            ConsumerId(2): 64.0,
            ConsumerId(3): 21.0,
        },
        partitions_per_consumer_max=2,
        consumers_max=1,
    )
    packing = ChainPacking(1).pack(question)
    assert len(packing.assignment.owners) == 2
    assert len(set(packing.assignment.owners.values())) == 1
