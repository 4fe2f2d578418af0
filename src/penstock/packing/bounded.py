"""Keeps a packing within the maximum number of consumers, as little overloaded as possible.

If an algorithm's answer uses few enough consumers, it stands. Otherwise all capacities are
stretched by the same factor, the smallest that bisection finds, until the answer fits (the multifit
idea). Consumers that this leaves over relieve the most overloaded ones. Overloaded consumers are
flagged, never an error. A partition that is faster than a stretched consumer stays alone and
stretches nobody else. A present assignment close to the best one found is kept, so constant speeds
move nothing.

A packing of 10,000 partitions takes up to a second, so few stretches are tried. A lower bound tells
which ones no packing can meet, and an algorithm may bring a quick one, to find a stretch that it
surely meets itself.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from penstock.packing.lower_bound import fewest_consumers
from penstock.packing.problem import Packing, PackingProblem
from penstock.packing.relief import relieved
from penstock.packing.whole_numbers import NO_CONSUMER, IntegerProblem

Members = Mapping[int, list[int]]
Pack = Callable[[IntegerProblem], Members]

_PRECISION = Fraction(1, 1024)
"""A stretch that is smaller by less than this share is not worth another try."""

_TRIES_MAX = 10
_PARTITIONS_TRIED_MAX = 10_000
"""Bounds tries times partitions, where the quick packing has found a stretch already."""

_ROUNDS_MAX = 8
_GOOD_ENOUGH = Fraction(102, 100)


@dataclass(frozen=True, slots=True)
class TightPacking:
    """How an algorithm packs when the maximum binds.

    `quick` takes less time, and never uses fewer consumers than `pack` for the same problem.
    """

    pack: Pack
    quick: Pack


def within_bounds(
    problem: PackingProblem, pack: Pack, tight: TightPacking | None = None
) -> Packing:
    """Pack with at most `consumers_max` consumers.

    `tight` replaces `pack` when that maximum binds, for algorithms that may use more consumers than
    they need.
    """
    integers = IntegerProblem.of(problem)
    if problem.consumers_max is None:
        return integers.answer(pack(integers))
    may_fit = fewest_consumers(integers) <= problem.consumers_max
    if may_fit:
        members = pack(integers)
        if _count(members) <= problem.consumers_max:
            return integers.answer(members)
    tight = tight or TightPacking(pack, pack)
    return integers.answer(_settled(integers, problem.consumers_max, tight, may_fit=may_fit))


def _settled(
    integers: IntegerProblem, consumers_max: int, tight: TightPacking, *, may_fit: bool
) -> Members:
    """Pack again from each answer until it is stable, so that the next run changes nothing."""
    rounds, is_settled = 0, False
    while rounds < _ROUNDS_MAX and not is_settled:
        rounds += 1
        members = tight.pack(integers) if may_fit else {}
        if not may_fit or _count(members) > consumers_max:
            members = _least_overloaded(integers, consumers_max, tight)
            members = relieved(integers, members, consumers_max)
        home = _home(integers, members)
        is_settled = home == integers.home
        integers = replace(integers, home=home, consumers_now=tuple(sorted(members)))
    return members


def _least_overloaded(integers: IntegerProblem, consumers_max: int, tight: TightPacking) -> Members:
    stretching = _Stretching.of(integers, consumers_max, tight)
    now = integers.members_now()
    if NO_CONSUMER in integers.home or not stretching.is_within_maxima(now):
        return stretching.least_stretched()
    overload_now = _overload(integers, now)
    if not stretching.may_fit(max(Fraction(1), overload_now / _GOOD_ENOUGH)):
        return now
    best = stretching.least_stretched()
    return now if overload_now <= _overload(integers, best) * _GOOD_ENOUGH else best


@dataclass(frozen=True, slots=True)
class _Stretching:
    """Looks for the smallest stretch; below `least` no packing fits."""

    integers: IntegerProblem
    consumers_max: int
    tight: TightPacking
    least: Fraction

    @classmethod
    def of(cls, integers: IntegerProblem, consumers_max: int, tight: TightPacking) -> "_Stretching":
        """The partitions that are too fast for any stretch in question are set aside first.

        If both maxima together cannot hold the others, the one per consumer gives way.
        """
        capacity = integers.capacity_max
        biggest_first = sorted(integers.sizes, reverse=True)
        load, alone = sum(biggest_first), 0
        least = max(Fraction(1), Fraction(load, consumers_max * capacity))
        while alone < consumers_max - 1 and biggest_first[alone] > least * capacity:
            load -= biggest_first[alone]
            alone += 1
            least = max(Fraction(1), Fraction(load, (consumers_max - alone) * capacity))
        items_max = -((alone - len(integers.sizes)) // (consumers_max - alone))
        wide = replace(integers, items_max=max(integers.items_max, items_max))
        return cls(wide, consumers_max, tight, least)

    def may_fit(self, stretch: Fraction) -> bool:
        """Whether a packing with this stretch is not ruled out."""
        return fewest_consumers(self.integers.stretched(stretch)) <= self.consumers_max

    def is_within_maxima(self, members: Members) -> bool:
        return _count(members) <= self.consumers_max and all(
            len(items) <= self.integers.items_max for items in members.values()
        )

    def least_stretched(self) -> Members:
        low, high, best = self._first_that_fits()
        if self.tight.quick is self.tight.pack:
            return self._bisected(low, high, best, _TRIES_MAX)
        found = self._packed(self.tight.pack, high)
        assert found is not None  # noqa: S101 -- the quick packing uses at least as many consumers
        tries = min(_TRIES_MAX, _PARTITIONS_TRIED_MAX // len(self.integers.sizes))
        return self._bisected(self.least, high, found, tries)

    def _first_that_fits(self) -> tuple[Fraction, Fraction, Members]:
        """A stretch that is too small, or the least, and one at which the quick packing fits."""
        low, step = self.least, _PRECISION
        high = self.least * (1 + step)
        found = self._packed(self.tight.quick, high)
        while found is None:
            low, step = high, 2 * step
            high = self.least * (1 + step)
            found = self._packed(self.tight.quick, high)
        return low, high, found

    def _bisected(self, low: Fraction, high: Fraction, best: Members, tries: int) -> Members:
        while tries and high - low > low * _PRECISION:
            middle = (low + high) / 2
            found = None
            if self.may_fit(middle):
                tries -= 1
                found = self._packed(self.tight.pack, middle)
            if found is None:
                low = middle
            else:
                high, best = middle, found
        return best

    def _packed(self, pack: Pack, stretch: Fraction) -> Members | None:
        members = pack(self.integers.stretched(stretch))
        return members if _count(members) <= self.consumers_max else None


def _home(integers: IntegerProblem, members: Members) -> tuple[int, ...]:
    owner = {item: consumer for consumer, items in members.items() for item in items}
    return tuple(owner[item] for item in range(len(integers.sizes)))


def _count(members: Members) -> int:
    return sum(1 for items in members.values() if items)


def _overload(integers: IntegerProblem, members: Members) -> Fraction:
    """The highest load as a share of capacity; an oversize partition alone does not count."""
    sizes, capacity_max = integers.sizes, integers.capacity_max
    return max(
        (
            Fraction(sum(sizes[item] for item in items), integers.capacity_of(consumer))
            for consumer, items in members.items()
            if len(items) > 1 or any(sizes[item] <= capacity_max for item in items)
        ),
        default=Fraction(1),
    )
