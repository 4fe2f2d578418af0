"""Keeps a packing within the maximum number of consumers, as little overloaded as possible.

If an algorithm's answer uses few enough consumers, it stands. Otherwise all capacities are
stretched by the same factor, the smallest that bisection finds, until the answer fits (the multifit
idea). Overloaded consumers are flagged, never an error. A present assignment close to the best one
found is kept, so constant speeds move nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

from penstock.packing.problem import Packing, PackingProblem
from penstock.packing.whole_numbers import NO_CONSUMER, IntegerProblem

Members = Mapping[int, list[int]]

_BISECTIONS = 10
_ROUNDS_MAX = 8
_GOOD_ENOUGH = Fraction(102, 100)


def within_bounds(
    problem: PackingProblem,
    pack: Callable[[IntegerProblem], Members],
    pack_tightly: Callable[[IntegerProblem], Members] | None = None,
) -> Packing:
    """Pack with at most `consumers_max` consumers.

    `pack_tightly` replaces `pack` when that maximum binds, for algorithms that may use more
    consumers than they need.
    """
    integers = IntegerProblem.of(problem)
    members = pack(integers)
    if problem.consumers_max is None or _count(members) <= problem.consumers_max:
        return integers.answer(members)
    return integers.answer(_settled(problem, problem.consumers_max, pack_tightly or pack))


def _settled(
    problem: PackingProblem, consumers_max: int, pack: Callable[[IntegerProblem], Members]
) -> Members:
    """Pack again from each answer until it is stable, so that the next run changes nothing."""
    integers = IntegerProblem.of(problem)
    rounds, is_settled = 0, False
    while rounds < _ROUNDS_MAX and not is_settled:
        rounds += 1
        members = pack(integers)
        if _count(members) > consumers_max:
            members = _least_overloaded(problem, integers, consumers_max, pack)
        home = _home(integers, members)
        is_settled = home == integers.home
        problem = replace(problem, current=integers.answer(members).assignment)
        integers = replace(integers, home=home)
    return members


def _least_overloaded(
    problem: PackingProblem,
    integers: IntegerProblem,
    consumers_max: int,
    pack: Callable[[IntegerProblem], Members],
) -> Members:
    large_enough = _with_capacity_for_all(problem, consumers_max)

    def stretched(stretch: Fraction) -> Members | None:
        members = pack(IntegerProblem.of(large_enough, stretch))
        return members if _count(members) <= consumers_max else None

    least, everything = _stretch_range(integers, consumers_max)
    low, high = least, 2 * least
    best = stretched(high)
    while best is None and high < everything:
        low, high = high, 2 * high
        best = stretched(high)
    assert best is not None  # noqa: S101 -- this stretch lets one consumer carry everything
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        found = stretched(middle)
        if found is None:
            low = middle
        else:
            high, best = middle, found
    now = integers.members_now()
    complete = NO_CONSUMER not in integers.home and _count(now) <= consumers_max
    if complete and _overload(integers, now) <= _overload(integers, best) * _GOOD_ENOUGH:
        return now
    return best


def _stretch_range(integers: IntegerProblem, consumers_max: int) -> tuple[Fraction, Fraction]:
    """The smallest possible stretch, and one at which any consumer can carry everything."""
    capacities = (integers.capacity, *integers.capacity_by_consumer.values())
    load = sum(integers.sizes)
    least = max(Fraction(1), Fraction(load, consumers_max * max(capacities)))
    return least, max(Fraction(1), Fraction(load, min(capacities)))


def _with_capacity_for_all(problem: PackingProblem, consumers_max: int) -> PackingProblem:
    """If both maxima together cannot hold all partitions, the one per consumer gives way."""
    least = -(-len(problem.load_bytes_per_s) // consumers_max)
    limit = problem.partitions_per_consumer_max
    if limit is None or limit >= least:
        return problem
    return replace(problem, partitions_per_consumer_max=least)


def _home(integers: IntegerProblem, members: Members) -> tuple[int, ...]:
    owner = {item: consumer for consumer, items in members.items() for item in items}
    return tuple(owner[item] for item in range(len(integers.sizes)))


def _count(members: Members) -> int:
    return sum(1 for items in members.values() if items)


def _overload(integers: IntegerProblem, members: Members) -> Fraction:
    return max(
        Fraction(sum(integers.sizes[item] for item in items), integers.capacity_of(consumer))
        for consumer, items in members.items()
    )
