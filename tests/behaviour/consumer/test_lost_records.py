"""A log that lost records it once had: seen, waited for, and stopped with its figures."""

import pytest
from kit.consumer.consumer_script import A, B, Script

from penstock.consumer.core import batch_planning, partition_progress
from penstock.consumer.core.batch_planning import LOG_SHORT_MS_MAX
from penstock.consumer.core.effects import CarryBatch, Log, ReadLedger
from penstock.messages import ConsumerReport, FromConsumer, StopConsumingEvent, StopReason


def stops(messages: list[FromConsumer]) -> dict[str, StopReason]:
    return {
        str(row.topic_partition): row.reason
        for one in messages
        if isinstance(one, StopConsumingEvent)
        for row in one.partitions
    }


def waited_with_end(script: Script, end: int, ms: int) -> list[FromConsumer]:
    """Answer looks and ledger look-ups for that long: the log ends at `end` all the time."""
    said: list[FromConsumer] = script.ends({A: end})
    until_ms = script.now_ms + ms
    while script.now_ms < until_ms and not stops(said):
        said += script.wait_until_due()
        if script.state.is_reading_ledger:
            said += script.ledger(A, "1.1", 10)
        if script.state.batches.is_looking:
            said += script.ends({A: end})
    return said


def the_loss_is_seen() -> None:
    """The law that planted bugs break: a short log is counted as behind, and then stopped."""
    script = Script().owning(A).with_spark()
    said = waited_with_end(script, 4, 4 * LOG_SHORT_MS_MAX)
    reports = [one for one in said if isinstance(one, ConsumerReport) and one.owned]
    assert {one.behind_records for one in reports if one.owned[0].end_offset is not None} == {6}
    assert stops(said) == {"orders-0": StopReason.LOG_TRUNCATED}
    assert A not in script.own.owned
    (failed,) = script.state.failed.values()
    assert (failed.reason, failed.offset) == (StopReason.LOG_TRUNCATED, 10)
    assert failed.detail == "the log ends at 4, 6 below the ledger's 10"


def test_a_log_that_stays_below_the_ledger_stops_its_partition() -> None:
    """The stop and the report name the offsets, and the partition is never up to date."""
    the_loss_is_seen()


def test_a_log_that_is_short_for_a_moment_is_waited_for() -> None:
    """Within the patience nothing is stopped; an end that is whole again resets it."""
    script = Script().owning(A).with_spark()
    assert not stops(waited_with_end(script, 4, LOG_SHORT_MS_MAX - 2_000))
    script.wait(10_000)
    script.ledger(A, "1.1", 10)
    script.ends({A: 12})
    assert script.carried(A) == (10, 12)
    assert script.state.progress[A].short_since_ms is None
    script.batch_ends({A: 12})
    script.wait(10_000)
    assert not stops(script.ends({A: 4})), "the patience begins anew"


def test_a_short_log_is_logged_once_in_a_while_and_its_ledger_entry_is_read() -> None:
    """Looks in between neither log nor stop: the ledger must answer first."""
    script = Script().owning(A, B).with_spark()
    script.ends({A: 4, B: 15})
    (batch,) = script.did(CarryBatch)
    assert [one.range.partition for one in batch.ranges] == [B], "the other goes on"
    (line,) = [one for one in script.did(Log) if one.event == "log_ends_early"]
    assert (line.fields["end"], line.fields["next_offset"]) == (4, 10)
    script.batch_ends({B: 15})
    script.ends({A: 4, B: 15})
    assert "log_ends_early" not in script.logged()
    script.wait(2 * LOG_SHORT_MS_MAX)
    assert script.did(ReadLedger)
    assert not stops(script.ends({A: 4, B: 15})), "the ledger look-up is still under way"


def test_a_short_log_of_a_topic_made_again_is_no_truncation() -> None:
    """The ledger look-up names another topic id."""
    script = Script().owning(A).with_spark()
    script.ends({A: 4})
    script.wait(2 * LOG_SHORT_MS_MAX)
    assert script.did(ReadLedger)
    said = script.ledger(A, "1.1", 0, topic_id="another", ledger_offset=None)
    assert stops(said) == {"orders-0": StopReason.TOPIC_MADE_AGAIN}


@pytest.mark.parametrize("bug", ["short logs count as up to date", "patience without end"])
def test_planted_bugs_are_caught(monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    """Each bug makes the law fail that a loss is seen."""
    if bug == "patience without end":
        monkeypatch.setattr(batch_planning, "LOG_SHORT_MS_MAX", 10**12)
    else:
        monkeypatch.setattr(partition_progress, "abs", lambda n: max(0, n), raising=False)
    with pytest.raises(AssertionError):
        the_loss_is_seen()
