"""The four published algorithms that start from the present assignment.

Consumers are taken in descending order of load (in the P versions: of their fastest partition).
Each one's partitions are offered, smallest first, to consumers that are already open. At the first
one that fits nowhere, the consumer itself is opened and keeps the rest, biggest first, as far as
they fit. What does not fit is packed last, biggest first, by the same rule.
"""

from collections.abc import Callable
from dataclasses import dataclass

from penstock.packing.best_fit import least_free_capacity
from penstock.packing.bins import Bins, Rule
from penstock.packing.bounded import within_bounds
from penstock.packing.problem import Packing, PackingProblem
from penstock.packing.whole_numbers import NO_CONSUMER, IntegerProblem
from penstock.packing.worst_fit import most_free_capacity


@dataclass(frozen=True, slots=True)
class ModifiedAnyFit:
    name: str
    sentence: str
    rule: Callable[[IntegerProblem], Rule]
    by_fastest_partition: bool = False

    def pack(self, problem: PackingProblem) -> Packing:
        return within_bounds(problem, self._members)

    def _members(self, integers: IntegerProblem) -> dict[int, list[int]]:
        bins = Bins(integers, self.rule(integers))
        pool = [item for item, home in enumerate(integers.home) if home == NO_CONSUMER]
        for consumer, items in self._consumers(integers):
            pool += _settle(bins, integers, consumer, items)
        for item in sorted(pool, key=lambda item: (-integers.sizes[item], item)):
            bins.place(item)
        return bins.members

    def _consumers(self, integers: IntegerProblem) -> list[tuple[int, list[int]]]:
        weigh = max if self.by_fastest_partition else sum
        return sorted(
            integers.members_now().items(),
            key=lambda held: (-weigh(integers.sizes[item] for item in held[1]), held[0]),
        )


def _settle(bins: Bins, integers: IntegerProblem, consumer: int, items: list[int]) -> list[int]:
    """Place items on open consumers, keep what fits, and return the rest."""
    rising = sorted(items, key=lambda item: (integers.sizes[item], item))
    given = 0
    while given < len(rising) and bins.place_among_open(rising[given]):
        given += 1
    falling = rising[given:][::-1]
    if not falling:
        return []
    bins.open(consumer)
    for kept, item in enumerate(falling):
        if not bins.accepts(item, consumer):
            return falling[kept:]
        bins.put(item, consumer)
    return []


MODIFIED_WORST_FIT = ModifiedAnyFit(
    "MWF", "To compare with: the published choice for few moves.", most_free_capacity
)
MODIFIED_BEST_FIT = ModifiedAnyFit(
    "MBF", "To compare with: fewer consumers than MWF, more moves.", least_free_capacity
)
MODIFIED_WORST_FIT_BY_PARTITION = ModifiedAnyFit(
    "MWFP",
    "To compare with: as MWF, consumers ordered by their fastest partition.",
    most_free_capacity,
    by_fastest_partition=True,
)
MODIFIED_BEST_FIT_BY_PARTITION = ModifiedAnyFit(
    "MBFP",
    "To compare with: as MBF, consumers ordered by their fastest partition.",
    least_free_capacity,
    by_fastest_partition=True,
)
