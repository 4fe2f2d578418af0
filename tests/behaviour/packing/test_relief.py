"""Consumers that a packing under a maximum leaves over take from the most overloaded ones."""

from kit.packing.packing_cases import problem
from penstock.packing.relief import relieved
from penstock.packing.whole_numbers import IntegerProblem


def test_as_much_as_needed_is_taken() -> None:
    """A consumer of 200 gives three partitions of 40 to two new ones, the second takes one."""
    integers = IntegerProblem.of(problem([40] * 5))
    assert relieved(integers, {1: [0, 1, 2, 3, 4]}, 3) == {1: [3, 4], 2: [0, 1], 3: [2]}


def test_the_smallest_partition_that_is_enough_is_taken() -> None:
    """Of 60, 30, 25 and 20 only the 60 is enough for 35 over; of 60, 35, 25 and 15 the 35 is."""
    integers = IntegerProblem.of(problem([60, 30, 25, 20]))
    assert relieved(integers, {1: [0, 1, 2, 3]}, 2) == {1: [1, 2, 3], 2: [0]}
    integers = IntegerProblem.of(problem([60, 35, 25, 15]))
    assert relieved(integers, {1: [0, 1, 2, 3]}, 2) == {1: [0, 2, 3], 2: [1]}


def test_a_full_consumer_leaves_the_rest_to_the_next() -> None:
    """Two consumers of 140 are relieved by two new ones, which can take one partition each."""
    integers = IntegerProblem.of(problem([70, 70, 70, 70]))
    members = {1: [0, 1], 2: [2, 3]}
    assert relieved(integers, members, 4) == {1: [1], 2: [3], 3: [0], 4: [2]}
    assert relieved(integers, members, 3) == {1: [1], 2: [2, 3], 3: [0]}


def test_a_partition_that_is_alone_stays() -> None:
    """An oversize partition alone cannot be relieved, and no consumer is opened for it."""
    integers = IntegerProblem.of(problem([300, 50]))
    assert relieved(integers, {1: [0], 2: [1]}, 5) == {1: [0], 2: [1]}


def test_what_fits_nobody_is_left() -> None:
    """Two oversize partitions on one consumer fit no other, and no empty consumer is opened."""
    integers = IntegerProblem.of(problem([150, 150]))
    assert relieved(integers, {1: [0, 1]}, 2) == {1: [0, 1]}
