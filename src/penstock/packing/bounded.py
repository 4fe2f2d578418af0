"""When a maximum number of consumers binds: the least overloaded packing.

An algorithm's own answer stands if it uses few enough consumers. Otherwise all capacities are
stretched alike, as little as bisection finds is needed, until the algorithm's answer does (the
multifit idea). The stretched answer is flagged, never an error. An assignment that already is
within a step of the best found is left alone, so constant speeds move nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction

from penstock.packing.problem import Packing, PackingProblem
from penstock.packing.whole_numbers import NOBODY, Tally

Members = Mapping[int, list[int]]

_BISECTIONS = 10
_ROUNDS_MAX = 8
_GOOD_ENOUGH = Fraction(102, 100)


def within_bounds(
    problem: PackingProblem,
    pack: Callable[[Tally], Members],
    pack_tightly: Callable[[Tally], Members] | None = None,
) -> Packing:
    """The answer of `pack`, with at most `consumers_max` consumers.

    `pack_tightly` is used when that bound binds, by algorithms that use more consumers than they
    need when they may.
    """
    tally = Tally.of(problem)
    members = pack(tally)
    if problem.consumers_max is None or _count(members) <= problem.consumers_max:
        return tally.answer(members)
    return tally.answer(_settled(problem, problem.consumers_max, pack_tightly or pack))


def _settled(
    problem: PackingProblem, consumers_max: int, pack: Callable[[Tally], Members]
) -> Members:
    """Packed again from each answer until it stays, so that the next run leaves it alone."""
    tally = Tally.of(problem)
    rounds, is_settled = 0, False
    while rounds < _ROUNDS_MAX and not is_settled:
        rounds += 1
        members = pack(tally)
        if _count(members) > consumers_max:
            members = _least_overloaded(problem, tally, consumers_max, pack)
        home = _home(tally, members)
        is_settled = home == tally.home
        problem = replace(problem, current=tally.answer(members).assignment)
        tally = replace(tally, home=home)
    return members


def _least_overloaded(
    problem: PackingProblem, tally: Tally, consumers_max: int, pack: Callable[[Tally], Members]
) -> Members:
    large_enough = _with_capacity_for_all(problem, consumers_max)

    def stretched(stretch: Fraction) -> Members | None:
        members = pack(Tally.of(large_enough, stretch))
        return members if _count(members) <= consumers_max else None

    least, everything = _stretch_range(tally, consumers_max)
    low, high = least, 2 * least
    best = stretched(high)
    while best is None and high < everything:
        low, high = high, 2 * high
        best = stretched(high)
    assert best is not None  # noqa: S101 -- with all on any one consumer, any fit needs no other
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        found = stretched(middle)
        if found is None:
            low = middle
        else:
            high, best = middle, found
    now = tally.members_now()
    complete = NOBODY not in tally.home and _count(now) <= consumers_max
    if complete and _overload(tally, now) <= _overload(tally, best) * _GOOD_ENOUGH:
        return now
    return best


def _stretch_range(tally: Tally, consumers_max: int) -> tuple[Fraction, Fraction]:
    """No less can do; this much lets any one consumer carry everything."""
    capacities = (tally.capacity, *tally.capacity_by_consumer.values())
    load = sum(tally.sizes)
    least = max(Fraction(1), Fraction(load, consumers_max * max(capacities)))
    return least, max(Fraction(1), Fraction(load, min(capacities)))


def _with_capacity_for_all(problem: PackingProblem, consumers_max: int) -> PackingProblem:
    """If both maxima together cannot hold all partitions, the one per consumer gives way."""
    least = -(-len(problem.load_bytes_per_s) // consumers_max)
    limit = problem.partitions_per_consumer_max
    if limit is None or limit >= least:
        return problem
    return replace(problem, partitions_per_consumer_max=least)


def _home(tally: Tally, members: Members) -> tuple[int, ...]:
    owner = {item: consumer for consumer, items in members.items() for item in items}
    return tuple(owner[item] for item in range(len(tally.sizes)))


def _count(members: Members) -> int:
    return sum(1 for items in members.values() if items)


def _overload(tally: Tally, members: Members) -> Fraction:
    return max(
        Fraction(sum(tally.sizes[item] for item in items), tally.capacity_of(consumer))
        for consumer, items in members.items()
    )
