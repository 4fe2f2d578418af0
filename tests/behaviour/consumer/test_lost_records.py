"""A log that lost records it once had: seen, waited for, and stopped with its figures."""

import pytest

from kit.consumer.consumer_script import USUAL, A, B, Script
from penstock.consumer.core import batch_planning, partition_progress
from penstock.consumer.core.effects import CarryBatch, Log, ReadLedger
from penstock.consumer.core.inputs import LedgerEntry
from penstock.errors import UnreachableError
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


def the_loss_is_seen(short_log_wait_ms: int = USUAL.short_log_wait_ms) -> None:
    """The law that planted bugs break: a short log is counted as behind, and then stopped."""
    script = Script(short_log_wait_ms=short_log_wait_ms).owning(A).with_spark()
    said = waited_with_end(script, 4, 4 * USUAL.short_log_wait_ms)
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


def test_the_wait_for_a_short_log_is_a_setting() -> None:
    """With a longer wait the partition is stopped later, and not before."""
    wait_ms = 4 * USUAL.short_log_wait_ms
    script = Script(short_log_wait_ms=wait_ms).owning(A).with_spark()
    assert not stops(waited_with_end(script, 4, wait_ms - 2_000))
    assert stops(waited_with_end(script, 4, wait_ms)) == {"orders-0": StopReason.LOG_TRUNCATED}


def test_a_log_that_is_short_for_a_moment_is_waited_for() -> None:
    """Within the patience nothing is stopped; an end that is whole again resets it."""
    script = Script().owning(A).with_spark()
    assert not stops(waited_with_end(script, 4, USUAL.short_log_wait_ms - 2_000))
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
    script.wait(2 * USUAL.short_log_wait_ms)
    assert script.did(ReadLedger)
    assert not stops(script.ends({A: 4, B: 15})), "the ledger look-up is still under way"


def test_a_short_log_of_a_topic_made_again_is_no_truncation() -> None:
    """The ledger look-up names another topic id."""
    script = Script().owning(A).with_spark()
    script.ends({A: 4})
    script.wait(2 * USUAL.short_log_wait_ms)
    assert script.did(ReadLedger)
    said = script.ledger(A, "1.1", 0, topic_id="another", ledger_offset=None)
    assert stops(said) == {"orders-0": StopReason.TOPIC_MADE_AGAIN}


def test_an_epoch_that_ends_below_the_ledger_is_not_started() -> None:
    """The log has grown past the offset again: only the leader epoch shows what was lost."""
    script = Script().with_spark()
    script.start((A, "1.1"))
    said = script.ledger(A, "1.1", 10, leader_epoch=3, leader_epoch_end=4)
    assert stops(said) == {"orders-0": StopReason.LOG_TRUNCATED}
    (failed,) = script.state.failed.values()
    assert (failed.offset, failed.detail) == (10, "leader epoch 3 ends at 4, below the ledger's 10")
    script.start((B, "1.2"))
    said = script.ledger(B, "1.2", 10, leader_epoch=3, leader_epoch_end=-1)
    assert stops(said) == {"orders-1": StopReason.LOG_TRUNCATED}
    assert script.state.failed[B].detail.startswith("Kafka forgot leader epoch 3")


def test_an_epoch_that_reaches_the_ledger_is_read_on() -> None:
    """Also when it is not known where it ends, and when nothing was carried yet."""
    for entry in (
        {"leader_epoch": 3, "leader_epoch_end": 10},
        {"leader_epoch": 3, "leader_epoch_end": None},
        {"ledger_offset": None, "leader_epoch_end": 4},
    ):
        script = Script().with_spark()
        script.start((A, "1.1"))
        script.ledger(A, "1.1", 10, **entry)
        assert script.own.readable == {A: 10}


def the_growth_is_seen() -> None:
    """The law that planted bugs break: a new leader's log is checked before it is read."""
    script = Script().with_spark()
    script.start((A, "1.1"))
    script.ledger(A, "1.1", 10, leader_epoch=3, leader_epoch_end=10)
    script.ends({A: 15}, leader_epochs={A: 3})
    (batch,) = script.did(CarryBatch)
    assert [one.leader_epoch for one in batch.ranges] == [3], "it is committed with the offset"
    script.batch_ends({A: 15})
    script.wait(1_000)
    script.ends({A: 90}, leader_epochs={A: 4})
    assert not script.did(CarryBatch)
    assert script.did(ReadLedger), "at once"
    said = script.ledger(A, "1.1", 15, leader_epoch=3, leader_epoch_end=5)
    assert stops(said) == {"orders-0": StopReason.LOG_TRUNCATED}


def test_a_log_that_lost_records_and_grew_past_the_offset_stops_its_partition() -> None:
    """The new leader has another epoch, and the ledger's epoch ends below the ledger."""
    the_growth_is_seen()


def test_a_new_leader_with_the_whole_log_is_read_on() -> None:
    """The look-up costs one answer; the new epoch then goes with the offsets."""
    script = Script().with_spark()
    script.start((A, "1.1"))
    script.ledger(A, "1.1", 10)
    script.ends({A: 10}, leader_epochs={A: 3})
    assert not script.did(ReadLedger), "the first epoch that is known"
    script.wait(1_000)
    script.ends({A: 15}, leader_epochs={A: 4})
    assert script.did(ReadLedger)
    script.ledger(A, "1.1", 10, leader_epoch=3, leader_epoch_end=12)
    script.ends({A: 15}, leader_epochs={A: 4})
    (batch,) = script.did(CarryBatch)
    assert [one.leader_epoch for one in batch.ranges] == [4]


def test_a_topic_with_another_id_is_given_up_whatever_its_ends_say() -> None:
    """It was made again with just as many records: nothing else would show it."""
    script = Script().owning(A).with_spark()
    script.ends({A: 10}, topic_ids={"orders": "id", "others": "x"})
    assert not script.did(ReadLedger)
    script.wait(1_000)
    script.ends({A: 10}, topic_ids={"orders": "another"})
    assert script.did(ReadLedger)
    said = script.ledger(A, "1.1", 0, topic_id="another", ledger_offset=None)
    assert stops(said) == {"orders-0": StopReason.TOPIC_MADE_AGAIN}


def test_a_topic_that_stays_away_is_given_up_as_deleted() -> None:
    """Its ends cannot be read, so that only its missing id shows it."""
    script = Script(missing_partition_wait_ms=3_000).owning(A).with_spark()
    failures = {A: UnreachableError("gone")}
    script.ends({}, failures=failures, topic_ids={"orders": None})
    assert script.did(ReadLedger)
    assert not stops(script.ledger_lacks(A, "1.1"))
    script.now_ms += 3_000
    said = script.ledger_lacks(A, "1.1")
    assert stops(said) == {"orders-0": StopReason.TOPIC_DELETED}


def test_a_topic_that_is_back_under_another_id_is_not_called_deleted() -> None:
    """It was away for a moment: it was made again."""
    script = Script().owning(A).with_spark()
    script.ends({}, topic_ids={"orders": None})
    assert not stops(script.ledger_lacks(A, "1.1"))
    said = script.ledger(A, "1.1", 0, topic_id="another", ledger_offset=None)
    assert stops(said) == {"orders-0": StopReason.TOPIC_MADE_AGAIN}


@pytest.mark.parametrize("bug", ["short logs count as up to date", "patience without end"])
def test_planted_bugs_about_short_logs_are_caught(
    monkeypatch: pytest.MonkeyPatch, bug: str
) -> None:
    """Each bug makes the law fail that a loss is seen."""
    wait_ms = USUAL.short_log_wait_ms
    if bug == "patience without end":
        wait_ms = 10**12
    else:
        monkeypatch.setattr(partition_progress, "abs", lambda n: max(0, n), raising=False)
    with pytest.raises(AssertionError):
        the_loss_is_seen(wait_ms)


@pytest.mark.parametrize("bug", ["leaders are not compared", "the epoch's end is not compared"])
def test_planted_bugs_about_grown_logs_are_caught(
    monkeypatch: pytest.MonkeyPatch, bug: str
) -> None:
    """Each bug makes the law fail that a new leader's log is checked."""
    if bug == "leaders are not compared":
        monkeypatch.setattr(batch_planning, "_note_log", lambda *_: None)
    else:
        monkeypatch.setattr(LedgerEntry, "is_truncated", False)
    with pytest.raises(AssertionError):
        the_growth_is_seen()
