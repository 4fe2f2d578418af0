"""An assignment that is changed move by move, and can undo moves. Used by `chain`.

It keeps each consumer's items sorted by size and all consumers sorted by free capacity, so that the
consumer with the most free capacity and the smallest item of at least a given size are found fast.

With a forecast, free capacity is counted for present speeds (which must fit) and for expected
speeds (which should fit). Without a forecast the two are equal.
"""

from bisect import bisect_left, insort
from collections.abc import Container, Sequence
from itertools import islice

from penstock.model.consumer_id import CONSUMER_ID_MIN
from penstock.packing.whole_numbers import NO_CONSUMER, IntegerProblem

_LOOKED_AT_MAX = 500


class Workbench:
    __slots__ = (
        "_free_ahead",
        "_free_ahead_sorted",
        "_journal",
        "_none_free_below",
        "at",
        "free",
        "home",
        "integers",
        "load",
        "members",
    )

    def __init__(self, integers: IntegerProblem) -> None:
        self.integers = integers
        self.load = sum(integers.sizes)
        self.home = list(integers.home)
        self.at = list(integers.home)
        self.members: dict[int, list[tuple[int, int]]] = {}
        self.free: dict[int, int] = {}
        self._free_ahead: dict[int, int] = {}
        for consumer, items in integers.members_now().items():
            capacity = integers.capacity_of(consumer)
            self.members[consumer] = sorted((integers.sizes[item], item) for item in items)
            self.free[consumer] = capacity - sum(integers.sizes[item] for item in items)
            self._free_ahead[consumer] = capacity - sum(
                integers.sizes_ahead[item] for item in items
            )
        self._free_ahead_sorted = sorted(
            (ahead, consumer) for consumer, ahead in self._free_ahead.items()
        )
        self._journal: list[tuple[int, int]] = []
        self._none_free_below = CONSUMER_ID_MIN

    @property
    def by_free_capacity_ahead(self) -> Sequence[tuple[int, int]]:
        """(expected free capacity, consumer), ascending."""
        return self._free_ahead_sorted

    def is_full(self, consumer: int) -> bool:
        return len(self.members[consumer]) >= self.integers.items_max

    def open(self, consumer: int) -> None:
        self.members[consumer] = []
        self.free[consumer] = self._free_ahead[consumer] = self.integers.capacity_of(consumer)
        insort(self._free_ahead_sorted, (self._free_ahead[consumer], consumer))

    def close_empty(self) -> None:
        for consumer in [consumer for consumer, held in self.members.items() if not held]:
            self.close(consumer)

    def close(self, consumer: int) -> None:
        """Remove an empty consumer; earlier moves can no longer be undone."""
        del self._free_ahead_sorted[
            bisect_left(self._free_ahead_sorted, (self._free_ahead[consumer], consumer))
        ]
        del self.members[consumer], self.free[consumer], self._free_ahead[consumer]
        self._journal.clear()
        self._none_free_below = min(self._none_free_below, consumer)

    def lift(self, item: int) -> None:
        """Take the item off its consumer; `put` places it again."""
        consumer, size = self.at[item], self.integers.sizes[item]
        held = self.members[consumer]
        del held[bisect_left(held, (size, item))]
        self._resize(consumer, size, self.integers.sizes_ahead[item])
        self.at[item] = NO_CONSUMER
        if not held:
            self._none_free_below = min(self._none_free_below, consumer)
        self._journal.append((item, consumer))

    def put(self, item: int, consumer: int) -> None:
        size = self.integers.sizes[item]
        insort(self.members[consumer], (size, item))
        self._resize(consumer, -size, -self.integers.sizes_ahead[item])
        self.at[item] = consumer
        self._journal.append((item, NO_CONSUMER))

    def mark(self) -> int:
        return len(self._journal)

    def undo(self, mark: int) -> None:
        """Undo all moves since `mark`."""
        while len(self._journal) > mark:
            item, consumer = self._journal.pop()
            if consumer == NO_CONSUMER:
                self.lift(item)
            else:
                self.put(item, consumer)
            self._journal.pop()

    def accepts(self, item: int, consumer: int, *, ahead: bool) -> bool:
        """Whether the item fits now; with `ahead`, also at the expected speeds."""
        return (
            self.free[consumer] >= self.integers.sizes[item]
            and not self.is_full(consumer)
            and not (ahead and self._free_ahead[consumer] < self.integers.sizes_ahead[item])
        )

    def hole_for(self, item: int, closed: Container[int], *, ahead: bool) -> int | None:
        """Its home if it fits, else the consumer with the most expected free capacity, or None."""
        home = self.home[item]
        if home in self.free and home not in closed and self.accepts(item, home, ahead=ahead):
            return home
        sure = self.integers.sizes is self.integers.sizes_ahead or ahead
        size = self.integers.sizes_ahead[item] if sure else 0
        for free_ahead, consumer in islice(reversed(self._free_ahead_sorted), _LOOKED_AT_MAX):
            if sure and free_ahead < size:
                return None
            if consumer not in closed and self.accepts(item, consumer, ahead=ahead):
                return consumer
        return None

    def lowest_free(self) -> int:
        while self.members.get(self._none_free_below):
            self._none_free_below += 1
        return self._none_free_below

    def cost_of_ejecting(self, item: int) -> int:
        """The load that moving the item adds; 0 if it has already moved."""
        return self.integers.sizes[item] if self.at[item] == self.home[item] else 0

    def settle(self) -> None:
        """Make the present place of every item its home."""
        self.home = list(self.at)

    def _resize(self, consumer: int, more: int, more_ahead: int) -> None:
        free_sorted, ahead = self._free_ahead_sorted, self._free_ahead[consumer]
        del free_sorted[bisect_left(free_sorted, (ahead, consumer))]
        self.free[consumer] += more
        self._free_ahead[consumer] = ahead + more_ahead
        insort(free_sorted, (ahead + more_ahead, consumer))
