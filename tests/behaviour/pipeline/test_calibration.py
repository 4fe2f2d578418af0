"""Two batches of different sizes tell what a consumer carries in a backlog."""

import pytest

from penstock.model import OffsetRange, TopicPartition
from penstock.pipeline.calibration import (
    BATCHES_BYTES,
    BYTES_MIN,
    SECONDS_MAX,
    BatchRanges,
    TimedBatch,
    calibration_of,
    carried_in_a_backlog,
    cut,
    timed_batches,
)

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


class SlowPipeline:
    """Carries at one speed, after a start that takes a while, on a clock of its own.

    As a table's ledger does, it refuses a range that does not follow the one before it.
    """

    def __init__(
        self, bytes_per_s: float, *, starts_s: float = 1.0, fixed_s: float = 0.3, size: float = 64e6
    ) -> None:
        self.bytes_per_s, self.fixed_s, self.warms_up_s = bytes_per_s, fixed_s, starts_s
        self.logs = {
            A: OffsetRange(A, 0, int(size / 2000)),
            B: OffsetRange(B, 0, int(size / 2000)),
        }
        self.now_s = 0.0
        self.ledger: dict[TopicPartition, int] = {}

    def carry(self, ranges: BatchRanges) -> None:
        for one, ledger in ranges:
            assert self.ledger.get(one.partition) == ledger
            assert ledger in {None, one.start}
            self.ledger[one.partition] = one.end
        carried = 1000 * sum(len(one) for one, _ in ranges)
        self.now_s += self.warms_up_s + self.fixed_s + carried / self.bytes_per_s
        self.warms_up_s = 0.0

    def timed(self) -> list[TimedBatch]:
        batches = list(cut(self.logs, [size / 1000 for size in BATCHES_BYTES]))
        return timed_batches(
            batches, 1000, self.carry, until_s=SECONDS_MAX, clock=lambda: self.now_s
        )


@pytest.mark.parametrize("bytes_per_s", [20e3, 50e3, 200e3, 700e3, 2e6, 20e6])
@pytest.mark.parametrize("starts_s", [0.0, 2.0, 6.0])
def test_a_slow_topic_keeps_to_the_time(bytes_per_s: float, starts_s: float) -> None:
    """Whatever it carries, its batches end in time, and the figure is right or a lower bound."""
    pipeline = SlowPipeline(bytes_per_s, starts_s=starts_s)
    timed = pipeline.timed()
    assert pipeline.now_s <= SECONDS_MAX
    found = calibration_of("orders", timed, 4.0, has_enough=True)
    assert found.bytes_per_s is not None
    if found.is_at_least:
        assert bytes_per_s / 2 <= found.bytes_per_s <= bytes_per_s
        assert "at least" in found.explanation
        assert "no larger batch was timed" in found.explanation
    else:
        expected = bytes_per_s * (4 - 0.3) / 4
        assert found.bytes_per_s == pytest.approx(expected, rel=0.02)
        assert "about" in found.explanation


def test_a_quick_topic_has_all_three_batches_whole() -> None:
    """What a cold first one takes of the second is carried with the last."""
    warm = SlowPipeline(20e6, starts_s=0.0).timed()
    assert [one.log_bytes for one in warm] == pytest.approx(list(BATCHES_BYTES), rel=0.02)
    cold = SlowPipeline(20e6, starts_s=1.0).timed()
    assert sum(one.log_bytes for one in cold) == pytest.approx(sum(BATCHES_BYTES), rel=0.01)
    assert cold[-1].log_bytes >= BATCHES_BYTES[-1]


def test_a_long_fixed_cost_does_not_make_a_topic_slow() -> None:
    """A busy machine: small batches look slow, so larger ones are carried while there is time."""
    pipeline = SlowPipeline(20e6, starts_s=3.0, fixed_s=1.2, size=2e6)
    timed = pipeline.timed()
    assert pipeline.now_s <= SECONDS_MAX
    assert timed[-1].log_bytes >= 0.5e6
    found = calibration_of("orders", timed, 4.0, has_enough=True)
    assert not found.is_at_least
    assert found.bytes_per_s is not None
    assert found.bytes_per_s >= 4e6


def test_a_batch_that_took_all_of_the_time_is_the_last() -> None:
    """What it has shown is a lower bound; the transformation before it may have been cold."""
    timed = SlowPipeline(10e3).timed()
    assert len(timed) == 1
    found = calibration_of("orders", timed, 4.0, has_enough=True)
    assert found.is_at_least
    assert found.bytes_per_s == pytest.approx(200e3 / 21.3)


@pytest.mark.parametrize("began_s", [15.0, 17.0, 18.0, 19.0, 19.9])
@pytest.mark.parametrize(("starts_s", "fixed_s"), [(0.5, 0.2), (1.0, 0.3), (3.0, 1.0)])
def test_a_topic_that_came_too_late_is_not_taken_for_a_slow_one(
    began_s: float, starts_s: float, fixed_s: float
) -> None:
    """Others took the time: a small batch alone shows its fixed cost, not what is carried."""
    pipeline = SlowPipeline(20e6, starts_s=starts_s, fixed_s=fixed_s)
    pipeline.now_s = began_s
    found = calibration_of("orders", pipeline.timed(), 4.0, has_enough=True)
    if found.bytes_per_s is None:
        assert found.explanation == "orders was not timed: there was no time for a large batch"
        assert not found.is_at_least
    else:
        assert not found.is_at_least
        assert found.bytes_per_s == pytest.approx(20e6, rel=0.3)


def test_a_topic_with_hardly_any_records_has_no_figure() -> None:
    """Its batches would be of one record or of none."""
    pipeline = SlowPipeline(20e6, size=2000)
    batches = list(cut(pipeline.logs, [size / 1000 for size in BATCHES_BYTES]))
    timed = timed_batches(batches, 1000, pipeline.carry, until_s=20.0, clock=lambda: 0.0)
    found = calibration_of("orders", timed, 4.0, has_enough=all(batches))
    assert found.bytes_per_s is None
    assert "too few records" in found.explanation


def test_a_short_topic_is_carried_as_before() -> None:
    """The least that is timed at all."""
    timed = SlowPipeline(20e6, size=BYTES_MIN).timed()
    assert sum(one.log_bytes for one in timed) == pytest.approx(BYTES_MIN, rel=0.01)
    assert len(timed) == 3
