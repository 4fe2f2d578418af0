"""Properties of every packing algorithm on any problem."""

from dataclasses import replace
from fractions import Fraction
from itertools import chain as all_of

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.packing.naive_packing import (
    Choice,
    best_fit_choice,
    first_fit_choice,
    naive_any_fit,
    naive_modified_any_fit,
    next_fit_choice,
    worst_fit_choice,
)
from kit.packing.packing_cases import CAPACITY, problem, problems
from penstock.model import Assignment, TopicPartition
from penstock.packing import ALGORITHMS, PackingAlgorithm, PackingProblem, algorithm_named
from penstock.packing.any_fit import AnyFit
from penstock.packing.chain import ChainPacking
from penstock.packing.lower_bound import consumers_at_least
from penstock.packing.whole_numbers import IntegerProblem

EVERY = (*ALGORITHMS, ChainPacking(0), ChainPacking(0.2), ChainPacking(1))
algorithms = st.sampled_from(EVERY)
quick = settings(max_examples=150, deadline=None)

CHOICES: dict[str, Choice] = {
    "NF": next_fit_choice,
    "FF": first_fit_choice,
    "BF": best_fit_choice,
    "WF": worst_fit_choice,
}


@quick
@given(problems(), algorithms)
def test_every_partition_exactly_once(
    question: PackingProblem, algorithm: PackingAlgorithm
) -> None:
    """Every partition is assigned exactly once, and no consumer is empty."""
    packing = algorithm.pack(question)
    held = list(all_of.from_iterable(packing.assignment.values()))
    assert sorted(held) == sorted(question.load_bytes_per_s)
    assert all(packing.assignment.values())


@quick
@given(st.one_of(problems(), problems(whole=False)), algorithms)
def test_capacity_is_held_or_flagged(question: PackingProblem, algorithm: PackingAlgorithm) -> None:
    """Loads stay within every limit, or the partition is alone, or the consumer is flagged."""
    packing = algorithm.pack(question)
    for consumer, partitions in packing.assignment.items():
        load = sum(Fraction(question.load_bytes_per_s[p]) for p in partitions)
        too_much = load > Fraction(question.capacity_of(consumer))
        too_many = len(partitions) > (question.partitions_per_consumer_max or len(partitions))
        if (too_much or too_many) and len(partitions) > 1:
            assert consumer in packing.overloaded
            assert question.consumers_max is not None
        else:
            assert consumer not in packing.overloaded
        if too_much and len(partitions) == 1:
            assert set(partitions) <= set(packing.oversize)
    if question.consumers_max is not None:
        assert len(packing.assignment) <= question.consumers_max


@quick
@given(problems(), algorithms, st.randoms(use_true_random=False))
def test_same_input_in_any_order_same_answer(
    question: PackingProblem, algorithm: PackingAlgorithm, chance: st.DataObject
) -> None:
    """The order in which partitions and consumers are told does not matter."""
    speeds = list(question.load_bytes_per_s.items())
    held = [(c, list(partitions)) for c, partitions in question.current.items()]
    getattr(chance, "shuffle")(speeds)  # noqa: B009 -- hypothesis types its Random as data
    getattr(chance, "shuffle")(held)  # noqa: B009 -- likewise
    other = replace(question, load_bytes_per_s=dict(speeds), current=Assignment(dict(held)))
    assert algorithm.pack(other) == algorithm.pack(question)


@quick
@given(problems(), algorithms, st.integers(0, 130))
def test_adding_a_partition_never_loses_another(
    question: PackingProblem, algorithm: PackingAlgorithm, size: int
) -> None:
    """After adding a partition every partition is still assigned."""
    new = TopicPartition("clicks", 0)
    more = replace(question, load_bytes_per_s={**question.load_bytes_per_s, new: size})
    read = set(algorithm.pack(more).assignment.owners)
    assert read == {*question.load_bytes_per_s, new}


@quick
@given(problems(bounded=False), st.sampled_from([x for x in ALGORITHMS if isinstance(x, AnyFit)]))
def test_clever_any_fit_equals_naive(question: PackingProblem, algorithm: AnyFit) -> None:
    """The indexed rules choose the same consumers as a plain scan."""
    order = algorithm._order(IntegerProblem.of(question))
    owners = {str(p): int(c) for p, c in question.current.owners.items()}
    speeds = question.load_bytes_per_s
    names = sorted(speeds)
    items = [(str(names[item]), int(speeds[names[item]])) for item in order]
    choice = CHOICES[algorithm.name.removesuffix("D")]
    naive = naive_any_fit(items, owners, CAPACITY, choice)
    clever = algorithm.pack(question).assignment
    assert {c: {str(p) for p in held} for c, held in clever.items()} == naive


@quick
@given(problems(bounded=False), st.sampled_from(["MWF", "MBF", "MWFP", "MBFP"]))
def test_clever_modified_any_fit_equals_naive(question: PackingProblem, name: str) -> None:
    """The four modified algorithms give the same result as their naive versions."""
    owners = {str(p): int(c) for p, c in question.current.owners.items()}
    speeds = question.load_bytes_per_s
    items = [(str(p), int(speeds[p])) for p in sorted(speeds)]
    naive = naive_modified_any_fit(
        items,
        owners,
        CAPACITY,
        worst_fit_choice if "W" in name else best_fit_choice,
        by_fastest_partition=name.endswith("P"),
    )
    clever = algorithm_named(name).pack(question).assignment
    assert {c: {str(p) for p in held} for c, held in clever.items()} == naive


@quick
@given(problems(), st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0]))
def test_nothing_moves_while_nothing_changes(question: PackingProblem, knob: float) -> None:
    """CHAIN changes nothing when it packs its own answer again, even at a maximum."""
    first = ChainPacking(knob).pack(question)
    again = ChainPacking(knob).pack(replace(question, current=first.assignment))
    assert again.assignment == first.assignment


@quick
@given(problems(partitions_max=30, size_max=100, bounded=False))
def test_fewest_is_as_few_as_best_fit_decreasing(question: PackingProblem) -> None:
    """At knob 0 CHAIN uses at most as many consumers as best fit decreasing."""
    fewest = len(ChainPacking(0).pack(question).assignment)
    assert fewest <= len(algorithm_named("BFD").pack(question).assignment)
    assert fewest >= consumers_at_least(question)


@quick
@given(problems(bounded=False), algorithms)
def test_no_algorithm_beats_the_lower_bound(
    question: PackingProblem, algorithm: PackingAlgorithm
) -> None:
    """No algorithm uses fewer consumers than the lower bound."""
    assert len(algorithm.pack(question).assignment) >= consumers_at_least(question)


@pytest.mark.parametrize("algorithm", EVERY, ids=lambda algorithm: algorithm.name)
def test_ties_are_stable(algorithm: PackingAlgorithm) -> None:
    """A thousand equal partitions give the same answer twice, and CHAIN keeps its answer."""
    question = problem([10] * 1000, [0] * 1000)
    first = algorithm.pack(question)
    assert algorithm.pack(question) == first
    if isinstance(algorithm, ChainPacking):
        again = replace(question, current=first.assignment)
        assert algorithm.pack(again).assignment == first.assignment


@quick
@given(problems(size_max=100, bounded=False))
def test_at_knob_1_only_what_must_move_moves(question: PackingProblem) -> None:
    """At knob 1 a consumer within its capacity keeps all its partitions."""
    packing = ChainPacking(1).pack(question)
    for consumer, partitions in question.current.items():
        if sum(question.load_bytes_per_s[p] for p in partitions) in range(1, CAPACITY + 1):
            assert partitions <= packing.assignment[consumer]
