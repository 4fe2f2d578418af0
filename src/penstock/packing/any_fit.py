"""The common part of next, first, best and worst fit: place partitions one by one by a rule.

The decreasing versions take the fastest partition first. The plain ones were published with a
shuffled order; here the shuffle is a hash of the partition's name, all speeds and a fixed seed. So
the same problem always gets the same answer, and other speeds get another shuffle.
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
    """One of the eight plain algorithms, defined by its rule and its order."""

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
    """A hash of all speeds, so that every measurement gets its own shuffle."""
    return blake2b(repr((seed, integers.sizes)).encode(), digest_size=16).digest()


def _shuffled(salt: bytes, integers: IntegerProblem, item: int) -> bytes:
    return blake2b(str(integers.partitions[item]).encode(), key=salt, digest_size=8).digest()
