"""The count of what the producers were told, against the ids in the lake."""

import numpy as np
import pytest

from penstock.laboratory.campaign.deliveries import (
    DeliveryLog,
    Numbers,
    Outcome,
    check_deliveries,
)


def numbers(*found: int) -> Numbers:
    return np.array(found, dtype=np.int64)


def told_of(lane: str, *outcomes: Outcome) -> dict[str, bytes]:
    return {lane: bytes(outcomes)}


COMMITTED, ABORTED, UNKNOWN = Outcome.COMMITTED, Outcome.ABORTED, Outcome.UNKNOWN


def test_a_lake_with_every_committed_record_once_is_exact() -> None:
    """Aborted records are absent, and one of unknown fate may be there or not."""
    told = told_of("a-0", COMMITTED, ABORTED, UNKNOWN, UNKNOWN, COMMITTED)
    found = check_deliveries(told, {"a-0": numbers(4, 0, 2)})
    assert found.is_exact
    assert (found.committed, found.aborted, found.unknown) == (2, 1, 2)


@pytest.mark.parametrize(
    ("in_lake", "fault", "count"),
    [
        ({"a-0": numbers(0)}, "lost", 1),
        ({}, "lost", 2),
        ({"a-0": numbers(0, 2, 2, 2)}, "doubled", 2),
        ({"a-0": numbers(0, 2, 3, 3)}, "doubled", 1),
        ({"a-0": numbers(0, 1, 2)}, "aborted_in_lake", 1),
        ({"a-0": numbers(0, 2, 9, 9)}, "doubled", 1),
        ({"a-0": numbers(0, 2), "b-0": numbers(0, 0)}, "foreign", 2),
    ],
)
def test_every_kind_of_fault_is_found(in_lake: dict[str, Numbers], fault: str, count: int) -> None:
    """A record too few, too many, aborted or of nobody is counted under its own name only."""
    found = check_deliveries(told_of("a-0", COMMITTED, ABORTED, COMMITTED, UNKNOWN), in_lake)
    faults = ("lost", "doubled", "aborted_in_lake", "foreign")
    assert {name: getattr(found, name) for name in faults} == dict.fromkeys(faults, 0) | {
        fault: count
    }
    assert not found.is_exact


def test_a_record_that_its_producer_heard_nothing_of_is_of_unknown_fate() -> None:
    """The last records of a producer may be in the lake without a report, once."""
    found = check_deliveries(told_of("a-0", COMMITTED), {"a-0": numbers(0, 2)})
    assert found.is_exact
    assert (found.committed, found.unknown) == (1, 2)


def test_the_first_lost_record_is_named() -> None:
    """Its id leads to it."""
    found = check_deliveries(told_of("a-0", COMMITTED, COMMITTED), {"a-0": numbers(0)})
    assert found.first_lost == "a-0-1"


def test_records_of_a_deleted_topic_may_be_missing_and_never_double() -> None:
    """What was not carried before the deletion is gone; what was carried is there once."""
    told = told_of("a-0", COMMITTED, COMMITTED, COMMITTED)
    found = check_deliveries(told, {"a-0": numbers(0, 0)}, {"a-0"})
    assert (found.lost, found.excused, found.doubled) == (0, 2, 1)


def test_the_log_keeps_the_last_outcome_and_fills_gaps_with_unknown() -> None:
    """Reports come in any order; a record that nobody reported is of unknown fate."""
    log = DeliveryLog()
    log.note("a-0", 3, COMMITTED)
    log.note("a-0", 1, UNKNOWN)
    log.note("a-0", 1, COMMITTED)
    log.note_range("b-0", 0, 2, ABORTED)
    log.note_range("b-0", 2, 5, COMMITTED)
    log.note_range("b-0", 5, 5, COMMITTED)
    assert list(log.lanes["a-0"]) == [UNKNOWN, COMMITTED, UNKNOWN, COMMITTED]
    assert list(log.lanes["b-0"]) == [ABORTED] * 2 + [COMMITTED] * 3
    assert log.count(COMMITTED) == 5
