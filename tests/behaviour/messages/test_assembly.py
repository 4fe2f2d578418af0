"""Long lists are split into parts and joined completely, or not at all."""

import random

import pytest

from kit.controller.messages import EXAMPLES
from penstock.messages import (
    ConsumerReport,
    PartAssembler,
    PartitionSpeed,
    StateQueryResponse,
    WriteSpeedMeasurement,
    assembly,
    cut,
    in_parts,
    joined,
)
from penstock.model.epoch import INTEGER_MAX


def measurement(sequence: int, partitions: int, incarnation: int = 1) -> WriteSpeedMeasurement:
    return WriteSpeedMeasurement.model_construct(
        monitor_incarnation=incarnation,
        sequence=sequence,
        published_at_unix_ms=0,
        age_ms=0,
        window_ms=0,
        partitions=tuple(PartitionSpeed(topic="t", partition=n) for n in range(partitions)),
    )


def test_every_piece_is_within_the_limit_and_nothing_is_lost() -> None:
    """Splitting keeps order and content; an empty list gives one empty piece."""
    assert cut([1, 2, 3, 4, 5], rows_max=2) == ((1, 2), (3, 4), (5,))
    assert cut([], rows_max=2) == ((),)


def test_parts_in_any_order_make_the_whole() -> None:
    """The last missing part completes the list, in any order and only once."""
    parts = list(in_parts(measurement(1, 2_500), "partitions"))
    assert [p.parts for p in parts] == [3, 3, 3]
    assembler = PartAssembler[WriteSpeedMeasurement]()
    shuffled = [*parts, *parts]
    random.Random(4).shuffle(shuffled)
    wholes = [whole for part in shuffled if (whole := assembler.add(part)) is not None]
    assert wholes == [tuple(parts)]
    assert sum(len(p.partitions) for p in wholes[0]) == 2_500


def test_only_the_newest_is_put_together() -> None:
    """A part of a newer list discards the older one; late parts of an older list are dropped."""
    old = list(in_parts(measurement(1, 2_000), "partitions"))
    new = list(in_parts(measurement(2, 2_000), "partitions"))
    assembler = PartAssembler[WriteSpeedMeasurement]()
    assert assembler.add(old[0]) is None
    assert assembler.add(new[0]) is None
    assert assembler.add(old[1]) is None
    assert assembler.add(new[1]) == tuple(new)
    restarted = measurement(1, 1, incarnation=2)
    assert assembler.add(next(in_parts(restarted, "partitions"))) is not None


def test_a_second_monitor_that_came_and_went_silences_nobody() -> None:
    """The first monitor is heard again after a younger one has published, and also between."""
    assembler = PartAssembler[WriteSpeedMeasurement]()

    def heard(sequence: int, incarnation: int) -> bool:
        parts = in_parts(measurement(sequence, 1, incarnation), "partitions")
        return assembler.add(next(parts)) is not None

    assert heard(7, incarnation=100)
    assert heard(1, incarnation=200)
    assert heard(8, incarnation=100)
    assert heard(2, incarnation=200)
    assert heard(9, incarnation=100)
    assert not heard(9, incarnation=100)


def test_monitors_that_came_and_went_are_forgotten() -> None:
    """The newest ones are remembered: a monitor that restarts often is always heard."""
    assembler = PartAssembler[WriteSpeedMeasurement]()
    for incarnation in range(1, 3 * assembly.MONITORS_MAX):
        one = next(in_parts(measurement(1, 1, incarnation), "partitions"))
        assert assembler.add(one) is not None
        assert assembler.add(one) is None


def test_parts_that_disagree_on_their_number_are_no_whole() -> None:
    """Parts that disagree on their number are never mixed."""
    assembler = PartAssembler[WriteSpeedMeasurement]()
    two, three = (list(in_parts(measurement(1, rows), "partitions")) for rows in (2_000, 3_000))
    assert assembler.add(three[0]) is None
    assert assembler.add(two[1]) is None


def test_each_consumer_has_its_own_lists() -> None:
    """Parts of several consumers are kept apart."""
    report = next(m for m in EXAMPLES if isinstance(m, ConsumerReport))
    reports = PartAssembler[ConsumerReport]()
    first = report.model_copy(update={"parts": 2})
    other = report.model_copy(update={"consumer_id": 9})
    assert reports.add(first) is None
    assert reports.add(other) == (other,)
    assert reports.add(first.model_copy(update={"part": 2})) is not None
    response = next(m for m in EXAMPLES if isinstance(m, StateQueryResponse))
    assert PartAssembler[StateQueryResponse]().add(response) == (response,)


def test_the_number_of_senders_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood of invented senders does not fill the memory, and keeps nobody from being heard."""
    monkeypatch.setattr(assembly, "SENDERS_MAX", 2)
    report = next(m for m in EXAMPLES if isinstance(m, ConsumerReport))
    reports = PartAssembler[ConsumerReport]()
    for number in range(1, 9):
        assert reports.add(report.model_copy(update={"consumer_id": number})) is not None
        assert reports.add(report.model_copy(update={"incarnation": 7, "parts": 2})) is None
    assert (len(reports._newest), len(reports._parts)) == (2, 1)


@pytest.mark.parametrize("parts", [1, 2])
def test_a_forged_part_of_a_later_incarnation_silences_no_consumer(parts: int) -> None:
    """Whether its list is whole or not; the core judges the incarnation."""
    report = next(m for m in EXAMPLES if isinstance(m, ConsumerReport))
    reports = PartAssembler[ConsumerReport]()
    highest = {"incarnation": INTEGER_MAX, "report_number": INTEGER_MAX, "parts": parts}
    assert (reports.add(report.model_copy(update=highest)) is None) == (parts == 2)
    assert reports.add(report) == (report,)
    assert reports.add(report) is None, "once"


def test_parts_of_a_report_are_joined_again() -> None:
    """Every part has its own sequence number; the joined report has the last one."""
    report = next(m for m in EXAMPLES if isinstance(m, ConsumerReport))
    long = report.model_copy(update={"owned": report.owned * 2_500})
    parts = tuple(in_parts(long, "owned"))
    assert [part.sequence for part in parts] == [11, 12, 13]
    whole = joined(parts, "owned")
    assert len(whole.owned) == 2_500
    assert (whole.sequence, whole.part, whole.parts) == (13, 1, 1)
