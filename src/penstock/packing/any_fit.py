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
from penstock.packing.whole_numbers import IntegerProblem


@dataclass(frozen=True, slots=True)
class AnyFit:
    """One of the eight plain algorithms, by its rule and its order."""

    name: str
    sentence: str
    rule: Callable[[IntegerProblem], Rule]
    decreasing: bool = False
    starts_with_one_open: bool = False
    seed: int = 0

    def pack(self, problem: PackingProblem) -> Packing:
        return within_bounds(problem, self._members)

    def _members(self, integers: IntegerProblem) -> dict[int, list[int]]:
        bins = Bins(integers, self.rule(integers))
        if self.starts_with_one_open and integers.sizes:
            bins.open_lowest()
        for item in self._order(integers):
            bins.place(item)
        return bins.members

    def _order(self, integers: IntegerProblem) -> list[int]:
        items = range(len(integers.sizes))
        if self.decreasing:
            return sorted(items, key=lambda item: (-integers.sizes[item], item))
        salt = _salt(self.seed, integers)
        return sorted(items, key=lambda item: (_shuffled(salt, integers, item), item))


def _salt(seed: int, integers: IntegerProblem) -> bytes:
    """All speeds together, so that every measurement is shuffled anew."""
    return blake2b(repr((seed, integers.sizes)).encode(), digest_size=16).digest()


def _shuffled(salt: bytes, integers: IntegerProblem, item: int) -> bytes:
    return blake2b(str(integers.partitions[item]).encode(), key=salt, digest_size=8).digest()
