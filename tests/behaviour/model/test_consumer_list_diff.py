"""`future - current` is exactly the difference between two assignments."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.model import Assignment, ConsumerId, ConsumerListDiff, TopicPartition

A, B, C = (TopicPartition("orders", n) for n in range(3))
ONE, TWO, THREE = ConsumerId(1), ConsumerId(2), ConsumerId(3)


def assignments() -> st.SearchStrategy[Assignment]:
    """Up to four consumers over six partitions; some consumers own nothing."""

    def build(owners: list[int], idle: set[int]) -> Assignment:
        owned: dict[ConsumerId, list[TopicPartition]] = {ConsumerId(n): [] for n in idle}
        for number, owner in enumerate(owners):
            if owner:
                owned.setdefault(ConsumerId(owner), []).append(TopicPartition("t", number))
        return Assignment(owned)

    return st.builds(
        build, st.lists(st.integers(0, 4), min_size=6, max_size=6), st.sets(st.integers(1, 4))
    )


def test_one_stop_releases_one_start() -> None:
    """A partition that moves is stopped at its old owner and started at the new one."""
    diff = Assignment({ONE: [A], TWO: [B, C]}) - Assignment({ONE: [A, B], TWO: [C]})
    assert diff == ConsumerListDiff(create=(), remove=(), stop={ONE: (B,)}, start={TWO: (B,)})
    assert diff.moves == (B,)


def test_consumers_are_created_and_removed() -> None:
    """Consumers only in the future are created; consumers only in the present are removed."""
    diff = Assignment({TWO: [A, B], THREE: []}) - Assignment({ONE: [A]})
    assert diff.create == (TWO, THREE)
    assert diff.remove == (ONE,)
    assert diff.start == {TWO: (A, B)}
    assert diff.moves == (A,), "B had no reader, so it does not move"


def test_no_difference_is_false() -> None:
    """Equal assignments leave nothing to do."""
    same = Assignment({ONE: [A]})
    assert not same - same
    assert Assignment({ONE: []}) - Assignment()


@given(future=assignments(), current=assignments())
def test_applying_the_difference_gives_the_future(future: Assignment, current: Assignment) -> None:
    """Applying stops, starts, creations and removals to the present gives the future."""
    diff = future - current
    owned = {consumer: set(partitions) for consumer, partitions in current.items()}
    for consumer, partitions in diff.stop.items():
        owned[consumer] -= set(partitions)
    for consumer in diff.create:
        owned[consumer] = set()
    for consumer in diff.remove:
        assert not owned.pop(consumer)
    for consumer, partitions in diff.start.items():
        owned[consumer] |= set(partitions)
    assert Assignment(owned) == future
