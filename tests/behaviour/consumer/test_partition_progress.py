"""What the core remembers of each partition, and what it reports of it."""

from dataclasses import replace

import pytest

from kit.consumer.consumer_script import USUAL
from penstock.consumer.core.inputs import StageTimes
from penstock.consumer.core.partition_progress import (
    PartitionProgress,
    WorkDone,
    behind,
    reported,
    retry_wait_ms,
    waiting,
)
from penstock.model import Epoch, TopicPartition

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
NEW = PartitionProgress("id", None)
AT_10 = PartitionProgress("id", 10)


def test_waits_grow_to_a_bound() -> None:
    """They double from the first wait of the settings, and never pass the longest."""
    assert [retry_wait_ms(USUAL, n) for n in (1, 2, 3, 1_000)] == [500, 1_000, 2_000, 15_000]
    other = replace(USUAL, retry_first_ms=70, retry_longest_ms=200)
    assert [retry_wait_ms(other, n) for n in (1, 2, 3)] == [70, 140, 200]


def test_only_a_partition_with_a_known_end_that_is_settled_can_be_read() -> None:
    """An unknown end, an unknown outcome or a pause keeps a partition out of the plan."""
    readable = {A: 0, B: 10}
    assert waiting({A: NEW, B: AT_10}, readable, None, 0) == {}
    a, b = replace(NEW, end_offset=5), replace(AT_10, end_offset=30)
    found = waiting({A: a, B: b}, readable, None, 0)
    assert {one: wait.offsets for one, wait in found.items()} == {A: 5, B: 20}
    b = b.put_off(USUAL, 100_000)
    assert set(waiting({A: a, B: b}, readable, None, 1_000_000)) == {A}
    b = b.settled(20)
    assert set(waiting({A: a, B: b}, {A: 0, B: 20}, None, 100_100)) == {A}
    assert set(waiting({A: a, B: b}, {A: 0, B: 20}, None, 100_600)) == {A, B}
    assert b.ledger_offset == 20


def test_reading_goes_on_after_a_hole() -> None:
    """The start moves; the ledger's offset does not, until the range is carried."""
    row = replace(AT_10, end_offset=30, hole_end=25)
    assert waiting({B: row}, {B: 10}, None, 0)[B].start == 25
    assert row.ledger_offset == 10
    row = row.carried(25, 30, 500.0)
    assert row.ledger_offset == 30
    assert waiting({B: row}, {B: 30}, None, 0)[B].offsets == 0


def test_sizes_come_from_the_log_then_from_records_then_from_a_guess() -> None:
    """The monitor's unit counts first."""
    assert NEW.size_of_offset(None) == 1000.0
    assert NEW.size_of_offset(88.0) == 100.0
    assert replace(NEW, log_bytes_per_offset=40.0).size_of_offset(88.0) == 40.0


def test_a_partition_reports_its_speed() -> None:
    """Speeds are those of the period, and unknown while no time has passed."""
    row = NEW.carried(0, 20, 1_000.0)
    found = reported(A, Epoch(1, 2), row, 2.0)
    assert found.records_per_s == pytest.approx(10)
    assert found.read_speed_log_bytes_per_s == pytest.approx(500)
    assert reported(A, Epoch(1, 2), row, 0.0).records_per_s is None


def test_work_adds_up() -> None:
    """Batches, records, bytes and times of several batches."""
    one = WorkDone(1, 5, 60, 70.0, StageTimes(0.001, 0.002, 0.003, 0.0126))
    total = (one + one).measurement()
    assert (total.batches, total.records, total.decoded_bytes, total.log_bytes) == (2, 10, 120, 140)
    assert (total.read_ms, total.transform_ms, total.write_ms, total.commit_ms) == (2, 4, 6, 25)


def test_the_backlog_is_known_only_after_a_look() -> None:
    """Records and bytes that wait."""
    assert behind({A: NEW, B: AT_10}, {A: 0, B: 10}, None) is None
    row = replace(AT_10, end_offset=40, log_bytes_per_offset=10.0)
    assert behind({A: NEW, B: row}, {A: 0, B: 10}, None) == (30, 300)
