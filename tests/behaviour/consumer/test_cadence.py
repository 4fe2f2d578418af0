"""The more consumers write one table, the further apart are a consumer's batches."""

import pytest

from kit.consumer.consumer_script import A, B, Script
from penstock.consumer.core.cadence import batch_period_ms
from penstock.consumer.core.effects import CarryBatch, ReadEnds
from penstock.messages import StopConsumingEvent


@pytest.mark.parametrize(
    ("round_s", "period_ms"),
    [(0.0, 1_000), (0.02, 1_000), (0.5, 1_000), (0.6, 1_200), (2.5, 5_000), (60.0, 5_000)],
)
def test_a_log_is_busy_for_half_of_the_time(round_s: float, period_ms: int) -> None:
    """Twice the time that all writers need; never below the period, never above the longest."""
    assert batch_period_ms(round_s, 1_000, 5_000) == period_ms


def test_the_longest_may_be_below_the_period() -> None:
    """Then the period stands: 0s switches the growth off."""
    assert batch_period_ms(60.0, 1_000, 0) == 1_000


def next_look_after_ms(script: Script, began_ms: int) -> int:
    while not script.did(ReadEnds):
        script.wait_until_due()
    return script.now_ms - began_ms


def test_batches_are_further_apart_while_many_write_the_table() -> None:
    """From the beginning of a batch; and as soon as the others are gone, as before."""
    script = Script().owning(A).carrying(A)
    for round_s, after_ms in ((0.001, 1_000), (1.5, 3_000), (0.001, 1_000)):
        began_ms, (_, end) = script.now_ms, script.carried(A)
        script.now_ms += 400
        script.batch_ends({A: end}, commit_round_s=round_s)
        assert next_look_after_ms(script, began_ms) == after_ms
        script.carrying(A)


def test_a_backlog_does_not_wait() -> None:
    """Its batches are long, and follow at once."""
    script = Script(batch_bytes=10_000).owning(A).with_spark()
    script.ends({A: 1_000_000})
    (batch,) = script.did(CarryBatch)
    script.now_ms += 400
    script.batch_ends({A: batch.ranges[0].range.end}, commit_round_s=2.0)
    assert script.did(ReadEnds)


def test_a_stop_does_not_wait_for_the_next_batch() -> None:
    """Between two batches a partition is given up at once."""
    script = Script().owning(A, B).carrying(A, B)
    script.now_ms += 400
    script.batch_ends({A: 15, B: 15}, commit_round_s=2.0)
    stopped = script.stop((A, "1.1"), plan_number=2)
    assert [type(one) for one in stopped] == [StopConsumingEvent]
    assert A not in script.own.owned
