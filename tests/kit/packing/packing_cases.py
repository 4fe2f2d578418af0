"""Packing problems for tests: short constructors, and hypothesis strategies."""

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from penstock.model import Assignment, ConsumerId, TopicPartition
from penstock.packing import Packing, PackingProblem

CAPACITY = 100


def named(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


def problem(
    sizes: Sequence[float],
    homes: Sequence[int] | None = None,
    capacity: float = CAPACITY,
    *,
    special: Mapping[int, float] | None = None,
    items_max: int | None = None,
    consumers_max: int | None = None,
) -> PackingProblem:
    """`homes[i]` is the present consumer of partition i; 0 is none."""
    held: dict[ConsumerId, list[TopicPartition]] = {}
    for number, home in enumerate(homes or [0] * len(sizes)):
        if home:
            held.setdefault(ConsumerId(home), []).append(named(number))
    return PackingProblem(
        {named(number): size for number, size in enumerate(sizes)},
        Assignment(held),
        capacity,
        {ConsumerId(c): value for c, value in (special or {}).items()},
        partitions_per_consumer_max=items_max,
        consumers_max=consumers_max,
    )


def numbers(packing: Packing) -> dict[int, set[int]]:
    """Consumer -> the numbers of its partitions."""
    return {c: {p.partition for p in held} for c, held in packing.assignment.items()}


@st.composite
def problems(
    draw: st.DrawFn,
    *,
    partitions_max: int = 16,
    size_max: int = 130,
    bounded: bool = True,
    whole: bool = True,
) -> PackingProblem:
    """Any problem: overloaded, unowned, oversize, with or without limits."""
    count = draw(st.integers(0, partitions_max))
    size = (
        st.integers(0, size_max)
        if whole
        else st.floats(0, size_max, allow_nan=False, allow_subnormal=False)
    )
    sizes = draw(st.lists(size, min_size=count, max_size=count))
    homes = draw(st.lists(st.integers(0, 7), min_size=count, max_size=count))
    if not bounded:
        return problem(sizes, homes)
    return problem(
        sizes,
        homes,
        special=draw(st.dictionaries(st.integers(1, 9), st.integers(30, 160), max_size=3)),
        items_max=draw(st.none() | st.integers(1, 5)),
        consumers_max=draw(st.none() | st.integers(1, 6)),
    )
