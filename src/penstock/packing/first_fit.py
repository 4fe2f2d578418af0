"""First fit: the consumer with the lowest number that has enough free capacity.

A tree over all consumer numbers finds it in logarithmic time: each node holds the largest free
capacity below it.
"""

from penstock.packing.any_fit import AnyFit
from penstock.packing.whole_numbers import IntegerProblem

_CLOSED = -1


class LowestNumber:
    """The rule: the lowest-numbered consumer with enough free capacity."""

    __slots__ = ("_free", "_leaves", "_number", "_position")

    def __init__(self, integers: IntegerProblem) -> None:
        known = {*integers.home, *integers.consumers_now, *integers.capacity_by_consumer}
        openable = {*range(1, len(integers.sizes) + len(known) + 2), *known}
        self._number: list[int] = sorted(openable)
        self._position = {consumer: place for place, consumer in enumerate(self._number)}
        self._leaves: int = 1 << (len(self._number) - 1).bit_length()
        self._free = [_CLOSED] * (2 * self._leaves)

    def changed(self, consumer: int, before: int | None, after: int | None) -> None:  # noqa: ARG002 -- the tree holds the former value
        free = self._free
        node = self._leaves + self._position[consumer]
        free[node] = _CLOSED if after is None else after
        while node > 1:
            node >>= 1
            free[node] = max(free[2 * node], free[2 * node + 1])

    def choose(self, size: int) -> int | None:
        free = self._free
        if free[1] < size:
            return None
        node = 1
        while node < self._leaves:
            node *= 2
            if free[node] < size:
                node += 1
        return self._number[node - self._leaves]


FIRST_FIT = AnyFit("FF", "To compare with: fills low-numbered consumers first.", LowestNumber)
FIRST_FIT_DECREASING = AnyFit(
    "FFD",
    "To compare with: nearly the fewest consumers, at the price of moving most of the load.",
    LowestNumber,
    decreasing=True,
)
