"""Keeps the fullest consumers unchanged and packs the rest again by best fit decreasing.

`chain` uses it to reach the number of consumers of best fit decreasing. Keeping no consumer is best
fit decreasing itself, so that number is always reached.
"""

from penstock.packing.best_fit import LeastFreeCapacity
from penstock.packing.bins import Bins
from penstock.packing.whole_numbers import IntegerProblem

Members = dict[int, list[int]]


def fresh_best_fit_decreasing(integers: IntegerProblem) -> Members:
    return _packed_anew(integers, {}, _biggest_first(integers))


def keep_fullest(integers: IntegerProblem, members: Members, fresh: Members) -> Members:
    """The cheapest packing found that uses at most as many consumers as `fresh`."""
    free = {consumer: _free(integers, consumer, members) for consumer in members}
    by_free_capacity = sorted(
        (consumer for consumer in free if free[consumer] >= 0), key=lambda c: (free[c], c)
    )
    biggest_first = _biggest_first(integers)
    best, best_cost, consumers_max = fresh, moved(integers, fresh), len(fresh)
    step = max(1, len(by_free_capacity) // 16)
    for kept in range(len(by_free_capacity), 0, -step):
        unchanged = {c: members[c] for c in by_free_capacity[:kept]}
        candidate = _packed_anew(integers, unchanged, biggest_first)
        if len(candidate) <= consumers_max:
            cost = moved(integers, candidate)
            best, best_cost = (candidate, cost) if cost < best_cost else (best, best_cost)
    return best


def moved(integers: IntegerProblem, members: Members) -> int:
    """The load that has left its consumer."""
    return sum(
        integers.sizes[item]
        for consumer, items in members.items()
        for item in items
        if integers.home[item] not in {consumer, 0}
    )


def _packed_anew(integers: IntegerProblem, kept: Members, biggest_first: list[int]) -> Members:
    bins = Bins(integers, LeastFreeCapacity())
    for consumer, items in kept.items():
        bins.open_with(consumer, items)
    placed = {item for items in kept.values() for item in items}
    for item in biggest_first:
        if item not in placed:
            bins.place(item)
    return bins.members


def _biggest_first(integers: IntegerProblem) -> list[int]:
    return sorted(range(len(integers.sizes)), key=lambda item: (-integers.sizes[item], item))


def _free(integers: IntegerProblem, consumer: int, members: Members) -> int:
    return integers.capacity_of(consumer) - sum(integers.sizes[item] for item in members[consumer])
