"""Ejection chains: the cheapest way to place an item that fits nowhere.

The item takes the place of a smaller one, which takes the place of a yet smaller one, until one
fits into free capacity. It is Dijkstra's search: nodes are displaced items, a step costs the load
it newly moves, and the search ends at the first item that fits. To stay fast on large groups, each
displaced item considers only the consumers with the most free capacity, and the number of items is
bounded.
"""

from bisect import bisect_left
from dataclasses import dataclass
from heapq import heappop, heappush

from penstock.packing.workbench import Workbench

CONSUMERS_LOOKED_AT_MAX = 100
ITEMS_DISPLACED_MAX = 200


@dataclass(frozen=True, slots=True)
class Chain:
    """Moves to make together; `cost` is the load they move in addition to the first item."""

    cost: int
    moves: tuple[tuple[int, int], ...]

    def carry_out(self, bench: Workbench) -> None:
        for item, _ in self.moves[1:]:
            bench.lift(item)
        for item, consumer in self.moves:
            bench.put(item, consumer)


def cheapest_chain(
    bench: Workbench,
    item: int,
    cost_max: int | None,
    closed: frozenset[int] = frozenset(),
    *,
    ahead: bool = False,
) -> Chain | None:
    """How to place a lifted item; None if no chain costs at most `cost_max`."""
    hole = bench.hole_for(item, closed, ahead=ahead)
    if hole is not None:
        return Chain(0, ((item, hole),))
    return _Search(bench, closed, cost_max, ahead=ahead).run(item)


class _Search:
    __slots__ = ("_ahead", "_bench", "_closed", "_cost", "_cost_max", "_displaced_by", "_frontier")

    def __init__(
        self, bench: Workbench, closed: frozenset[int], cost_max: int | None, *, ahead: bool
    ) -> None:
        self._bench = bench
        self._closed = closed
        self._cost_max = bench.load if cost_max is None else cost_max
        self._ahead = ahead
        self._cost: dict[int, int] = {}
        self._displaced_by: dict[int, int] = {}
        self._frontier: list[tuple[int, int, int]] = []

    def run(self, first: int) -> Chain | None:
        size = self._bench.integers.sizes
        self._cost[first] = 0
        smallest = size[first]
        self._displace(first, smallest, 0)
        displaced = 0
        while self._frontier and displaced < ITEMS_DISPLACED_MAX:
            displaced += 1
            cost, _, item = heappop(self._frontier)
            # Skip an item that was meanwhile reached at a lower cost.
            chain = self._ended_by(item, cost) if cost == self._cost[item] else None
            if chain is not None:
                return chain
            if size[item] < smallest:
                smallest = size[item]
                self._displace(item, smallest, cost)
        return None

    def _displace(self, item: int, size: int, cost: int) -> None:
        """For each consumer with free capacity, consider ejecting its smallest sufficient item."""
        bench, closed = self._bench, self._closed
        looked_at = 0
        for free_ahead, consumer in reversed(bench.by_free_capacity_ahead):
            if cost + size - free_ahead > self._cost_max or looked_at >= CONSUMERS_LOOKED_AT_MAX:
                return
            free = bench.free[consumer]
            if consumer in closed or free < 0:
                continue
            looked_at += 1
            held = bench.members[consumer]
            place = bisect_left(held, (max(size - free, 1), 0))
            if place == len(held) or held[place][0] >= size:
                continue
            ejected_size, ejected = held[place]
            ejected_cost = cost + bench.cost_of_ejecting(ejected)
            known = self._cost.get(ejected)
            if ejected_cost <= self._cost_max and (known is None or ejected_cost < known):
                self._cost[ejected] = ejected_cost
                self._displaced_by[ejected] = item
                heappush(self._frontier, (ejected_cost, ejected_size, ejected))

    def _ended_by(self, last: int, cost: int) -> Chain | None:
        """The whole chain, if its last item fits somewhere and no consumer occurs twice."""
        bench = self._bench
        path = [last]
        while path[-1] in self._displaced_by:
            path.append(self._displaced_by[path[-1]])
        met = [bench.at[item] for item in path[:-1]]
        if len(set(met)) < len(met):
            return None
        hole = bench.hole_for(last, self._closed.union(met), ahead=self._ahead)
        if hole is None:
            return None
        path.reverse()
        places = [bench.at[item] for item in path[1:]]
        return Chain(cost, tuple(zip(path, [*places, hole], strict=True)))
