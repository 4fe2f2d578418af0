"""CHAIN, Penstock's own algorithm: changes the present assignment as little as needed.

An item is a partition; its home is the consumer that owns it now.

1. Keep the present assignment. From each consumer over its limits evict the cheapest items.
2. Place evicted and new items, biggest first: at home, else on the consumer with the most free
   capacity, else by an ejection chain (see `ejection`), else on a new consumer.
3. Empty consumers, cheapest first, while that moves less load than a consumer is worth.
4. Move items back home where they fit again.
5. Repeat step 3 with the present places as homes, so that a next run with the same speeds moves
   nothing.

The knob sets what a consumer is worth, as moved load in capacities: `(1 - knob) / knob`. At 0 there
is no limit, and if best fit decreasing still needs fewer consumers, the least full ones are packed
again to reach its number. At 1 only what must move is moved.
"""

from dataclasses import dataclass, field, replace
from fractions import Fraction

from penstock.packing.bounded import TightPacking, within_bounds
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
        default="For production: few consumers and few moves; the knob sets the balance.",
        init=False,
    )

    def __post_init__(self) -> None:
        if not 0 <= self.knob <= 1:
            raise ValueError(f"a knob is a number from 0 to 1, got {self.knob!r}")

    @property
    def name(self) -> str:
        return "CHAIN" if self.knob == KNOB_DEFAULT else f"CHAIN@{self.knob:g}"

    def pack(self, problem: PackingProblem) -> Packing:
        return within_bounds(problem, self._members, _TIGHT)

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

    If capacities differ, such a partition may fit only after others have moved.
    """
    if not integers.capacity_by_consumer:
        return False
    capacity_max = integers.capacity_max
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


_TIGHT = TightPacking(_fewest, fresh_best_fit_decreasing)


def _repaired(integers: IntegerProblem, worth: int | None) -> Members:
    """`worth` is the load that may move to save one consumer; None means no limit."""
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
    """Apply a packing that was computed elsewhere."""
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
    """The lowest empty consumer that can carry the item alone.

    Its home was already tried as a place with free capacity.
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
    """A quick lower bound, to stop early. An oversize partition takes one consumer alone."""
    capacity = integers.capacity_max
    shared = [size for size in integers.sizes if size <= capacity]
    return len(integers.sizes) - len(shared) - (-sum(shared) // capacity)


def _emptying(bench: Workbench, consumer: int) -> tuple[int, int, int]:
    """Sort key: the least cost of emptying; ties: most free capacity, then lowest number."""
    at_home = sum(size for size, item in bench.members[consumer] if bench.home[item] == consumer)
    return at_home, -bench.free[consumer], consumer


def _empty(bench: Workbench, consumer: int, worth: int | None) -> bool:
    """Move all its items elsewhere if that costs at most `worth`; else change nothing."""
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
    """Undo moves that turned out to be unnecessary."""
    sizes = bench.integers.sizes
    strays = [i for i, at in enumerate(bench.at) if bench.home[i] not in {NO_CONSUMER, at}]
    for item in sorted(strays, key=lambda item: (-sizes[item], item)):
        home = bench.home[item]
        if home in bench.free and bench.accepts(item, home, ahead=True):
            bench.lift(item)
            bench.put(item, home)
    bench.close_empty()
