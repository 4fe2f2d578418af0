"""Batches take about the time asked for; capacity is what full batches show."""

import pytest

from kit.consumer.consumer_script import A, B, Script
from penstock.consumer.core.effects import Fail, ReadEnds
from penstock.consumer.core.inputs import PartitionFailure
from penstock.consumer.core.pace import (
    BUDGET_BYTES_MIN,
    Allowance,
    CapacityEstimate,
    Pace,
    PaceLimits,
)
from penstock.errors import UnreachableError

LIMITS = PaceLimits(batch_bytes=10**9, batch_time_s=2.0, backlog_batch_time_s=4.0)


def test_the_size_finds_the_time_asked_for() -> None:
    """At 50 MB/s full batches settle at the time that a backlog allows."""
    pace = Pace(LIMITS)
    seconds = 0.0
    for _ in range(8):
        seconds = 0.3 + pace.budget_bytes / 50e6
        pace = pace.after(planned_bytes=pace.budget_bytes, seconds=seconds, was_full=True)
    assert seconds == pytest.approx(4.0, rel=0.15)


def test_a_busy_machine_does_not_make_batches_ever_smaller() -> None:
    """Three seconds whatever is in it: batches grow until half of the time is for the data."""
    pace = Pace(LIMITS, budget_bytes=2e6)
    seconds = 0.0
    for _ in range(12):
        seconds = 3.0 + pace.budget_bytes / 50e6
        pace = pace.after(planned_bytes=pace.budget_bytes, seconds=seconds, was_full=True)
    assert pace.budget_bytes > 75e6
    assert 5.0 < seconds < 8.0


def test_the_first_batch_teaches_nothing() -> None:
    """Spark warms up: forty seconds say nothing about the next batch."""
    pace = Pace(LIMITS, budget_bytes=8e6)
    for was_full in (True, False):
        after = pace.after(planned_bytes=8e6, seconds=45.0, was_full=was_full)
        assert after.budget_bytes == 8e6
        assert after.is_warm


def test_one_full_batch_is_no_backlog_yet() -> None:
    """The first aims at the short time; only a row of them at the long one."""
    pace = Pace(LIMITS, budget_bytes=100e6, fixed_s=0.0, is_warm=True)
    once = pace.after(planned_bytes=100e6, seconds=2.0, was_full=True)
    assert once.budget_bytes == pytest.approx(100e6)
    twice = once.after(planned_bytes=100e6, seconds=2.0, was_full=True)
    assert twice.budget_bytes == pytest.approx(200e6)
    kept_up = twice.after(planned_bytes=1e6, seconds=0.5, was_full=False)
    assert kept_up.full_in_a_row == 0
    assert kept_up.budget_bytes == twice.budget_bytes


def test_a_batch_that_took_far_too_long_makes_the_next_smaller() -> None:
    """Also when it was not full: something has become slow."""
    slow = Pace(LIMITS, budget_bytes=100e6, is_warm=True).after(
        planned_bytes=40e6, seconds=20.0, was_full=False
    )
    assert slow.budget_bytes == pytest.approx(10e6)


def test_the_bound_holds_both_ways() -> None:
    """Never above the setting, never so small that nothing moves."""
    limits = PaceLimits(batch_bytes=10**7, batch_time_s=2.0, backlog_batch_time_s=4.0)
    pace = Pace(limits, is_warm=True).after(planned_bytes=9e6, seconds=0.01, was_full=True)
    assert pace.budget_bytes == 10**7
    for _ in range(20):
        pace = pace.after(planned_bytes=1e5, seconds=900, was_full=False)
    assert pace.budget_bytes == BUDGET_BYTES_MIN
    small = PaceLimits(batch_bytes=2**16, batch_time_s=2.0, backlog_batch_time_s=4.0)
    tiny = Pace(small, budget_bytes=2**16, is_warm=True)
    assert tiny.after(planned_bytes=6e4, seconds=1, was_full=True).budget_bytes == 2**16


def test_an_allowance_fills_with_time_up_to_a_bound() -> None:
    """What is not read may be read a little later, but not without limit."""
    allowance = Allowance(100.0, saved_s_max=2.0).at(10_000)
    assert allowance.limit(1e9) == 100.0
    spent = allowance.without(150.0)
    assert spent.wait_ms(100.0) == 1_500
    assert spent.at(11_000).limit(1e9) == pytest.approx(50.0)
    assert spent.at(1_000_000).limit(1e9) == pytest.approx(200.0)
    assert spent.at(5_000).saved_bytes == spent.saved_bytes  # a clock that jumped back adds nothing


def test_without_a_capacity_there_is_no_limit() -> None:
    """A capacity of zero disables the limit."""
    free = Allowance(0.0).at(1_000).without(1e12)
    assert free.limit(7.0) == 7.0
    assert free.wait_ms(1e12) == 0


def test_capacity_is_unknown_until_there_was_a_backlog() -> None:
    """A consumer that keeps up shows its load, not its capacity."""
    estimate = CapacityEstimate()
    for _ in range(5):
        estimate = estimate.after(9e6, 9.0, was_full=False)
    estimate = estimate.after(9e6, 1.0, was_full=True)
    assert estimate.log_bytes_per_s is None
    estimate = estimate.after(11e6, 1.0, was_full=True)
    assert estimate.log_bytes_per_s == pytest.approx(10e6)
    for _ in range(20):
        estimate = estimate.after(20e6, 1.0, was_full=True)
    assert estimate.log_bytes_per_s == pytest.approx(20e6)
    assert estimate.after(0.0, 1.0, was_full=True) is estimate
    assert estimate.after(1e6, 0.0, was_full=True) is estimate


TOO_LARGE = PartitionFailure(UnreachableError("heap space"), is_out_of_memory=True)


def retried(script: Script) -> tuple[int, int]:
    """The range of A in the next batch, with a hundred records waiting."""
    script.wait(15_000)
    if script.state.progress[A].is_unsettled:
        script.ledger(A, "1.1", 10)
    script.ends({A: 110})
    return script.carried(A)


def test_a_batch_that_was_too_large_is_halved_down_to_one_record() -> None:
    """The same range would fail for ever; other partitions of other batches are not concerned."""
    script = Script().owning(A, B).carrying(A, records=100)
    lengths = []
    for _ in range(7):
        script.batch_ends(failures={A: TOO_LARGE})
        start, end = retried(script)
        lengths.append(end - start)
    assert lengths == [50, 25, 12, 6, 3, 1, 1]
    assert script.state.progress[B].offsets_max is None


def test_a_batch_that_was_too_large_grows_slowly_again() -> None:
    """Smaller batches follow at once, and a limit that binds nobody is dropped."""
    script = Script().owning(A).carrying(A, records=100)
    script.batch_ends(failures={A: TOO_LARGE})
    start, end = retried(script)
    assert (start, end) == (10, 60)
    script.batch_ends({A: 60}, records=50, decoded_bytes=5_000)
    assert script.did(ReadEnds), "there is more to read"
    assert script.state.progress[A].offsets_max == 56
    script.ends({A: 110})
    assert script.carried(A) == (60, 110)
    script.batch_ends({A: 110}, records=50, decoded_bytes=5_000)
    assert script.state.progress[A].offsets_max is None


def test_a_spark_without_memory_for_one_record_is_lost() -> None:
    """Larger batches only become smaller; then it is another Spark that is needed."""
    script = Script(local_spark_failures_max=1).owning(A).carrying(A, records=2)
    script.batch_ends(failures={A: TOO_LARGE})
    assert not script.did(Fail)
    start, end = retried(script)
    assert end - start == 1
    script.batch_ends(failures={A: TOO_LARGE})
    assert script.did(Fail) == [Fail(TOO_LARGE.error)]


def test_what_a_consumer_shows_while_it_warms_up_is_forgotten() -> None:
    """A second batch that is much quicker takes the place of the first; later ones are chance."""
    estimate = CapacityEstimate()
    for seconds in (4.0, 2.0):
        estimate = estimate.after(8e6, seconds, was_full=True)
    assert estimate.log_bytes_per_s is None
    estimate = estimate.after(8e6, 1.9, was_full=True)
    assert estimate.log_bytes_per_s == pytest.approx(16e6 / 3.9)
    estimate = estimate.after(8e6, 1.0, was_full=True)
    assert estimate.log_bytes_per_s == pytest.approx(24e6 / 4.9)
