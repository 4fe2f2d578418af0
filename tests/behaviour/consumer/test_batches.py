"""When a consumer looks for records, which it carries, and what follows a batch."""

import pytest

from kit.consumer.consumer_script import A, B, Script, lasts, passes
from penstock.consumer.core import batch_planning, inputs
from penstock.consumer.core.effects import (
    CarryBatch,
    Log,
    ReadEnds,
    ReadStartOffsets,
    WriteGroupOffsets,
)
from penstock.errors import UnreachableError
from penstock.messages import ConsumerReport, StopConsumingEvent, StopReason
from penstock.model import Epoch, TopicPartition


def looks_after_ms(script: Script) -> int:
    """How long until the consumer looks again by itself."""
    since = script.now_ms
    while not script.did(ReadEnds):
        assert script.now_ms - since < 60_000, "it does not look again"
        script.wait_until_due()
    return script.now_ms - since


def test_nothing_is_looked_for_before_spark_is_up() -> None:
    """The ledger is read meanwhile, so that the first batch begins at once."""
    script = Script().owning(A)
    assert not script.did(ReadEnds)
    script.spark()
    assert script.did(ReadEnds) == [ReadEnds((A,))]
    assert script.logged() == ["spark_ready"]


def test_idle_looks_back_off() -> None:
    """A tenth of a second, then twice as long, and no longer than the setting; records reset it."""
    script = Script().owning(A).with_spark()
    waits = []
    for _ in range(5):
        script.ends({A: 10})
        waits.append(looks_after_ms(script))
    assert waits == [100, 200, 400, 500, 500]
    script.ends({A: 11})
    script.now_ms += 2_000
    script.batch_ends({A: 11})
    script.ends({A: 11})
    assert looks_after_ms(script) == 100


def test_an_idle_wait_below_the_first_pause_is_kept() -> None:
    """The setting bounds the first pause as well."""
    script = Script(idle_wait_ms=30).owning(A).with_spark()
    script.ends({A: 10})
    assert looks_after_ms(script) == 30


def test_a_partition_that_starts_during_a_look_is_looked_at_next() -> None:
    """The look did not ask for it, so that its silence says nothing."""
    script = Script().owning(A).with_spark()
    script.start((B, "1.5"))
    script.ledger(B, "1.5", 10)
    assert not script.did(ReadEnds), "a look is under way"
    script.ends({A: 10})
    assert script.did(ReadEnds) == [ReadEnds((A, B))]
    script.ends({A: 10, B: 10})
    assert looks_after_ms(script) == 100


def test_a_partition_that_cannot_be_looked_up_does_not_hold_the_others_back() -> None:
    """A partition without a leader is logged, and the batch begins with the rest."""
    script = Script().owning(A, B).with_spark()
    failures = {A: UnreachableError("no leader")}
    script.take(inputs.EndsRead(script.now_ms, {B: 15}, failures))
    assert script.logged()[0] == "ends_unknown"
    (batch,) = script.did(CarryBatch)
    assert [one.range.partition for one in batch.ranges] == [B]


def test_a_look_that_fails_is_repeated_after_the_idle_wait() -> None:
    """Kafka is away: the log says so, and nothing ends."""
    script = Script().owning(A).with_spark()
    script.take(inputs.EndsNotRead(script.now_ms, UnreachableError("away")))
    assert script.logged() == ["ends_unknown"]
    assert looks_after_ms(script) == 500


def test_an_end_of_what_is_not_owned_any_more_is_ignored() -> None:
    """A stop came while the look was under way."""
    script = Script().owning(A, B).with_spark()
    script.stop((A, "1.1"))
    script.ends({A: 20, B: 20})
    (batch,) = script.did(CarryBatch)
    assert [one.range.partition for one in batch.ranges] == [B]


def test_a_batch_carries_ranges_with_their_ledger_entry_and_epoch() -> None:
    """What the commit is checked against travels with each range."""
    script = Script().owning(A).carrying(A)
    (batch,) = script.did(CarryBatch)
    (one,) = batch.ranges
    assert (one.range.start, one.range.end) == (10, 15)
    assert (one.topic_id, one.ledger_offset, one.epoch) == ("id", 10, Epoch(1, 1))
    assert script.logged() == ["batch_begins"]
    assert not script.did(ReadEnds), "one batch at a time"


def test_a_small_batch_that_carries_all_there_is_is_calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each table gets one file of it. With a backlog, or much at once, all tasks are used."""
    monkeypatch.setattr(batch_planning, "CALM_BATCH_BYTES", 5_000)
    script = Script(batch_bytes=10_000).owning(A).with_spark()
    script.sizes({A: 1_000.0})
    for records, is_calm in [(5, True), (6, False), (11, False)]:
        script.ends({A: script.own.readable[A] + records})
        (batch,) = script.did(CarryBatch)
        assert batch.is_calm is is_calm, records
        (one,) = batch.ranges
        script.batch_ends({A: one.range.end})
        script.wait(1_000)
    monkeypatch.setattr(batch_planning, "CALM_BATCH_BYTES", 50_000)
    script.ends({A: script.own.readable[A] + 11})
    (batch,) = script.did(CarryBatch)
    assert not batch.is_calm, "it leaves records"


def test_batches_begin_one_period_apart_without_a_backlog() -> None:
    """A quiet topic does not make a file every moment; a batch longer than that adds no wait."""
    script = Script().owning(A).carrying(A)
    script.now_ms += 300
    script.batch_ends({A: 15})
    assert script.did(WriteGroupOffsets) == [WriteGroupOffsets({A: 15})]
    assert looks_after_ms(script) == 700
    script.ends({A: 16})
    script.now_ms += 5_000
    script.batch_ends({A: 16})
    assert script.did(ReadEnds), "its period is over already"


def test_full_batches_follow_at_once() -> None:
    """There is a backlog: the next look does not wait for the period."""
    script = Script(batch_bytes=10_000).owning(A).with_spark()
    script.ends({A: 1_000})
    assert script.carried(A) == (10, 20), "ten records of the guessed size"
    script.now_ms += 50
    script.batch_ends({A: 20})
    assert script.did(ReadEnds)


def test_full_batches_show_the_capacity() -> None:
    """The first one warms Spark up; of those that follow at once the pauses count too."""
    script = Script(batch_bytes=10_000).owning(A).with_spark()
    script.sizes({A: 1_000.0})
    end, gap_ms = 10, 0
    for gap_ms in (0, 0, 0, 1_500):
        script.now_ms += gap_ms
        script.ends({A: 100_000})
        start, end = script.carried(A)
        script.now_ms += 1_000
        script.batch_ends({A: end}, records=end - start, decoded_bytes=100 * (end - start))
    assert [seconds for _, seconds in script.state.batches.capacity.full] == [1.0, 1.0, 1.0]
    reports = [m for m in script.wait(2_000) if isinstance(m, ConsumerReport)]
    assert reports[0].capacity_log_bytes_per_s == pytest.approx(10_000)


def test_the_pause_between_full_batches_counts_for_the_capacity() -> None:
    """Half a second of looking belongs to the cost of a batch that follows at once."""
    script = Script(batch_bytes=10_000).owning(A).with_spark()
    script.sizes({A: 1_000.0})
    for _ in range(3):
        script.now_ms += 500
        script.ends({A: 100_000})
        _, end = script.carried(A)
        script.now_ms += 1_000
        script.batch_ends({A: end})
    assert [seconds for _, seconds in script.state.batches.capacity.full] == [1.5, 1.5]


def test_a_batch_that_was_carried_in_part_goes_on_from_there() -> None:
    """The ledger's offset is the committed one, whatever was planned; only that much counts."""
    script = Script().owning(A).carrying(A)
    assert script.carried(A) == (10, 15)
    script.batch_ends({A: 12})
    assert script.state.progress[A].ledger_offset == 12
    assert script.state.progress[A].offsets_read == 2
    script.wait(60_000)
    script.ends({A: 15})
    assert script.carried(A) == (12, 15)


def test_a_batch_that_carried_nothing_teaches_nothing() -> None:
    """Pace and capacity stay as they were; the batch still counts."""
    script = Script().owning(A).carrying(A)
    before = script.state.batches.pace
    script.now_ms += 1_000
    script.batch_ends()
    assert script.state.batches.pace == before
    assert script.state.work.batches == 1
    assert not script.did(WriteGroupOffsets)
    script.wait(1_000)
    script.ends({A: 15})
    assert script.carried(A) == (10, 15), "it was dropped whole and is read again"


def test_a_limited_consumer_waits_until_a_batch_is_worth_it() -> None:
    """One second's worth at first; after it, as long as the capacity says."""
    script = Script(capacity_bytes_per_s=1_000.0).owning(A).with_spark()
    script.sizes({A: 10.0})
    script.ends({A: 10_000})
    assert script.carried(A) == (10, 110)
    script.now_ms += 200
    script.batch_ends({A: 110})
    script.ends({A: 10_000})
    assert not script.did(CarryBatch), "200 of 1000 bytes are saved"
    assert looks_after_ms(script) == 800
    script.ends({A: 10_000})
    assert script.carried(A) == (110, 210)


def test_a_limited_consumer_saves_enough_for_a_long_period() -> None:
    """A period longer than a backlog's batch must not make it wait for ever."""
    script = Script(capacity_bytes_per_s=1_000.0, batch_period_ms=60_000).owning(A).with_spark()
    script.sizes({A: 10.0})
    for _ in range(40):
        script.ends({A: 100_000})
        if script.did(CarryBatch):
            break
        looks_after_ms(script)
    else:
        raise AssertionError("it never reads")
    assert script.carried(A) == (10, 6_010)


def test_a_put_off_partition_waits_with_growing_pauses_and_the_others_go_on() -> None:
    """Its failures stay with it."""
    script = Script(batch_period_ms=0).owning(A, B).carrying(A, B)
    script.batch_ends({B: 15}, {A: passes("the lake is full")})
    (warning,) = [one for one in script.did(Log) if one.event == "batch_put_off"]
    assert warning.fields == {"error": "the lake is full", "partitions": 1}
    script.ends({A: 20, B: 20})
    assert script.carried(B) == (15, 20)
    script.batch_ends({B: 20})
    pauses = []
    for _ in range(3):
        since = script.now_ms
        while not (row := script.state.progress[A]).is_unsettled or row.not_before_ms > (
            script.now_ms
        ):
            script.wait(100)
        pauses.append(script.now_ms - since)
        script.ledger(A, "1.1", 10)
        script.ends({A: 20, B: 20})
        assert script.carried(A) == (10, 20)
        script.batch_ends(failures={A: passes()})
    assert pauses == [500, 1_000, 2_000]


def test_a_full_batch_with_a_put_off_waits_for_the_period() -> None:
    """What is away would only be asked again and again."""
    script = Script(batch_bytes=10_000).owning(A, B).with_spark()
    script.ends({A: 1_000, B: 1_000})
    _, end = script.carried(B)
    script.now_ms += 100
    script.batch_ends({B: end}, {A: passes()})
    script.wait(100)
    assert not script.did(ReadEnds)
    assert looks_after_ms(script) == 800


def test_what_lasts_gives_its_partition_up_and_is_reported() -> None:
    """With the offset where it stands, until the partition is started again."""
    script = Script().owning(A, B).carrying(A, B)
    (event,) = script.batch_ends({B: 15}, {A: lasts(StopReason.LOG_TRUNCATED, "short")})
    assert isinstance(event, StopConsumingEvent)
    assert event.partitions[0].reason is StopReason.LOG_TRUNCATED
    (report,) = script.wait(2_000)
    assert isinstance(report, ConsumerReport)
    assert [(row.topic_partition, row.offset, row.detail) for row in report.failed] == [
        (A, 10, "short")
    ]
    script.start((A, "1.5"))
    script.ledger(A, "1.5", 10)
    assert not script.state.failed


def test_a_failure_of_what_was_stopped_meanwhile_is_still_reported() -> None:
    """The stop is confirmed as commanded; the report names the failure."""
    script = Script().owning(A).carrying(A)
    script.stop((A, "1.1"))
    (event,) = script.batch_ends(failures={A: lasts(StopReason.LOG_TRUNCATED)})
    assert isinstance(event, StopConsumingEvent)
    assert [row.reason for row in event.partitions] == [StopReason.COMMANDED], "once is enough"
    assert A in script.state.failed


def test_reported_failures_are_bounded() -> None:
    """The log has the rest; one that is reported already may change."""
    script = Script()
    many = {TopicPartition("t", n): Epoch(1, n + 1) for n in range(101)}
    script.start(*((one, str(epoch)) for one, epoch in many.items()))
    script.ledgers(many, 10)
    script.carrying(*many)
    script.batch_ends(failures=dict.fromkeys(many, lasts(StopReason.LOG_TRUNCATED)))
    assert len(script.state.failed) == 100
    again = min(many)
    script.start((again, "1.500"))
    script.ledger(again, "1.500", 10)
    assert len(script.state.failed) == 99


def test_a_hole_stops_the_partition_unless_the_settings_skip_it() -> None:
    """Records that retention removed are never passed over silently."""
    script = Script().owning(A).carrying(A)
    (event,) = script.batch_ends(failures={A: lasts(StopReason.OFFSET_OUT_OF_RANGE)})
    assert isinstance(event, StopConsumingEvent)
    assert event.partitions[0].reason is StopReason.OFFSET_OUT_OF_RANGE
    assert not script.did(ReadStartOffsets)


def test_a_hole_is_skipped_and_reported_when_asked() -> None:
    """Reading goes on where the log does; the ledger's offset is still what the commit expects."""
    script = Script(skips_holes=True, batch_period_ms=0).owning(A, B).carrying(A)
    assert script.batch_ends(failures={A: lasts(StopReason.OFFSET_OUT_OF_RANGE)}) == []
    assert script.did(ReadStartOffsets) == [ReadStartOffsets((A,))]
    script.take(inputs.StartOffsetsRead(script.now_ms, {A: 12, TopicPartition("x", 0): 3}))
    assert script.logged() == ["hole_skipped"]
    script.ends({A: 15, B: 10})
    assert script.carried(A) == (12, 15)
    (batch,) = script.did(CarryBatch)
    assert batch.ranges[0].ledger_offset == 10
    (report,) = [m for m in script.wait(2_000) if isinstance(m, ConsumerReport)]
    assert report.failed[0].detail == "skipped offsets 10 to 12: retention removed them"


def test_a_hole_whose_end_is_unknown_is_tried_again() -> None:
    """The next batch meets it again, and asks again."""
    script = Script(skips_holes=True).owning(A).carrying(A)
    script.batch_ends(failures={A: lasts(StopReason.OFFSET_OUT_OF_RANGE)})
    script.take(inputs.StartOffsetsNotRead(script.now_ms, UnreachableError("away")))
    assert script.logged() == ["start_offsets_unknown"]
    assert looks_after_ms(script) == 500


def test_a_batch_that_never_began_cannot_end() -> None:
    """The process would have answered twice."""
    with pytest.raises(AssertionError, match="never began"):
        Script().batch_ends()


def test_a_partition_whose_end_is_not_known_any_more_is_in_no_batch() -> None:
    """By its old end every batch would wait for it; the others go on."""
    script = Script().with_spark().owning(A, B)
    script.carrying(A, B)
    script.batch_ends({B: 15}, failures={A: passes()})
    script.wait(15_000)
    script.ledger(A, "1.1", 10)
    script.ends({B: 20}, failures={A: UnreachableError("no leader")})
    (batch,) = script.did(CarryBatch)
    assert [one.range.partition for one in batch.ranges] == [B]
    assert script.state.progress[A].end_offset is None
    gone = TopicPartition("gone", 0)
    script.batch_ends({B: 20})
    script.wait(15_000)
    script.ends({B: 20}, failures={gone: UnreachableError("no leader")})
    assert gone not in script.state.progress, "it was stopped meanwhile"
