"""Worst fit: the consumer with the most room; of equals, the lowest number."""

from bisect import bisect_left, insort

from penstock.packing.any_fit import AnyFit
from penstock.packing.whole_numbers import Tally


class MostRoom:
    """The rule: the most room there is, if it is enough. Rooms are kept sorted."""

    __slots__ = ("_rooms",)

    def __init__(self) -> None:
        self._rooms: list[tuple[int, int]] = []

    def changed(self, consumer: int, before: int | None, after: int | None) -> None:
        if before is not None:
            del self._rooms[bisect_left(self._rooms, (before, -consumer))]
        if after is not None:
            insort(self._rooms, (after, -consumer))

    def choose(self, size: int) -> int | None:
        if not self._rooms or self._rooms[-1][0] < size:
            return None
        return -self._rooms[-1][1]


def most_room(_: Tally) -> MostRoom:
    return MostRoom()


WORST_FIT = AnyFit("WF", "To compare with: even loads, more consumers.", most_room)
WORST_FIT_DECREASING = AnyFit(
    "WFD",
    "To compare with: even loads, nearly the fewest consumers, most of the load moves.",
    most_room,
    decreasing=True,
)
