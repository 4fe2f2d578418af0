"""The twelve published algorithms: by hand on small cases, by score on the published walk."""

import pytest

from kit.packing.packing_cases import numbers, problem
from kit.packing.published_streams import mean_scores
from penstock.laboratory.studies.packing.published import PUBLISHED_SCORES
from penstock.packing import PUBLISHED, algorithm_named

DELTA, SEEDS = 25, (31, 32)
NAMES = tuple(algorithm.name for algorithm in PUBLISHED)


@pytest.mark.campaign
@pytest.mark.parametrize("name", NAMES)
def test_scores_come_close_to_the_published_table(name: str) -> None:
    """R within 5 % and CBS within 0.01 on seeds of our own; the study does it at full length."""
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
def test_each_rule_on_a_case_that_tells_them_apart(
    name: str, sizes: list[int], expected: dict[int, set[int]]
) -> None:
    """Only the last opened; the lowest number; the least room; the most room."""
    assert numbers(algorithm_named(name).pack(problem(sizes))) == expected


def test_a_new_consumer_is_the_partitions_own() -> None:
    """Opening a consumer reopens the one that reads the partition now, if it is not open yet."""
    packing = algorithm_named("BFD").pack(problem([90, 80, 70], [7, 7, 3]))
    assert numbers(packing) == {7: {0}, 1: {1}, 3: {2}}


def test_next_fit_starts_with_the_lowest_consumer_open() -> None:
    """As published: whoever the first partition belongs to, it goes to consumer 1."""
    assert numbers(algorithm_named("NFD").pack(problem([90, 80], [5, 5]))) == {1: {0}, 5: {1}}


def test_modified_fits_keep_what_fits_and_pool_the_rest() -> None:
    """An overloaded consumer keeps its biggest; the first misfit and all after it are pooled."""
    packing = algorithm_named("MWF").pack(problem([60, 50, 30, 90], [1, 1, 1, 2]))
    assert numbers(packing) == {1: {0}, 2: {3}, 3: {1, 2}}
