"""Where a difference of log sizes is wrong, offsets are used, or the interval is unknown."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.monitor.core.log_growth import (
    LogGrowth,
    LogSample,
    Suspicion,
    growth_by_offsets,
    growth_by_sizes,
)

# A busy machine is no defect of the subject.
unhurried = settings(deadline=None)
UNKNOWN = float("nan")


def sample(
    size: float = UNKNOWN,
    end: float = UNKNOWN,
    at_s: float = 0.0,
    *,
    start: float = 0.0,
    leader: float = 1.0,
) -> LogSample:
    """One partition, sizes and offsets taken at the same time."""
    return LogSample(
        size_bytes=np.array([size]),
        size_at_s=np.array([at_s if size == size else UNKNOWN]),  # noqa: PLR0124 -- NaN
        leader=np.array([leader]),
        start_offset=np.array([start]),
        end_offset=np.array([end]),
        offsets_at_s=np.array([at_s if end == end else UNKNOWN]),  # noqa: PLR0124 -- NaN
    )


def by_sizes(
    before: LogSample,
    now: LogSample,
    *,
    mean: float = 1000.0,
    records: float = 1000.0,
    suspicion: Suspicion | None = None,
) -> tuple[float, float]:
    found = growth(before, now, mean, records, suspicion)
    return float(found.bytes_duration_s[0]), float(found.bytes_written[0])


def growth(
    before: LogSample,
    now: LogSample,
    mean: float = 1000.0,
    records: float = 1000.0,
    suspicion: Suspicion | None = None,
) -> LogGrowth:
    return growth_by_sizes(
        before, now, np.array([mean]), np.array([records]), suspicion or Suspicion.none(1)
    )


def test_growth_is_what_was_written() -> None:
    """The plain case: bytes by the size, over the time between the two answers."""
    assert by_sizes(sample(10_000, 10, 5.0), sample(15_000, 15, 6.5)) == (1.5, 5000.0)


def test_retention_is_not_negative() -> None:
    """A log that shrank wrote as many bytes as its new records weigh."""
    shrunk = sample(4_000, 15, 1.0, start=8)
    assert by_sizes(sample(10_000, 10), shrunk) == (1.0, 5000.0)


def test_retention_that_hides_in_growth_is_seen() -> None:
    """A moved start means that bytes went missing, even where the log grew."""
    grown = sample(12_000, 15, 1.0, start=3)
    assert by_sizes(sample(10_000, 10), grown) == (1.0, 5000.0)


def test_retention_seen_by_offsets_first_is_remembered() -> None:
    """The size may shrink one look after the start moved: that interval is wary too."""
    first = growth(sample(10_000, 10), sample(15_000, 15, 1.0, start=5))
    wary = first.suspicion
    second = by_sizes(
        sample(15_000, 15, 1.0, start=5), sample(16_000, 20, 2.0, start=5), suspicion=wary
    )
    assert second == (1.0, 5000.0)


def test_compaction_that_hides_in_growth_is_seen() -> None:
    """Far fewer bytes than the new records should weigh: the cleaner was at work."""
    assert by_sizes(sample(50_000, 100), sample(51_000, 120, 1.0)) == (1.0, 20_000.0)


def test_leader_move_compares_no_two_replicas() -> None:
    """The new leader's size is another log's; records are counted instead."""
    moved = sample(90_000, 15, 1.0, leader=2.0)
    assert by_sizes(sample(10_000, 10), moved) == (1.0, 5000.0)


def test_jump_without_records_is_no_write() -> None:
    """A size that grows while no record came has other reasons; nothing was written."""
    before, now = sample(10_000, 10), sample(900_000, 10, 1.0)
    quiet = Suspicion(np.zeros(1), np.zeros(1), np.zeros(1))
    assert by_sizes(before, now, suspicion=quiet) == (1.0, 0.0)


def test_jump_far_beyond_the_records_is_no_write() -> None:
    """Ten records do not weigh a hundred megabytes when a thousand weighed one."""
    jumped = sample(100_010_000, 20, 1.0)
    assert by_sizes(sample(10_000, 10), jumped) == (1.0, 10_000.0)


def test_lasting_implausibility_is_believed() -> None:
    """Records that really became tiny are measured by size again after two intervals."""
    suspicion = Suspicion.none(1)
    seen = []
    for number in range(4):
        before = sample(10_000 + 100 * number, 100 * number, number)
        now = sample(10_000 + 100 * (number + 1), 100 * (number + 1), number + 1.0)
        result = growth(before, now, suspicion=suspicion)
        suspicion = result.suspicion
        seen.append(float(result.bytes_written[0]))
    assert seen == [100_000.0, 100_000.0, 100.0, 100_000.0]


def test_late_bytes_of_counted_records_are_bytes() -> None:
    """Sizes and offsets are not read at one instant: bytes may come a look after their records."""
    first = growth(sample(10_000, 10), sample(10_000, 11, 1.0), mean=UNKNOWN, records=0)
    second = by_sizes(
        sample(10_000, 11, 1.0), sample(11_000, 11, 2.0), suspicion=first.suspicion, mean=UNKNOWN
    )
    assert second == (1.0, 1000.0)


def test_without_a_mean_a_lie_is_unknown() -> None:
    """A log that shrank before any record's weight is known is unknown, not zero."""
    assert by_sizes(sample(10_000, 10), sample(4_000, 15, 1.0), mean=UNKNOWN)[0] == 0.0


def test_absent_answer_is_waited_for() -> None:
    """A broker that does not answer gives no interval; the next answer covers the whole time."""
    start, silent, back = sample(10_000, 10), sample(), sample(30_000, 30, 4.0)
    assert by_sizes(start, silent)[0] == 0.0
    assert by_sizes(start.updated(silent), back) == (4.0, 20_000.0)


def test_a_log_that_went_back_is_another_one() -> None:
    """A lower end offset is a new or truncated log: unknown, and `restarted` is set."""
    result = growth(sample(10_000, 1000), sample(20_000, 3, 1.0))
    assert result.restarted[0] == 1
    assert result.bytes_duration_s[0] == 0
    assert result.records_duration_s[0] == 0


@pytest.mark.parametrize("at_s", [0.0, 1e-310, -3600.0, UNKNOWN, float("inf")])
def test_a_clock_that_does_not_advance_gives_nothing(at_s: float) -> None:
    """No time, time that went back or no number: no interval, never a division by it."""
    duration, amount = by_sizes(sample(10_000, 10, 0.0), sample(15_000, 15, at_s))
    assert (duration, amount) == (0.0, 0.0)


def test_offsets_alone_measure_by_the_mean() -> None:
    """The second source: new records times their mean weight."""
    result = growth_by_offsets(sample(end=10), sample(end=30, at_s=2.0), np.array([500.0]))
    assert (result.bytes_duration_s[0], result.bytes_written[0]) == (2.0, 10_000.0)


def test_offsets_alone_know_an_idle_partition_without_a_mean() -> None:
    """No new records weigh nothing, whatever a record weighs; some of unknown weight do not."""
    idle = growth_by_offsets(sample(end=10), sample(end=10, at_s=2.0), np.array([UNKNOWN]))
    busy = growth_by_offsets(sample(end=10), sample(end=20, at_s=2.0), np.array([UNKNOWN]))
    assert (idle.bytes_duration_s[0], idle.bytes_written[0]) == (2.0, 0.0)
    assert busy.bytes_duration_s[0] == 0
    assert busy.records_written[0] == 10


numbers = st.just(UNKNOWN) | st.integers(0, 10**12).map(float)
times = st.just(UNKNOWN) | st.floats(-1e6, 1e6)


@st.composite
def any_sample(draw: st.DrawFn) -> LogSample:
    drawn = [draw(numbers), draw(times), draw(st.sampled_from([1.0, 2.0, -1.0])), draw(numbers)]
    return LogSample(*(np.array([one]) for one in [*drawn, draw(numbers), draw(times)]))


@unhurried
@given(before=any_sample(), now=any_sample(), mean=numbers, records=st.floats(0, 1e9))
def test_whatever_is_seen_intervals_are_sane(
    before: LogSample, now: LogSample, mean: float, records: float
) -> None:
    """Both sources give finite lengths and amounts of zero or more, and none without length."""
    results = [
        growth(before, now, mean, records),
        growth_by_offsets(before, now, np.array([mean])),
    ]
    for result in results:
        pairs = [
            (result.bytes_duration_s, result.bytes_written),
            (result.records_duration_s, result.records_written),
        ]
        for duration, amount in pairs:
            assert np.isfinite(duration).all()
            assert np.isfinite(amount).all()
            assert (duration >= 0).all()
            assert (amount >= 0).all()
            assert (amount[duration == 0] == 0).all()
