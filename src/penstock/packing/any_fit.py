"""What next, first, best and worst fit share: partitions one by one into the consumer a rule names.

The decreasing versions take the fastest partition first. The plain ones were published with
partitions in shuffled order: the shuffle here is a hash of the partition's name, its speed and a
seed that is part of the algorithm, so the same question always gets the same answer, and other
speeds get another shuffle.
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b

from penstock.packing.bins import Bins, Rule
from penstock.packing.bounded import within_bounds
from penstock.packing.problem import Packing, PackingProblem
from penstock.packing.whole_numbers import Tally


@dataclass(frozen=True, slots=True)
class AnyFit:
    """One of the eight plain algorithms, by its rule and its order."""

    name: str
    sentence: str
    rule: Callable[[Tally], Rule]
    decreasing: bool = False
    starts_with_one_open: bool = False
    seed: int = 0

    def pack(self, problem: PackingProblem) -> Packing:
        return within_bounds(problem, self._members)

    def _members(self, tally: Tally) -> dict[int, list[int]]:
        bins = Bins(tally, self.rule(tally))
        if self.starts_with_one_open and tally.sizes:
            bins.open_lowest()
        for item in self._order(tally):
            bins.place(item)
        return bins.members

    def _order(self, tally: Tally) -> list[int]:
        items = range(len(tally.sizes))
        if self.decreasing:
            return sorted(items, key=lambda item: (-tally.sizes[item], item))
        salt = _salt(self.seed, tally)
        return sorted(items, key=lambda item: (_shuffled(salt, tally, item), item))


def _salt(seed: int, tally: Tally) -> bytes:
    """All speeds together, so that every measurement is shuffled anew."""
    return blake2b(repr((seed, tally.sizes)).encode(), digest_size=16).digest()


def _shuffled(salt: bytes, tally: Tally, item: int) -> bytes:
    return blake2b(str(tally.partitions[item]).encode(), key=salt, digest_size=8).digest()
