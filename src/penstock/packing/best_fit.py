"""Best fit: the consumer with the least free capacity left afterwards; ties: lowest number."""

from bisect import bisect_left, insort

from penstock.packing.any_fit import AnyFit
from penstock.packing.whole_numbers import IntegerProblem


class LeastFreeCapacity:
    """The rule: the least free capacity that is enough. Free capacities are kept sorted."""

    __slots__ = ("_free_sorted",)

    def __init__(self) -> None:
        self._free_sorted: list[tuple[int, int]] = []

    def changed(self, consumer: int, before: int | None, after: int | None) -> None:
        if before is not None:
            del self._free_sorted[bisect_left(self._free_sorted, (before, consumer))]
        if after is not None:
            insort(self._free_sorted, (after, consumer))

    def choose(self, size: int) -> int | None:
        place = bisect_left(self._free_sorted, (size, 0))
        return self._free_sorted[place][1] if place < len(self._free_sorted) else None


def least_free_capacity(_: IntegerProblem) -> LeastFreeCapacity:
    return LeastFreeCapacity()


BEST_FIT = AnyFit(
    "BF", "To compare with: few consumers, most of the load moves.", least_free_capacity
)
BEST_FIT_DECREASING = AnyFit(
    "BFD",
    "When moving costs nothing: the fewest consumers of the published twelve.",
    least_free_capacity,
    decreasing=True,
)
