"""When a consumer reports, and what its reports hold."""

import pytest

from kit.consumer.consumer_script import A, B, Script, passes
from penstock.consumer.core import inputs
from penstock.consumer.core.effects import (
    SaveMailboxPositions,
    SetHealth,
    WriteGroupOffsets,
)
from penstock.consumer.core.inputs import StageTimes
from penstock.errors import UnreachableError
from penstock.messages import (
    ConsumerPhase,
    ConsumerReport,
    FromConsumer,
    PreviousShutdown,
    Wait,
    WaitsFor,
    Work,
    WorksOn,
)
from penstock.model import Epoch, TopicPartition


def only_report(messages: list[FromConsumer]) -> ConsumerReport:
    (report,) = messages
    assert isinstance(report, ConsumerReport)
    return report


def test_the_first_report_comes_at_once_and_then_every_period() -> None:
    """The controller learns that the consumer is up, and how the last incarnation ended."""
    script = Script(previous_shutdown=PreviousShutdown.CONTROLLED, deployment_version=7)
    report = only_report(script.wait(0))
    assert (report.report_number, report.phase) == (1, ConsumerPhase.RUNNING)
    assert report.previous_shutdown is PreviousShutdown.CONTROLLED
    assert report.deployment_version == 7
    assert script.wait(1_999) == []
    assert only_report(script.wait(1)).report_number == 2
    assert script.did(SetHealth) == [SetHealth("kafka", None)]
    assert script.did(WriteGroupOffsets) == [WriteGroupOffsets({})], "what failed is tried again"
    assert script.did(SaveMailboxPositions)


def test_a_report_holds_what_is_read_and_what_was_measured() -> None:
    """Offsets, speeds and backlog by partition; the work of the batches; then counts begin anew."""
    script = Script().owning(A, B)
    script.wait(0)
    script.sizes({A: 50.0})
    script.start((TopicPartition("orders", 2), "1.3"))
    script.carrying(A, records=20)
    times = StageTimes(0.1, 0.2, 0.3, 0.4)
    script.batch_ends({A: 30}, records=20, decoded_bytes=760, times=times)
    script.ends({A: 34, B: 10})
    report = only_report(script.wait(2_000))
    a, b = report.owned
    assert (a.epoch, a.next_offset, a.end_offset) == ("1.1", 30, 34)
    assert a.read_speed_log_bytes_per_s == pytest.approx(20 * 50 / 2)
    assert a.records_per_s == pytest.approx(10)
    assert (b.epoch, b.records_per_s) == ("1.2", 0), "the third one is not being read yet"
    assert (report.behind_records, report.behind_log_bytes) == (4, 200)
    assert report.capacity_log_bytes_per_s is None
    assert report.cycle is not None
    assert (report.cycle.batches, report.cycle.records) == (1, 20)
    assert (report.cycle.decoded_bytes, report.cycle.log_bytes) == (760, 1_000)
    assert (report.cycle.read_ms, report.cycle.commit_ms) == (100, 400)
    after = only_report(script.wait(2_000))
    assert after.cycle is not None
    assert (after.cycle.batches, after.owned[0].records_per_s) == (0, 0)


def test_a_report_that_kafka_would_not_take_is_left_out() -> None:
    """The health answer says so; the next report covers both periods."""
    script = Script().owning(A)
    script.wait(0)
    script.carrying(A)
    script.batch_ends({A: 15})
    assert script.wait(2_000, is_delivery_stuck=True) == []
    assert script.did(SetHealth) == [SetHealth("kafka", "the broker takes no reports")]
    assert script.wait(1_000) == []
    report = only_report(script.wait(1_000))
    assert report.owned[0].records_per_s == pytest.approx(5 / 4)


def test_a_report_says_that_spark_is_not_up_yet() -> None:
    """The wait for Spark begins with the process, ends with its start, and begins with its loss."""
    script = Script(restarts_spark=True)
    assert only_report(script.wait(0)).waits_for == Wait(what=WaitsFor.SPARK, since_ms_ago=0)
    assert only_report(script.wait(2_000)).waits_for == Wait(
        what=WaitsFor.SPARK, since_ms_ago=2_000
    )
    script.spark()
    assert only_report(script.wait(2_000)).waits_for is None
    script.owning(A).carrying(A)
    script.batch_ends(failures={A: passes(is_spark_lost=True)})
    script.wait(1_999)
    assert only_report(script.wait(1)).waits_for == Wait(what=WaitsFor.SPARK, since_ms_ago=2_000)


@pytest.mark.parametrize("what", [WaitsFor.LAKE, WaitsFor.KAFKA])
def test_a_report_says_what_a_start_waits_for(what: WaitsFor) -> None:
    """A start whose ledger entry cannot be read says what is away, until it is read."""
    script = Script().with_spark()
    script.start((A, "1.1"))
    asked = {A: Epoch.parse("1.1")}
    assert only_report(script.wait(2_000)).waits_for == Wait(what=WaitsFor.LAKE, since_ms_ago=2_000)
    script.take(inputs.LedgerNotRead(script.now_ms, UnreachableError("away"), asked, what))
    since_ms_ago = 4_000 if what is WaitsFor.LAKE else 2_000
    waits = only_report(script.wait(2_000)).waits_for
    assert waits == Wait(what=what, since_ms_ago=since_ms_ago)
    script.ledger(A, "1.1", 10)
    assert only_report(script.wait(2_000)).waits_for is None


def test_a_partition_of_a_table_that_cannot_be_read_waits_for_the_lake() -> None:
    """Other tables were read, and so was Kafka: the earlier wait for Kafka is over."""
    script = Script().with_spark().owning(B)
    script.take(inputs.EndsNotRead(script.now_ms, UnreachableError("away")))
    script.start((A, "1.2"))
    asked = {A: Epoch.parse("1.2")}
    failures = {A: UnreachableError("a broken log")}
    script.take(inputs.LedgerRead(script.now_ms, asked, {}, failures, WaitsFor.LAKE))
    waits = only_report(script.wait(2_000)).waits_for
    assert waits == Wait(what=WaitsFor.LAKE, since_ms_ago=2_000)


def test_a_partition_that_kafka_does_not_answer_for_is_waited_for() -> None:
    """The ledger was read, so it is Kafka that is waited for; an answer for all ends the wait."""
    script = Script().with_spark()
    script.start((A, "1.1"))
    asked = {A: Epoch.parse("1.1")}
    failures = {A: UnreachableError("no leader")}
    script.take(inputs.LedgerRead(script.now_ms, asked, {}, failures))
    waits = only_report(script.wait(2_000)).waits_for
    assert waits == Wait(what=WaitsFor.KAFKA, since_ms_ago=2_000)
    script.ledger(A, "1.1", 10)
    assert only_report(script.wait(2_000)).waits_for is None


def test_a_look_that_kafka_does_not_answer_is_a_wait() -> None:
    """It ends with the next look that is answered."""
    script = Script().with_spark().owning(A)
    script.take(inputs.EndsNotRead(script.now_ms, UnreachableError("away")))
    waits = only_report(script.wait(2_000)).waits_for
    assert waits == Wait(what=WaitsFor.KAFKA, since_ms_ago=2_000)
    script.ends({A: 10})
    assert only_report(script.wait(2_000)).waits_for is None


def test_a_report_names_the_running_batch() -> None:
    """A stop waits for the batch, and the controller learns that it does."""
    script = Script().owning(A).carrying(A)
    script.stop((A, "1.1"))
    works = only_report(script.wait(30_000)).works_on
    assert works == Work(what=WorksOn.BATCH, since_ms_ago=30_000)
    script.batch_ends({A: 15})
    assert only_report(script.wait(2_000)).works_on is None
