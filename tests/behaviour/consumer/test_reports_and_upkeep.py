"""When a consumer reports, what its reports hold, and when it keeps its tables."""

import pytest

from kit.consumer.consumer_script import A, B, Script
from penstock.consumer.core import inputs
from penstock.consumer.core.effects import (
    KeepTables,
    SaveMailboxPositions,
    SetHealth,
    WriteGroupOffsets,
)
from penstock.consumer.core.inputs import StageTimes
from penstock.errors import UnreachableError
from penstock.messages import ConsumerPhase, ConsumerReport, FromConsumer, PreviousShutdown
from penstock.model import TopicPartition


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


def test_tables_are_kept_once_a_period_and_never_twice_at_once() -> None:
    """The next time counts from the end of the last; a failure is only logged."""
    script = Script(upkeep_period_ms=10_000).owning(A, B)
    script.wait(9_999)
    assert not script.did(KeepTables)
    script.wait(1)
    assert script.did(KeepTables) == [KeepTables(("orders",))]
    script.wait(60_000)
    assert not script.did(KeepTables), "the last one has not ended"
    script.take(inputs.TablesKept(script.now_ms))
    script.wait(10_000)
    assert script.did(KeepTables)
    script.take(inputs.TablesNotKept(script.now_ms, UnreachableError("away")))
    assert script.logged() == ["table_not_kept_up"]
    script.wait(10_000)
    assert script.did(KeepTables)


def test_without_partitions_no_table_is_kept() -> None:
    """It is looked at again after the period."""
    script = Script(upkeep_period_ms=10_000)
    script.wait(10_000)
    assert not script.did(KeepTables)
    script.owning(A)
    script.wait(10_000)
    assert script.did(KeepTables)
