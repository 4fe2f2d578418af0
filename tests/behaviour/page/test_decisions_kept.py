"""Decisions that the page has seen, numbered."""

import re
from typing import Any

import pytest

from penstock.page.core.decisions_kept import (
    DecisionsKept,
    counts_by_code,
    kind_of,
    naming_consumer,
    naming_partition,
)


def told(
    code: str, why: str, age_ms: int, *, times: int = 1, first_age_ms: int | None = None
) -> Any:
    return {
        "code": code,
        "explanation": why,
        "plan": 1,
        "moves": 0,
        "moved_bytes_per_s": 0.0,
        "age_ms": age_ms,
        "times": times,
        "first_age_ms": age_ms if first_age_ms is None else first_age_ms,
    }


def test_each_decision_is_new_once() -> None:
    """Also when the clocks differ a little, and when the snapshot has dropped it."""
    kept = DecisionsKept()
    first = told("plan_made", "a", 1_000)
    assert [one.number for one in kept.add([first], 10_000)] == [1]
    assert kept.add([told("plan_made", "a", 2_000)], 11_040) == []
    assert kept.add([told("plan_made", "a", 2_000), told("plan_done", "b", 0)], 11_000)
    assert [one.sentence for one in kept] == ["a", "b"]
    assert kept.add([told("plan_made", "a", 0)], 60_000)[0].number == 3
    assert [one.number for one in kept.since_number(1)] == [2, 3]


def test_a_repetition_keeps_its_number() -> None:
    """With the newest sentence, the newest time and the count."""
    kept = DecisionsKept()
    kept.add([told("maximum_binds", "8 of 9", 0)], 1_000)
    new = kept.add([told("maximum_binds", "8 of 10", 0, times=2, first_age_ms=5_000)], 6_000)
    assert new == []
    only = next(iter(kept))
    assert (only.times, only.sentence, only.at_unix_ms) == (2, "8 of 10", 6_000)
    assert only.first_unix_ms == 1_000
    assert counts_by_code(kept) == {"maximum_binds": 2}


def test_two_at_the_same_time_are_two() -> None:
    """Two consumers may be created in one moment."""
    kept = DecisionsKept()
    pair = [told("consumer_created", f"consumer {one} is started", 0) for one in (1, 2)]
    assert len(kept.add(pair, 1_000)) == 2
    later = [{**one, "age_ms": 500, "first_age_ms": 500} for one in pair]
    assert kept.add([*later, told("plan_done", "done", 0)], 1_500)[0].code == "plan_done"


def test_the_oldest_are_dropped() -> None:
    """The newest stay."""
    kept = DecisionsKept(kept_max=2)
    for number in range(4):
        kept.add([told("plan_made", str(number), 0)], number * 10_000)
    assert [one.sentence for one in kept] == ["2", "3"]


def test_found_by_code_time_and_name() -> None:
    """Newest first."""
    kept = DecisionsKept()
    kept.add([told("plan_made", "a moves", 9_000), told("plan_done", "b", 0)], 10_000)
    assert [one.code for one in kept.found()] == ["plan_done", "plan_made"]
    assert [one.code for one in kept.found(codes=frozenset({"plan_made"}))] == ["plan_made"]
    assert [one.code for one in kept.found(since_unix_ms=5_000)] == ["plan_done"]
    assert [one.code for one in kept.found(pattern="moves")] == ["plan_made"]


@pytest.mark.parametrize(
    ("sentence", "is_named"),
    [
        ("orders-3 is stopped", True),
        ("nobody reads a-1, orders-3 and b-2", True),
        ("orders-3: cannot be decoded", True),
        ("my-orders-3 is stopped", False),
        ("orders-33 is stopped", False),
        ("x.orders-3 is stopped", False),
    ],
)
def test_a_partition_is_named(sentence: str, *, is_named: bool) -> None:
    """And no other whose name contains it."""
    assert bool(re.search(naming_partition("orders", 3), sentence)) == is_named


@pytest.mark.parametrize(
    ("sentence", "is_named"),
    [
        ("consumer 3 has been silent for 6 s", True),
        ("consumers 1, 2 and 3 are over capacity", True),
        ("consumers 3, 4", True),
        ("consumer 33 is started", False),
        ("consumer 1 has 3 partitions", False),
    ],
)
def test_a_consumer_is_named(sentence: str, *, is_named: bool) -> None:
    """Alone or in a list."""
    assert bool(re.search(naming_consumer(3), sentence)) == is_named


def test_kinds() -> None:
    """What a mark on a time line stands for."""
    kinds = {
        "plan_made": "move",
        "consumer_created": "start",
        "consumer_removed": "end",
        "consumer_lost": "fault",
        "plan_done": "note",
    }
    assert {code: kind_of(code) for code in kinds} == kinds


def test_a_plan_is_told_without_codes_and_counts_of_nothing() -> None:
    """As `penstock history` tells it, also when it is told again."""
    explanation = (
        "plan 2 (unread_partition): no consumer reads orders-0; 1 partition on 1 consumer, "
        "0 moves of 0 B/s, 1 start, 1 to create, 0 to empty"
    )
    kept = DecisionsKept()
    kept.add([told("plan_made", explanation, 0)], 10_000)
    kept.add([told("plan_made", explanation, 1_000), told("plan_done", "b", 0)], 11_000)
    (plan,) = [one for one in kept if one.code == "plan_made"]
    assert plan.sentence == (
        "plan 2: no consumer reads orders-0; 1 partition on 1 consumer, 1 partition to start, "
        "1 consumer to create"
    )


def test_a_decision_that_came_again_is_among_the_newest() -> None:
    """It keeps its number, and its place is that of its last time."""
    kept = DecisionsKept()
    kept.add([told("consumer_restarted", "a", 0), told("plan_done", "b", 0)], 10_000)
    again = told("consumer_restarted", "a", 0, times=2, first_age_ms=50_000)
    kept.add([told("plan_done", "b", 50_000), again], 60_000)
    assert [(one.number, one.times) for one in kept.found()] == [(1, 2), (2, 1)]
