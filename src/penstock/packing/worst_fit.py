"""Worst fit: the consumer with the most free capacity; ties: lowest number."""

from bisect import bisect_left, insort

from penstock.packing.any_fit import AnyFit
from penstock.packing.whole_numbers import IntegerProblem


class MostFreeCapacity:
    """The rule: the most free capacity, if it is enough. Free capacities are kept sorted."""

    __slots__ = ("_free_sorted",)

    def __init__(self) -> None:
        self._free_sorted: list[tuple[int, int]] = []

    def changed(self, consumer: int, before: int | None, after: int | None) -> None:
        if before is not None:
            del self._free_sorted[bisect_left(self._free_sorted, (before, -consumer))]
        if after is not None:
            insort(self._free_sorted, (after, -consumer))

    def choose(self, size: int) -> int | None:
        if not self._free_sorted or self._free_sorted[-1][0] < size:
            return None
        return -self._free_sorted[-1][1]


def most_free_capacity(_: IntegerProblem) -> MostFreeCapacity:
    return MostFreeCapacity()


WORST_FIT = AnyFit("WF", "To compare with: even loads, more consumers.", most_free_capacity)
WORST_FIT_DECREASING = AnyFit(
    "WFD",
    "To compare with: even loads, nearly the fewest consumers, most of the load moves.",
    most_free_capacity,
    decreasing=True,
)
