"""An assignment gives each partition at most one owner."""

import pytest

from penstock.model import Assignment, ConsumerId, TopicPartition

ORDERS = [TopicPartition("orders", n) for n in range(3)]
ONE, TWO = ConsumerId(1), ConsumerId(2)


def test_answers_both_ways() -> None:
    """It returns a consumer's partitions and a partition's owner."""
    assignment = Assignment({TWO: ORDERS[1:], ONE: ORDERS[:1]})
    assert list(assignment) == [ONE, TWO]
    assert assignment[TWO] == frozenset(ORDERS[1:])
    assert assignment.owner_of(ORDERS[0]) == ONE
    assert assignment.owner_of(TopicPartition("clicks", 0)) is None
    assert dict(assignment.owners) == {ORDERS[0]: ONE, ORDERS[1]: TWO, ORDERS[2]: TWO}


def test_equal_content_is_equal() -> None:
    """The order of creation does not matter; an idle consumer does."""
    assert Assignment({ONE: ORDERS, TWO: []}) == Assignment({TWO: [], ONE: reversed(ORDERS)})
    assert hash(Assignment({ONE: ORDERS})) == hash(Assignment({ONE: reversed(ORDERS)}))
    assert Assignment({ONE: ORDERS}) != Assignment({ONE: ORDERS, TWO: []})
    assert len(Assignment()) == 0


def test_two_owners_are_refused() -> None:
    """An assignment with two owners of a partition is refused."""
    with pytest.raises(ValueError, match="orders-0 has two owners: 1 and 2"):
        Assignment({ONE: ORDERS[:1], TWO: ORDERS})


def test_reads_well() -> None:
    """The text form lists consumers and partitions in order."""
    assert repr(Assignment({ONE: ORDERS[:2]})) == "Assignment(1: [orders-0 orders-1])"
