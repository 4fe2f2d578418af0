"""Which offsets a batch reads: fair, bounded, never nothing while something waits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.consumer.core.ranges import Waiting, plan_ranges
from penstock.model import TopicPartition

A, B, C = (TopicPartition("orders", number) for number in range(3))


def lengths(waiting: dict[TopicPartition, Waiting], budget: float) -> dict[TopicPartition, int]:
    return {one.partition: len(one) for one in plan_ranges(waiting, budget).ranges}


def test_takes_all_that_waits_when_it_fits() -> None:
    """Everything fits: every range reaches its end, and there is no backlog."""
    plan = plan_ranges({A: Waiting(5, 10, 100.0), B: Waiting(0, 2, 100.0)}, 10_000)
    assert [(one.partition, one.start, one.end) for one in plan.ranges] == [(A, 5, 10), (B, 0, 2)]
    assert plan.size_bytes == pytest.approx(700)
    assert not plan.is_full


def test_a_short_partition_leaves_its_share_to_the_long_ones() -> None:
    """Equal bytes for all, and nothing of the budget is wasted."""
    waiting = {A: Waiting(0, 10, 1.0), B: Waiting(0, 1000, 1.0), C: Waiting(0, 1000, 1.0)}
    assert lengths(waiting, 310) == {A: 10, B: 150, C: 150}


def test_shares_are_bytes_and_not_records() -> None:
    """A partition of heavy records gets fewer of them."""
    waiting = {A: Waiting(0, 1000, 1.0), B: Waiting(0, 1000, 10.0)}
    found = lengths(waiting, 1100)
    assert found[A] == pytest.approx(10 * found[B], rel=0.1)


def test_a_record_larger_than_the_budget_is_read_alone() -> None:
    """The bound must not stop a partition for ever."""
    waiting = {A: Waiting(0, 3, 5_000.0), B: Waiting(0, 3, 5_000.0)}
    assert lengths(waiting, 100) == {A: 1}


def test_the_longest_waiting_go_first_when_not_all_fit() -> None:
    """No partition starves because of its name."""
    waiting = {
        A: Waiting(0, 9, 100.0, last_batch_number=7),
        B: Waiting(0, 9, 100.0, last_batch_number=3),
        C: Waiting(0, 9, 100.0, last_batch_number=5),
    }
    assert lengths(waiting, 200) == {B: 1, C: 1}


def test_without_a_budget_nothing_is_read_and_the_backlog_is_seen() -> None:
    """A consumer at its capacity waits."""
    plan = plan_ranges({A: Waiting(0, 9)}, 0)
    assert plan.ranges == ()
    assert plan.is_full
    assert not plan_ranges({A: Waiting(4, 4)}, 100).is_full


@given(
    st.dictionaries(
        st.integers(0, 9).map(lambda number: TopicPartition("t", number)),
        st.builds(
            Waiting,
            start=st.integers(0, 50),
            end=st.integers(0, 500),
            bytes_per_offset=st.floats(1, 1e6),
            last_batch_number=st.integers(0, 5),
        ),
    ),
    st.floats(1, 1e7),
)
def test_laws(waiting: dict[TopicPartition, Waiting], budget: float) -> None:
    """Inside what waits, within the budget unless it is one lone record, full when cut."""
    plan = plan_ranges(waiting, budget)
    there = {one: wait for one, wait in waiting.items() if wait.offsets}
    assert bool(plan.ranges) == bool(there)
    for one in plan.ranges:
        assert one.start == waiting[one.partition].start
        assert one.start < one.end <= waiting[one.partition].end
    total = sum(len(one) for one in plan.ranges)
    assert plan.size_bytes <= budget * (1 + 1e-9) or total == 1
    assert plan.is_full == (total < sum(wait.offsets for wait in there.values()))
    assert plan == plan_ranges(dict(reversed(list(waiting.items()))), budget)
