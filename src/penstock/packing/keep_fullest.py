"""Keeps the fullest consumers unchanged and packs the rest again by best fit decreasing.

`chain` uses it to reach the number of consumers of best fit decreasing. Keeping no consumer is best
fit decreasing itself, so that number is always reached.
"""

from penstock.packing.best_fit import LeastFreeCapacity
from penstock.packing.bins import Bins
from penstock.packing.whole_numbers import IntegerProblem

Members = dict[int, list[int]]


def fresh_best_fit_decreasing(integers: IntegerProblem) -> Members:
    return _packed_anew(integers, {})


def keep_fullest(integers: IntegerProblem, members: Members, fresh: Members) -> Members:
    """The cheapest packing found that uses at most as many consumers as `fresh`."""
    by_free_capacity = sorted(
        members, key=lambda consumer: (_free(integers, consumer, members), consumer)
    )
    by_free_capacity = [c for c in by_free_capacity if _free(integers, c, members) >= 0]
    best, best_cost, consumers_max = fresh, moved(integers, fresh), len(fresh)
    step = max(1, len(by_free_capacity) // 16)
    for kept in range(len(by_free_capacity), 0, -step):
        candidate = _packed_anew(integers, {c: members[c] for c in by_free_capacity[:kept]})
        cost = moved(integers, candidate)
        if len(candidate) <= consumers_max and cost < best_cost:
            best, best_cost = candidate, cost
    return best


def moved(integers: IntegerProblem, members: Members) -> int:
    """The load that has left its consumer."""
    return sum(
        integers.sizes[item]
        for consumer, items in members.items()
        for item in items
        if integers.home[item] not in {consumer, 0}
    )


def _packed_anew(integers: IntegerProblem, kept: Members) -> Members:
    bins = Bins(integers, LeastFreeCapacity())
    for consumer, items in kept.items():
        bins.open(consumer)
        for item in items:
            bins.put(item, consumer)
    placed = {item for items in kept.values() for item in items}
    rest = (item for item in range(len(integers.sizes)) if item not in placed)
    for item in sorted(rest, key=lambda item: (-integers.sizes[item], item)):
        bins.place(item)
    return bins.members


def _free(integers: IntegerProblem, consumer: int, members: Members) -> int:
    return integers.capacity_of(consumer) - sum(integers.sizes[item] for item in members[consumer])
