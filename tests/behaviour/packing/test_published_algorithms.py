"""The twelve published algorithms: on small cases, and by score on the published walk."""

import pytest

from kit.packing.packing_cases import numbers, problem
from kit.packing.published_streams import mean_scores
from penstock.laboratory.studies.packing.published import PUBLISHED_SCORES
from penstock.packing import PUBLISHED, algorithm_named

DELTA, SEEDS = 25, (31, 32)
NAMES = tuple(algorithm.name for algorithm in PUBLISHED)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_scores_come_close_to_the_published_table(name: str) -> None:
    """R is within 5 % and CBS within 0.01 of the published scores."""
    cbs, r = mean_scores(NAMES, DELTA, SEEDS)[name]
    there = PUBLISHED_SCORES[name, DELTA]
    assert cbs == pytest.approx(there.cbs, abs=0.01)
    assert r == pytest.approx(there.r, rel=0.05)


@pytest.mark.parametrize(
    ("name", "sizes", "expected"),
    [
        ("NFD", [60, 50, 45, 30, 5], {1: {0}, 2: {1, 2}, 3: {3, 4}}),
        ("FFD", [60, 50, 45, 30, 5], {1: {0, 3, 4}, 2: {1, 2}}),
        ("BFD", [60, 50, 45, 30, 5], {1: {0, 3}, 2: {1, 2, 4}}),
        ("WFD", [60, 50, 45, 30, 5], {1: {0, 3, 4}, 2: {1, 2}}),
        ("FFD", [60, 55, 10], {1: {0, 2}, 2: {1}}),
        ("WFD", [60, 55, 10], {1: {0}, 2: {1, 2}}),
    ],
)
def test_each_rule_chooses_differently(
    name: str, sizes: list[int], expected: dict[int, set[int]]
) -> None:
    """Next, first, best and worst fit choose differently on the same case."""
    assert numbers(algorithm_named(name).pack(problem(sizes))) == expected


def test_a_new_consumer_is_the_partitions_own() -> None:
    """A new consumer is the partition's present one, if that is not open yet."""
    packing = algorithm_named("BFD").pack(problem([90, 80, 70], [7, 7, 3]))
    assert numbers(packing) == {7: {0}, 1: {1}, 3: {2}}


def test_next_fit_starts_with_the_lowest_consumer_open() -> None:
    """Next fit puts the first partition on consumer 1, whatever its owner."""
    assert numbers(algorithm_named("NFD").pack(problem([90, 80], [5, 5]))) == {1: {0}, 5: {1}}


def test_modified_fits_keep_what_fits_and_pool_the_rest() -> None:
    """An overloaded consumer keeps its biggest items; from the first misfit on, all move."""
    packing = algorithm_named("MWF").pack(problem([60, 50, 30, 90], [1, 1, 1, 2]))
    assert numbers(packing) == {1: {0}, 2: {3}, 3: {1, 2}}
