"""Scores, lower bounds and trends on known cases."""

import pytest
from hypothesis import given, settings

from kit.packing.packing_cases import named, problem, problems
from penstock.laboratory.studies.packing.exact import fewest_consumers, gap_to_optimum, least_moved
from penstock.model import Assignment, ConsumerId
from penstock.packing import ALGORITHMS, PackingProblem, algorithm_named
from penstock.packing.lower_bound import consumers_at_least
from penstock.packing.scores import (
    cardinal_bin_scores,
    consumer_hours,
    load_balance,
    moves_between,
    per_hour,
)
from penstock.packing.trend import Trend, forecast, observe

ONE, TWO = ConsumerId(1), ConsumerId(2)


def test_moves_count_what_changed_hands_at_its_new_speed() -> None:
    """Moves count at the new speed; first assignments and deleted partitions do not count."""
    before = Assignment({ONE: [named(0), named(1), named(9)]})
    after = Assignment({ONE: [named(0)], TWO: [named(1), named(2)]})
    moves = moves_between(before, after, {named(0): 5, named(1): 30, named(2): 7})
    assert (moves.partitions, moves.load_bytes_per_s) == (1, 30)
    assert moves.score(100) == pytest.approx(0.3)


def test_cbs_is_measured_against_the_fewest_of_each_run() -> None:
    """CBS is the mean share above the fewest consumers of each run."""
    scores = cardinal_bin_scores({"A": [10, 12], "B": [11, 10]})
    assert scores == {"A": pytest.approx(0.1), "B": pytest.approx(0.05)}


def test_consumer_hours_moves_and_balance() -> None:
    """Consumer-hours, moves per hour and balance have the expected values."""
    assert consumer_hours([2, 4], 1800) == pytest.approx(3)
    assert per_hour(10, 720, 5) == pytest.approx(10)
    assert load_balance([50, 100]) == pytest.approx(0.75)
    assert load_balance([]) == 1


@pytest.mark.parametrize(
    ("sizes", "least"),
    [([], 0), ([0], 1), ([51, 51, 51], 3), ([60, 60, 41, 41], 3), ([150, 10], 2), ([50] * 4, 2)],
)
def test_lower_bound_on_small_cases(sizes: list[int], least: int) -> None:
    """The lower bound is right on small cases."""
    assert consumers_at_least(problem(sizes)) == least


def test_lower_bound_counts_partitions_too() -> None:
    """Five partitions with at most two per consumer need three."""
    assert consumers_at_least(problem([1] * 5, items_max=2)) == 3


@settings(max_examples=25, deadline=None)
@given(problems(partitions_max=9, size_max=100, bounded=False))
def test_bound_and_fewest_enclose_the_exact_optimum(question: PackingProblem) -> None:
    """The bound is at most the optimum, and the optimum at most CHAIN at knob 0."""
    best = fewest_consumers(question)
    ours = algorithm_named("CHAIN@0").pack(question).assignment
    assert best.proved
    assert consumers_at_least(question) <= best.consumers <= len(ours)
    moved = moves_between(question.current, ours, question.load_bytes_per_s)
    assert least_moved(question, len(ours)).moved <= moved.load_bytes_per_s


def test_gap_to_the_exact_optimum_is_within_the_aim() -> None:
    """CHAIN uses at most 2 % more consumers and moves at most 15 % more than the optimum."""
    gap = gap_to_optimum(seeds=(204, 207), measurements=4)
    assert gap.proved == gap.cases == 12
    (knob, consumers, _), *_ = gap.by_knob
    assert knob == 0
    assert consumers <= 0.02
    assert all(moved <= 0.15 for _, _, moved in gap.by_knob)


def test_a_trend_is_learnt_and_followed() -> None:
    """A speed rising by 1 per second is expected to continue, and never falls below 0."""
    trend = Trend()
    for second in range(0, 600, 5):
        trend = observe(trend, {named(0): float(second), named(1): 600.0 - second}, second * 1_000)
    ahead = forecast(trend, 60_000)
    assert ahead[named(0)] == pytest.approx(595 + 60, rel=0.01)
    assert forecast(trend, 10**9)[named(1)] == 0


def test_a_trend_needs_two_looks_and_time() -> None:
    """One measurement, or two at the same time, give no trend."""
    trend = observe(Trend(), {named(0): 5.0}, 0)
    assert forecast(trend, 100) == {named(0): 5.0}
    assert forecast(observe(trend, {named(0): 50.0}, 0), 100) == {named(0): 50.0}


def test_names_are_found_in_any_case_and_knobs_after_an_at() -> None:
    """Names match in any case, and `chain@0.25` sets the knob."""
    assert algorithm_named("mwf").name == "MWF"
    assert algorithm_named("chain@0.25").name == "CHAIN@0.25"
    assert algorithm_named("CHAIN", 0.75).name == "CHAIN@0.75"
    assert algorithm_named("Chain").name == "CHAIN"
    assert [a.name for a in ALGORITHMS][:3] == ["CHAIN", "NF", "NFD"]


@pytest.mark.parametrize(
    ("text", "explanation"),
    [
        ("XYZ", "no packing algorithm 'XYZ'; there are CHAIN, NF"),
        ("", "no packing algorithm"),
        ("MWF@0.3", "MWF has no knob"),
        ("CHAIN@x", "a knob is a number from 0 to 1"),
        ("CHAIN@2", "a knob is a number from 0 to 1"),
        ("CHAIN@nan", "a knob is a number from 0 to 1"),
    ],
)
def test_unknown_algorithms_are_one_clear_error(text: str, explanation: str) -> None:
    """An unknown algorithm is an error that lists the known ones."""
    with pytest.raises(ValueError, match=explanation):
        algorithm_named(text)
