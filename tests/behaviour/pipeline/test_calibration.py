"""Two batches of different sizes tell what a consumer carries in a backlog."""

import pytest

from penstock.model import OffsetRange, TopicPartition
from penstock.pipeline.calibration import TimedBatch, carried_in_a_backlog, cut

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_the_fixed_cost_of_a_batch_is_told_from_the_cost_of_a_byte() -> None:
    """Half a second and 10 MB/s: in four seconds 35 MB are carried."""
    small, large = TimedBatch(2e6, 0.7), TimedBatch(16e6, 2.1)
    assert carried_in_a_backlog(small, large, 4.0) == pytest.approx(35e6 / 4)


def test_a_long_fixed_cost_makes_batches_longer() -> None:
    """As consumers do: a batch takes at least twice its fixed cost."""
    small, large = TimedBatch(2e6, 5.2), TimedBatch(16e6, 6.6)
    assert carried_in_a_backlog(small, large, 4.0) == pytest.approx(10e6 / 2)


@pytest.mark.parametrize(
    ("small", "large", "expected"),
    [
        (TimedBatch(2e6, 1.0), TimedBatch(16e6, 1.0), 16e6),
        (TimedBatch(2e6, 1.0), TimedBatch(2e6, 2.0), 1e6),
        (TimedBatch(2e6, 0.9999), TimedBatch(16e6, 1.0), 160e6),
        (TimedBatch(0, 0.0), TimedBatch(16e6, 0.0), 16e9),
    ],
)
def test_what_cannot_be_told_apart(small: TimedBatch, large: TimedBatch, expected: float) -> None:
    """Then the larger one counts, and at most ten times what it carried."""
    assert carried_in_a_backlog(small, large, 4.0) == pytest.approx(expected)


def test_batches_follow_each_other_up_to_the_end() -> None:
    """Each partition gives by its length, and the ledger is where the last batch ended."""
    logs = {A: OffsetRange(A, 0, 3_000), B: OffsetRange(B, 500, 1_500)}
    found = list(cut(logs, [4, 40, 400]))
    lengths = [sum(len(one) for one, _ in ranges) for ranges in found]
    assert lengths == [4, 40, 400]
    of_a = [(one, ledger) for ranges in found for one, ledger in ranges if one.partition == A]
    assert of_a == [
        (OffsetRange(A, 2667, 2670), None),
        (OffsetRange(A, 2670, 2700), 2670),
        (OffsetRange(A, 2700, 3000), 2700),
    ]


def test_a_short_log_gives_each_batch_its_share() -> None:
    """And one record, if there is one."""
    found = list(cut({A: OffsetRange(A, 10, 121)}, [4_000, 40_000, 400_000]))
    assert [len(one) for ranges in found for one, _ in ranges] == [1, 10, 100]
    few = list(cut({A: OffsetRange(A, 0, 2)}, [4_000, 40_000, 400_000]))
    assert [len(one) for ranges in few for one, _ in ranges] == [1, 1]
    assert list(cut({}, [1])) == [[]]
