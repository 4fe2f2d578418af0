"""A lower bound of the number of consumers, to compare algorithms with.

It is Martello and Toth's L2. For every threshold up to half a capacity: a partition too big to
share a consumer with one above the threshold needs its own, a partition above half a capacity needs
its own, the free capacity of the latter takes some of the rest, and the remainder fills consumers.
"""

from bisect import bisect_left, bisect_right
from itertools import accumulate

from penstock.packing.problem import PackingProblem
from penstock.packing.whole_numbers import IntegerProblem


def consumers_at_least(problem: PackingProblem) -> int:
    """No packing of the problem within its capacities uses fewer consumers than this.

    A partition faster than any consumer counts as one. If capacities differ, all count as the
    largest, so the bound stays valid.
    """
    return fewest_consumers(IntegerProblem.of(problem))


def fewest_consumers(integers: IntegerProblem) -> int:
    """The same bound, for a problem that is in whole numbers already."""
    capacity = integers.capacity_max
    sizes = sorted(size for size in integers.sizes if size <= capacity)
    oversize = len(integers.sizes) - len(sizes)
    by_count = -(-len(sizes) // integers.items_max)
    return oversize + max(by_count, _martello_toth(sizes, capacity))


def _martello_toth(sizes: list[int], capacity: int) -> int:
    if not sizes:
        return 0
    before = [0, *accumulate(sizes)]
    total = before[-1]
    half = bisect_right(sizes, capacity // 2)
    best = max(1, -(-total // capacity))
    for threshold in sorted({0, *sizes[:half]}):
        big = bisect_right(sizes, capacity - threshold)
        smallest = bisect_left(sizes, threshold)
        alone = len(sizes) - big
        middle = max(0, big - half)
        free = middle * capacity - (before[big] - before[half]) if middle else 0
        small = before[min(half, big)] - before[smallest]
        best = max(best, alone + middle + max(0, -(-(small - free) // capacity)))
    return best
