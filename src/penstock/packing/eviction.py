"""Chooses the cheapest items to remove from a consumer so that the rest is within its limits."""

from itertools import combinations

from penstock.packing.workbench import Workbench

_SMALL_ITEMS_MAX = 8
_TOGETHER_MAX = 3


def to_evict(bench: Workbench, consumer: int) -> list[int]:
    """The items to remove. An oversize partition stays, alone."""
    held = bench.members[consumer]
    integers = bench.integers
    capacity = integers.capacity_of(consumer)
    if held[-1][0] > capacity:
        return _make_alone(bench, consumer)
    too_many = max(0, len(held) - integers.items_max)
    evicted = [item for _, item in held[:too_many]]
    over = -bench.free[consumer] - sum(size for size, _ in held[:too_many])
    if over > 0:
        evicted += _cheapest_of_at_least(held[too_many:], over)
    return evicted


def _make_alone(bench: Workbench, consumer: int) -> list[int]:
    """The biggest item stays, unless another consumer could carry it."""
    items = [item for _, item in bench.members[consumer]]
    biggest = bench.integers.sizes[items[-1]]
    return items if biggest <= bench.integers.capacity_max else items[:-1]


def _cheapest_of_at_least(held: list[tuple[int, int]], over: int) -> list[int]:
    """The lightest of: one item; two or three small ones; the biggest ones until enough."""
    found: list[tuple[int, list[int]]] = []
    alone = next((entry for entry in held if entry[0] >= over), None)
    if alone is not None:
        found.append((alone[0], [alone[1]]))
    small = [entry for entry in held if entry[0] < over][-_SMALL_ITEMS_MAX:]
    for together in range(2, _TOGETHER_MAX + 1):
        for entries in combinations(small, together):
            load = sum(size for size, _ in entries)
            if load >= over:
                found.append((load, [item for _, item in entries]))
    if not found:
        found.append(_biggest_until(held, over))
    return min(found)[1]


def _biggest_until(held: list[tuple[int, int]], over: int) -> tuple[int, list[int]]:
    load = 0
    items: list[int] = []
    biggest_first = reversed(held)
    while load < over:
        size, item = next(biggest_first)
        load += size
        items.append(item)
    return load, items
