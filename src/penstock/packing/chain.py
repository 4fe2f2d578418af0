"""CHAIN, Penstock's own algorithm: keep everything, repair what must be, empty what is worth it.

1. Keep the present assignment. From each consumer over its bounds evict the cheapest items.
2. Place the evicted and the new, biggest first: home, else the consumer with the most room, else by
   an ejection chain (see `ejection`), else on a newly opened consumer.
3. Empty consumers, cheapest first, while that moves less than a consumer is worth.
4. What has moved and could be back home goes home.
5. Step 3 again as if all were at home: what is left is what the next run would leave alone too, so
   while nothing changes nothing moves.

One knob says what a consumer is worth, in consumers' capacities of moved load: `(1 - knob) / knob`.
At 0 that is without limit, and if best fit decreasing still needs fewer consumers, the least full
ones are packed anew until as few are reached. At 1 nothing is moved but what must be.
"""

from dataclasses import dataclass, field, replace
from fractions import Fraction

from penstock.packing.bounded import within_bounds
from penstock.packing.ejection import Chain, cheapest_chain
from penstock.packing.eviction import to_evict
from penstock.packing.keep_fullest import Members, fresh_best_fit_decreasing, keep_fullest
from penstock.packing.problem import Packing, PackingProblem
from penstock.packing.whole_numbers import NO_CONSUMER, IntegerProblem
from penstock.packing.workbench import Workbench

KNOB_DEFAULT = 0.5
EMPTIED_TRIES_MAX = 8
_ROUNDS_MAX = 4


@dataclass(frozen=True, slots=True)
class ChainPacking:
    """`knob` from 0, fewest consumers, to 1, fewest moves."""

    knob: float = KNOB_DEFAULT
    sentence: str = field(
        default="For service: few consumers and few moves; the knob sets the balance.", init=False
    )

    def __post_init__(self) -> None:
        if not 0 <= self.knob <= 1:
            raise ValueError(f"a knob is a number from 0 to 1, got {self.knob!r}")

    @property
    def name(self) -> str:
        return "CHAIN" if self.knob == KNOB_DEFAULT else f"CHAIN@{self.knob:g}"

    def pack(self, problem: PackingProblem) -> Packing:
        return within_bounds(problem, self._members, _fewest)

    def _members(self, integers: IntegerProblem) -> Members:
        members = self._once(integers)
        rounds, is_settled = 0, False
        while rounds < _ROUNDS_MAX and not is_settled and _is_misplaced(integers, members):
            rounds += 1
            owner = {item: consumer for consumer, items in members.items() for item in items}
            home = tuple(owner[item] for item in range(len(integers.sizes)))
            is_settled = home == integers.home
            if not is_settled:
                integers = replace(integers, home=home)
                members = self._once(integers)
        return members

    def _once(self, integers: IntegerProblem) -> Members:
        if self.knob == 0 or all(home == NO_CONSUMER for home in integers.home):
            return _fewest(integers)
        knob = Fraction(self.knob)
        return _repaired(integers, int(integers.capacity * (1 - knob) / knob))


def _is_misplaced(integers: IntegerProblem, members: Members) -> bool:
    """Whether a partition is too fast for its consumer, but not for every consumer.

    Where capacities differ, such a one may find its place only once others have found theirs.
    """
    if not integers.capacity_by_consumer:
        return False
    capacity_max = max(integers.capacity, *integers.capacity_by_consumer.values())
    return any(
        integers.capacity_of(consumer) < integers.sizes[item] <= capacity_max
        for consumer, items in members.items()
        for item in items
    )


def _fewest(integers: IntegerProblem) -> Members:
    """As few consumers as best fit decreasing, or fewer."""
    fresh = fresh_best_fit_decreasing(integers)
    if all(home == NO_CONSUMER for home in integers.home):
        members = fresh
    else:
        members = _repaired(integers, None)
        if len(members) <= len(fresh):
            return members
        members = keep_fullest(integers, members, fresh)
    bench = Workbench(integers)
    _rearrange(bench, members)
    return _finished(bench, None)


def _repaired(integers: IntegerProblem, worth: int | None) -> Members:
    """`worth`: the load that may be moved to do with one consumer less; None is without limit."""
    bench = Workbench(integers)
    waiting = [item for item, home in enumerate(integers.home) if home == NO_CONSUMER]
    for consumer in [c for c in bench.members if bench.free[c] < 0 or _holds_too_many(bench, c)]:
        for item in to_evict(bench, consumer):
            bench.lift(item)
            waiting.append(item)
    for item in sorted(waiting, key=lambda item: (-integers.sizes[item], item)):
        _place(bench, item, worth)
    return _finished(bench, worth)


def _finished(bench: Workbench, worth: int | None) -> Members:
    bench.close_empty()
    _empty_consumers(bench, worth)
    _go_home(bench)
    bench.settle()
    _empty_consumers(bench, worth)
    return {consumer: [item for _, item in held] for consumer, held in bench.members.items()}


def _holds_too_many(bench: Workbench, consumer: int) -> bool:
    return len(bench.members[consumer]) > bench.integers.items_max


def _rearrange(bench: Workbench, members: Members) -> None:
    """Carry out a packing that was found elsewhere."""
    target = {item: consumer for consumer, items in members.items() for item in items}
    stray = [item for item in sorted(target) if bench.at[item] != target[item]]
    for item in stray:
        if bench.at[item] != NO_CONSUMER:
            bench.lift(item)
    for consumer in sorted(members):
        if consumer not in bench.members:
            bench.open(consumer)
    for item in stray:
        bench.put(item, target[item])


def _place(bench: Workbench, item: int, worth: int | None) -> None:
    chain = cheapest_chain(bench, item, worth)
    if chain is None:
        consumer = _opened_by(bench, item)
        if consumer not in bench.members:
            bench.open(consumer)
        chain = Chain(0, ((item, consumer),))
    chain.carry_out(bench)


def _opened_by(bench: Workbench, item: int) -> int:
    """An empty consumer that can carry the item alone: the lowest free.

    Its own, where it fits, is a hole like any other and was found before.
    """
    integers, size, home = bench.integers, bench.integers.sizes[item], bench.home[item]
    free_home = home != NO_CONSUMER and not bench.members.get(home)
    lowest = bench.lowest_free()
    special = sorted(integers.capacity_by_consumer)
    for consumer in special if size > integers.capacity else ():
        if size <= integers.capacity_of(consumer) and not bench.members.get(consumer):
            return consumer
    if size > integers.capacity:
        return home if free_home else lowest
    while bench.members.get(lowest) or size > integers.capacity_of(lowest):
        lowest += 1
    return lowest


def _empty_consumers(bench: Workbench, worth: int | None) -> None:
    fewest = _at_least(bench.integers)
    emptied_some = True
    while emptied_some and len(bench.members) > fewest:
        emptied_some = False
        failures = 0
        for consumer in sorted(bench.members, key=lambda c: _emptying(bench, c)):
            if failures == EMPTIED_TRIES_MAX or len(bench.members) == fewest:
                break
            if _empty(bench, consumer, worth):
                bench.close(consumer)
                emptied_some = True
            else:
                failures += 1


def _at_least(integers: IntegerProblem) -> int:
    """A quick bound, to stop looking early: an oversize partition is one consumer, alone."""
    capacity = max(integers.capacity, *integers.capacity_by_consumer.values(), 0)
    shared = [size for size in integers.sizes if size <= capacity]
    return len(integers.sizes) - len(shared) - (-sum(shared) // capacity)


def _emptying(bench: Workbench, consumer: int) -> tuple[int, int, int]:
    """What emptying costs at least; of equals, the emptiest, then the lowest number."""
    at_home = sum(size for size, item in bench.members[consumer] if bench.home[item] == consumer)
    return at_home, -bench.free[consumer], consumer


def _empty(bench: Workbench, consumer: int, worth: int | None) -> bool:
    """Place all its items elsewhere if that costs no more than `worth`; else change nothing."""
    if bench.free[consumer] < 0:
        return False
    items = [item for _, item in reversed(bench.members[consumer])]
    cost = sum(bench.cost_of_ejecting(item) for item in items)
    if worth is not None and cost > worth:
        return False
    mark = bench.mark()
    for item in items:
        bench.lift(item)
    for item in items:
        left = None if worth is None else worth - cost
        chain = cheapest_chain(bench, item, left, frozenset((consumer,)), ahead=True)
        if chain is None:
            bench.undo(mark)
            return False
        cost += chain.cost
        chain.carry_out(bench)
    return True


def _go_home(bench: Workbench) -> None:
    """A move that turned out not to be needed is taken back."""
    sizes = bench.integers.sizes
    strays = [i for i, at in enumerate(bench.at) if bench.home[i] not in {NO_CONSUMER, at}]
    for item in sorted(strays, key=lambda item: (-sizes[item], item)):
        home = bench.home[item]
        if home in bench.free and bench.accepts(item, home, ahead=True):
            bench.lift(item)
            bench.put(item, home)
    bench.close_empty()
