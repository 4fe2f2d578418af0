"""Keep the fullest consumers as they are and pack the rest anew, best fit, fastest first.

The last resort of `chain` when as few consumers as best fit decreasing are asked for: keeping
nobody is best fit decreasing itself, so some number of kept consumers always reaches its count.
"""

from penstock.packing.best_fit import LeastFreeCapacity
from penstock.packing.bins import Bins
from penstock.packing.whole_numbers import IntegerProblem

Members = dict[int, list[int]]


def fresh_best_fit_decreasing(integers: IntegerProblem) -> Members:
    return _packed_anew(integers, {})


def keep_fullest(integers: IntegerProblem, members: Members, fresh: Members) -> Members:
    """The cheapest packing found on no more consumers than `fresh`, all packed anew, has."""
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
    """The load that is not where it was."""
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
