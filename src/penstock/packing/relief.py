"""Uses consumers that a packing under a maximum has left over to relieve overloaded ones.

The smallest stretch often needs fewer consumers than there may be: forty partitions of half a
consumer fit fourteen that are stretched by a half, three on each, while nineteen are allowed.
"""

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from penstock.model.consumer_id import CONSUMER_ID_MIN
from penstock.packing.whole_numbers import IntegerProblem


def relieved(
    integers: IntegerProblem, members: Mapping[int, list[int]], consumers_max: int
) -> dict[int, list[int]]:
    """Move items of the most overloaded consumers to new ones, which stay within capacity."""
    held = {consumer: list(items) for consumer, items in members.items() if items}
    excess = [(-_excess(integers, c, items), c) for c, items in held.items() if len(items) > 1]
    overloaded = [entry for entry in excess if entry[0] < 0]
    heapify(overloaded)
    consumer = CONSUMER_ID_MIN
    while overloaded and len(held) < consumers_max:
        while consumer in held:
            consumer += 1
        held[consumer] = _taken_over(integers, held, overloaded, integers.capacity_of(consumer))
    return {consumer: items for consumer, items in held.items() if items}


def _taken_over(
    integers: IntegerProblem,
    held: dict[int, list[int]],
    overloaded: list[tuple[int, int]],
    free: int,
) -> list[int]:
    """What one new consumer takes; who cannot be relieved by it is not asked again."""
    sizes, taken = integers.sizes, list[int]()
    while overloaded and len(taken) < integers.items_max:
        excess, consumer = -overloaded[0][0], overloaded[0][1]
        items = held[consumer]
        fitting = [item for item in items if 0 < sizes[item] <= free]
        if not fitting and taken:
            return taken
        heappop(overloaded)
        if not fitting:
            continue
        enough = [item for item in fitting if sizes[item] >= excess]
        item = (
            min(enough, key=lambda i: (sizes[i], i))
            if enough
            else max(fitting, key=lambda i: (sizes[i], -i))
        )
        items.remove(item)
        taken.append(item)
        free -= sizes[item]
        if sizes[item] < excess and len(items) > 1:
            heappush(overloaded, (sizes[item] - excess, consumer))
    return taken


def _excess(integers: IntegerProblem, consumer: int, items: list[int]) -> int:
    return sum(integers.sizes[item] for item in items) - integers.capacity_of(consumer)
