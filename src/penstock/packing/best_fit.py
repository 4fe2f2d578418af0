"""Best fit: the consumer that will have the least room left; of equals, the lowest number."""

from bisect import bisect_left, insort

from penstock.packing.any_fit import AnyFit
from penstock.packing.whole_numbers import Tally


class LeastRoom:
    """The rule: the least room that is enough. Rooms are kept sorted."""

    __slots__ = ("_rooms",)

    def __init__(self) -> None:
        self._rooms: list[tuple[int, int]] = []

    def changed(self, consumer: int, before: int | None, after: int | None) -> None:
        if before is not None:
            del self._rooms[bisect_left(self._rooms, (before, consumer))]
        if after is not None:
            insort(self._rooms, (after, consumer))

    def choose(self, size: int) -> int | None:
        place = bisect_left(self._rooms, (size, 0))
        return self._rooms[place][1] if place < len(self._rooms) else None


def least_room(_: Tally) -> LeastRoom:
    return LeastRoom()


BEST_FIT = AnyFit("BF", "To compare with: few consumers, most of the load moves.", least_room)
BEST_FIT_DECREASING = AnyFit(
    "BFD",
    "When moving costs nothing: the fewest consumers of the published twelve.",
    least_room,
    decreasing=True,
)
