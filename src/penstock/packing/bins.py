"""Fills consumers with partitions; shared by all any-fit algorithms.

A rule is notified of every change of a consumer's free capacity, and chooses an open consumer for a
size, or none. If it chooses none, a consumer is opened: the partition's present one if it is not
open yet, else the one with the lowest free number. An empty consumer accepts any partition.
"""

from typing import Protocol

from penstock.model.consumer_id import CONSUMER_ID_MIN
from penstock.packing.whole_numbers import NO_CONSUMER, IntegerProblem


class Rule(Protocol):
    """Chooses among the open consumers. `after` is None when a consumer accepts no more."""

    def changed(self, consumer: int, before: int | None, after: int | None) -> None: ...

    def choose(self, size: int) -> int | None: ...


class Bins:
    """The open consumers and what they hold."""

    __slots__ = ("_integers", "_lowest_unused", "_rule", "free", "members")

    def __init__(self, integers: IntegerProblem, rule: Rule) -> None:
        self._integers = integers
        self._rule = rule
        self._lowest_unused = CONSUMER_ID_MIN
        self.members: dict[int, list[int]] = {}
        self.free: dict[int, int] = {}

    def place(self, item: int) -> None:
        """Put the item on the open consumer that the rule chooses, else on a new one."""
        if not self.place_among_open(item):
            self.put(item, self.open(self._opened_by(item)))

    def place_among_open(self, item: int) -> bool:
        consumer = self._rule.choose(self._integers.sizes[item])
        if consumer is None:
            return False
        self.put(item, consumer)
        return True

    def accepts(self, item: int, consumer: int) -> bool:
        held = self.members[consumer]
        return not held or (
            self._integers.sizes[item] <= self.free[consumer]
            and len(held) < self._integers.items_max
        )

    def open(self, consumer: int) -> int:
        assert consumer not in self.members  # noqa: S101 -- opening twice would lose items
        self.members[consumer] = []
        self.free[consumer] = self._integers.capacity_of(consumer)
        self._rule.changed(consumer, None, self.free[consumer])
        return consumer

    def open_with(self, consumer: int, items: list[int]) -> None:
        """Open a consumer that holds these items already; quicker than item by item."""
        sizes = self._integers.sizes
        free = self._integers.capacity_of(consumer) - sum(sizes[item] for item in items)
        self.members[consumer] = list(items)
        self.free[consumer] = free
        accepts_more = free >= 0 and len(items) < self._integers.items_max
        self._rule.changed(consumer, None, free if accepts_more else None)

    def open_lowest(self) -> None:
        """Open the consumer with the lowest number in advance."""
        self.open(CONSUMER_ID_MIN)

    def put(self, item: int, consumer: int) -> None:
        held = self.members[consumer]
        before = self.free[consumer]
        held.append(item)
        after = self.free[consumer] = before - self._integers.sizes[item]
        accepts_more = after >= 0 and len(held) < self._integers.items_max
        self._rule.changed(consumer, before, after if accepts_more else None)

    def _opened_by(self, item: int) -> int:
        """The item's present consumer, else the lowest free one, that can carry it alone."""
        integers, size, home = self._integers, self._integers.sizes[item], self._integers.home[item]
        home_is_closed = home != NO_CONSUMER and home not in self.members
        if home_is_closed and size <= integers.capacity_of(home):
            return home
        while self._lowest_unused in self.members:
            self._lowest_unused += 1
        if size > integers.capacity:
            large_enough = (
                c for c in sorted(integers.capacity_by_consumer) if c not in self.members
            )
            alone = home if home_is_closed else self._lowest_unused
            return next((c for c in large_enough if size <= integers.capacity_of(c)), alone)
        consumer = self._lowest_unused
        while consumer in self.members or size > integers.capacity_of(consumer):
            consumer += 1
        return consumer
