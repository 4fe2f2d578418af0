"""What the process remembers of each partition, and what it reports of it."""

import pytest

from penstock.consumer.core.partition_progress import RETRY_MAX_S, ProgressTable, retry_wait_s
from penstock.messages import StopReason
from penstock.model import Epoch, TopicPartition

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


def opened() -> ProgressTable:
    progress = ProgressTable()
    progress.add(A, "id", None)
    progress.add(B, "id", 10)
    return progress


def test_waits_grow_to_a_bound() -> None:
    """Half a second, a second, two, and never more than the bound."""
    assert [retry_wait_s(n) for n in (1, 2, 3)] == [0.5, 1.0, 2.0]
    assert retry_wait_s(1_000) == RETRY_MAX_S


def test_only_what_was_looked_at_and_is_settled_can_be_read() -> None:
    """An unknown end, an unknown outcome or a pause keeps a partition out of the plan."""
    progress = opened()
    assert progress.waiting({A: 0, B: 10}, 0.0) == {}
    progress.rows[A].end_offset = 5
    progress.rows[B].end_offset = 30
    assert {one: wait.offsets for one, wait in progress.waiting({A: 0, B: 10}, 0.0).items()} == {
        A: 5,
        B: 20,
    }
    progress.put_off(B, 100.0, is_unsettled=True)
    assert set(progress.waiting({A: 0, B: 10}, 1000.0)) == {A}
    progress.settle(B, 20)
    assert set(progress.waiting({A: 0, B: 20}, 100.1)) == {A}
    assert set(progress.waiting({A: 0, B: 20}, 100.6)) == {A, B}
    assert progress.rows[B].ledger_offset == 20


def test_reading_goes_on_behind_a_hole() -> None:
    """The start moves, the ledger's offset does not, until the range is carried."""
    progress = opened()
    progress.rows[B].end_offset = 30
    progress.rows[B].hole_end = 25
    assert progress.waiting({B: 10}, 0.0)[B].start == 25
    assert progress.rows[B].ledger_offset == 10
    progress.carried(B, 25, 30)
    assert progress.rows[B].ledger_offset == 30
    assert progress.waiting({B: 30}, 0.0)[B].offsets == 0


def test_weights_come_from_the_log_then_from_records_then_from_a_guess() -> None:
    """The monitor's unit first."""
    progress = opened()
    assert progress.weight(A) == 1000.0
    progress.decoded_bytes_per_offset = 88.0
    assert progress.weight(A) == 100.0
    progress.rows[A].log_bytes_per_offset = 40.0
    assert progress.weight(A) == 40.0


def test_a_report_counts_since_the_last_one() -> None:
    """Speeds are of the period, and begin anew."""
    progress = opened()
    progress.rows[A].log_bytes_per_offset = 50.0
    progress.carried(A, 0, 20)
    row = progress.measured({A: Epoch(1, 2)}, 2.0)[A]
    assert row.records_per_s == pytest.approx(10)
    assert row.read_speed_log_bytes_per_s == pytest.approx(500)
    assert progress.measured({A: Epoch(1, 2)}, 2.0)[A].records_per_s == 0
    unknown = TopicPartition("just-started", 0)
    assert unknown not in progress.measured({unknown: Epoch(1, 3)}, 2.0), "it has no page yet"
    progress.batches, progress.commit_s = 3, 0.0126
    assert (progress.cycle().batches, progress.cycle().batches) == (3, 0)


def test_how_far_behind_is_known_only_after_a_look() -> None:
    """Records and bytes that wait."""
    progress = opened()
    assert progress.behind({A: 0, B: 10}) is None
    progress.rows[B].end_offset = 40
    progress.rows[B].log_bytes_per_offset = 10.0
    assert progress.behind({A: 0, B: 10}) == (30, 300)
    assert progress.behind({B: None}) is None


def test_failures_are_kept_until_the_partition_is_started_again() -> None:
    """One line each, fit to travel, and bounded in number."""
    progress = opened()
    progress.note_failure(A, StopReason.LOG_TRUNCATED, 7, "two\nlines " + "x" * 200)
    assert progress.failed[A].detail.startswith("two lines xx")
    assert len(progress.failed[A].detail) == 100
    for number in range(300):
        progress.note_failure(TopicPartition("t", number), StopReason.LOG_TRUNCATED, None, "")
    assert len(progress.failed) == 100
    progress.add(A, "id", 7)
    assert A not in progress.failed


def test_pages_close_when_the_partition_is_somebody_elses() -> None:
    """Nothing is remembered of what is not ours."""
    progress = opened()
    progress.keep_only([B])
    assert set(progress.rows) == {B}
