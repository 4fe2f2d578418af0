"""What a consumer owns, which commands it obeys and refuses, and what it says."""

from typing import Any

import pytest

from kit.consumer.ownership_script import A, B, Script, a_query_waits_for_the_commands_before_it
from penstock.consumer.core import inputs
from penstock.consumer.core.effects import EndControlled, ReadLedger
from penstock.consumer.core.ownership import stops_first
from penstock.messages import (
    CommandRefusedEvent,
    ConsumerPhase,
    ConsumerReport,
    FromConsumer,
    PartitionToStart,
    PartitionToStop,
    RefusalReason,
    ReportedPartition,
    StartConsumingCommand,
    StartConsumingEvent,
    StateQuery,
    StateQueryResponse,
    StopConsumingCommand,
    StopConsumingEvent,
    StopReason,
)
from penstock.model import Epoch, TopicPartition


def said(messages: list[FromConsumer]) -> list[str]:
    """What was said, for people: the kind, and the partitions with their epochs."""
    found = []
    for m in messages:
        rows: Any = getattr(m, "partitions", getattr(m, "owned", ()))
        names = " ".join(f"{row.topic_partition}@{row.epoch}" for row in rows)
        found.append(f"{m.event_type} {names}".strip())
    return found


def test_a_start_reads_the_ledger_and_then_says_so() -> None:
    """Reading begins at the very offset that the ledger holds."""
    script = Script()
    assert script.start((A, "1.1")) == []
    assert script.effects == (ReadLedger(A, Epoch(1, 1)),)
    (event,) = script.ledger(A, "1.1", 42)
    assert isinstance(event, StartConsumingEvent)
    assert event.partitions[0].next_offset == 42
    assert script.own.readable == {A: 42}


def test_a_command_sent_again_is_acknowledged_again() -> None:
    """Commands are idempotent: nothing is read twice, and the controller gets its answer."""
    script = Script().owning(A)
    assert said(script.start((A, "1.1"))) == ["StartConsumingEvent orders-0@1.1"]
    script.stop((A, "1.1"))
    assert said(script.stop((A, "1.1"))) == ["StopConsumingEvent orders-0@1.1"]
    assert script.start((B, "1.2")) == []
    assert script.start((B, "1.2")) == [], "its ledger is not read yet"


def test_a_stop_waits_for_the_running_batch_and_others_go_on() -> None:
    """Nothing of a partition is in flight when its stop is acknowledged."""
    script = Script().owning(A, B)
    script.take(inputs.BatchBegan([A]))
    assert script.stop((A, "1.1")) == []
    assert script.own.readable == {B: 10}
    assert script.start((A, "1.1")) == [], "it is being stopped"
    (event,) = script.take(inputs.BatchEnded({A: 15}))
    assert isinstance(event, StopConsumingEvent)
    assert event.partitions[0].next_offset == 15
    assert A not in script.own.owned


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ({"consumer_id": 2}, RefusalReason.OTHER_CONSUMER),
        ({"incarnation": 7}, RefusalReason.OTHER_INCARNATION),
        ({"controller_epoch": 1}, RefusalReason.STALE_CONTROLLER_EPOCH),
        ({"controller_epoch": 2, "plan_number": 4}, RefusalReason.STALE_PLAN),
    ],
)
def test_what_is_stale_or_foreign_is_refused_aloud(
    head: dict[str, int], reason: RefusalReason
) -> None:
    """Each refusal names its reason and the command's own numbers."""
    script = Script()
    script.start((B, "2.1"), controller_epoch=2, plan_number=5)
    usual = {"controller_epoch": 2, "plan_number": 5}
    (event,) = script.start((A, "2.2"), **{**usual, **head})
    assert isinstance(event, CommandRefusedEvent)
    assert event.reason is reason
    assert event.refused_plan_number == head.get("plan_number", 5)
    assert A not in script.own.owned


def test_an_epoch_that_ended_is_never_begun_again() -> None:
    """A start that comes after its stop, or under a lower epoch, is refused."""
    script = Script()
    script.stop((A, "1.5"))
    for epoch in ("1.5", "1.4"):
        (event,) = script.start((A, epoch))
        assert isinstance(event, CommandRefusedEvent)
        assert event.reason is RefusalReason.STALE_PARTITION_EPOCH
    assert said(script.start((A, "1.6"))) == []
    (event,) = script.start((A, "1.3"))
    assert isinstance(event, CommandRefusedEvent)
    (event,) = script.stop((A, "1.3"))
    assert isinstance(event, CommandRefusedEvent), "an older stop does not end a newer start"


def test_what_ended_under_a_former_controller_is_forgotten() -> None:
    """Memory is bounded: the former controller's commands are refused for its epoch already."""
    script = Script()
    script.stop((A, "1.5"))
    script.start((B, "2.1"), controller_epoch=2)
    assert script.own.ended == {}


def test_a_stop_of_an_epoch_that_never_began_ends_the_older_one() -> None:
    """The start was lost, its stop was not: what is in flight under the older epoch ends first."""
    script = Script().owning(A)
    script.take(inputs.BatchBegan([A]))
    script.start((A, "1.7"))
    assert script.stop((A, "1.7")) == []
    assert said(script.take(inputs.BatchEnded())) == ["StopConsumingEvent orders-0@1.7"]
    assert script.start((A, "1.7"))[0].event_type == "CommandRefusedEvent"


def test_a_new_start_of_what_is_read_takes_effect_after_the_batch() -> None:
    """The ledger is read again only when nothing is in flight."""
    script = Script().owning(A)
    assert script.start((A, "1.4")) == []
    assert list(script.effects) == [ReadLedger(A, Epoch(1, 4))]
    script.ledger(A, "1.4", 10)
    script.take(inputs.BatchBegan([A]))
    assert script.start((A, "1.6")) == []
    assert not script.effects
    script.take(inputs.BatchEnded({A: 11}))
    assert list(script.effects) == [ReadLedger(A, Epoch(1, 6))]
    assert script.ledger(A, "1.4", 11) == [], "an answer for an older start is ignored"


def test_a_stop_of_the_old_and_a_start_of_the_new_cross() -> None:
    """Both are obeyed: the old one is acknowledged, and then the new one begins."""
    script = Script().owning(A)
    script.take(inputs.BatchBegan([A]))
    script.stop((A, "1.1"))
    script.start((A, "1.9"))
    assert said(script.take(inputs.BatchEnded())) == ["StopConsumingEvent orders-0@1.1"]
    assert ReadLedger(A, Epoch(1, 9)) in script.effects


def test_settling_one_partition_does_not_end_the_batch_of_another() -> None:
    """An outcome of before becomes known while a batch runs: that batch still counts in full."""
    script = Script().owning(A, B)
    script.take(inputs.BatchBegan([B]))
    script.take(inputs.BatchBegan([A]))
    script.take(inputs.BatchEnded({A: 50}, partitions=(A,)))
    assert script.own.owned[B].is_in_batch
    script.take(inputs.BatchEnded({B: 60}, partitions=(B,)))
    assert script.own.readable == {A: 50, B: 60}


def test_a_refused_commit_gives_the_partition_up() -> None:
    """Somebody else writes it: this consumer stops itself, and says so."""
    script = Script().owning(A, B)
    script.take(inputs.BatchBegan([A, B]))
    (event,) = script.take(inputs.BatchEnded({B: 20}, refused=[A]))
    assert isinstance(event, StopConsumingEvent)
    assert event.partitions[0].reason is StopReason.LEDGER_REFUSED
    assert script.own.readable == {B: 20}


def test_a_start_that_slept_too_long_gives_up() -> None:
    """The ledger names a higher epoch: somebody else was told to start it since."""
    script = Script()
    script.start((A, "1.1"))
    (event,) = script.take(inputs.LedgerRead(A, Epoch(1, 1), 42, last_epoch=Epoch(1, 5)))
    assert isinstance(event, StopConsumingEvent)
    assert event.partitions[0].reason is StopReason.LEDGER_REFUSED
    assert script.own.readable == {}


def test_a_partition_that_fails_is_stopped_alone() -> None:
    """The reason travels, on one line; the others go on."""
    script = Script().owning(A, B)
    failure = inputs.PartitionFailed(A, StopReason.TRANSFORMATION_FAILED, "line one\nline two" * 20)
    (event,) = script.take(failure)
    assert isinstance(event, StopConsumingEvent)
    assert event.partitions[0].detail.startswith("line one line two")
    assert script.take(failure) == []
    assert script.own.readable == {B: 10}


def test_a_query_is_answered_after_the_commands_before_it() -> None:
    """And at once when nothing is pending."""
    a_query_waits_for_the_commands_before_it()
    (answer,) = Script().owning(A).query(number=3)
    assert isinstance(answer, StateQueryResponse)
    assert answer.query_number == 3
    assert said([answer]) == ["StateQueryResponse orders-0@1.1"]


def test_whoever_answered_obeys_no_earlier_plan() -> None:
    """A command that is still on its way cannot make the answer untrue."""
    script = Script()
    script.query(plan=4)
    (event,) = script.start((A, "1.1"), plan_number=3)
    assert isinstance(event, CommandRefusedEvent)
    assert event.reason is RefusalReason.STALE_PLAN


def test_a_stale_or_foreign_query_is_refused() -> None:
    """A former controller learns that it is one."""
    script = Script()
    script.query(epoch=2)
    (event,) = script.query(epoch=1)
    assert isinstance(event, CommandRefusedEvent)
    assert event.reason is RefusalReason.STALE_CONTROLLER_EPOCH
    other = StateQuery(consumer_id=9, controller_epoch=2, plan_number=2, query_number=1)
    (event,) = script.take(inputs.QueryRead(other))
    assert isinstance(event, CommandRefusedEvent)
    assert event.reason is RefusalReason.OTHER_CONSUMER


def test_a_controlled_shutdown_gives_everything_up_in_order() -> None:
    """Stops are said, then the last report; only then does the process end."""
    script = Script().owning(A, B)
    script.take(inputs.BatchBegan([B]))
    assert said(script.take(inputs.ShutdownAsked())) == ["StopConsumingEvent orders-0@1.1"]
    assert script.own.phase is ConsumerPhase.STOPPING
    (event,) = script.start((A, "1.8"))
    assert isinstance(event, CommandRefusedEvent)
    assert event.reason is RefusalReason.SHUTTING_DOWN
    script.start((B, "1.9"), plan_number=2)
    stopped, report = script.take(inputs.BatchEnded({B: 12}))
    assert said([stopped]) == ["StopConsumingEvent orders-1@1.2"]
    assert isinstance(report, ConsumerReport)
    assert report.phase is ConsumerPhase.STOPPED
    assert script.effects[-1] == EndControlled()
    assert script.take(inputs.ReportDue()) == [], "after the end nothing is said"


def test_a_report_says_what_is_read_and_how_fast() -> None:
    """What is only about to be read is not reported; measured figures come along."""
    script = Script().owning(A, B)
    script.start((TopicPartition("orders", 2), "1.3"))
    measured = ReportedPartition(
        topic="orders", partition=0, epoch="0.0", read_speed_log_bytes_per_s=5.0
    )
    due = inputs.ReportDue(measured={A: measured}, behind_log_bytes=7)
    (report,) = script.take(due)
    assert isinstance(report, ConsumerReport)
    assert [(row.epoch, row.read_speed_log_bytes_per_s) for row in report.owned] == [
        ("1.1", 5.0),
        ("1.2", None),
    ]
    assert (report.behind_log_bytes, report.phase) == (7, ConsumerPhase.RUNNING)


def test_everything_said_is_numbered() -> None:
    """The controller can tell the newest word from a late one."""
    script = Script()
    numbers = [m.sequence for _ in range(3) for m in script.take(inputs.ReportDue())]
    assert numbers == [1, 2, 3]


def test_long_lists_are_cut() -> None:
    """A consumer of thousands of partitions speaks in messages that fit."""
    script = Script()
    many = [(TopicPartition("t", n), f"1.{n + 1}") for n in range(1_500)]
    script.start(*many[:1_000])
    script.start(*many[1_000:])
    for partition, epoch in many:
        script.ledger(partition, epoch, 0)
    reports = script.take(inputs.ReportDue())
    assert [(m.part, m.parts) for m in reports if isinstance(m, ConsumerReport)] == [(1, 2), (2, 2)]
    stops = script.take(inputs.ShutdownAsked())
    assert [m.event_type for m in stops[:2]] == ["StopConsumingEvent"] * 2


def test_stops_take_effect_before_starts() -> None:
    """Commands that were read together are sorted so."""
    head = {"consumer_id": 1, "incarnation": 1, "controller_epoch": 1, "plan_number": 1}
    start = StartConsumingCommand(
        **head, partitions=(PartitionToStart(topic="t", partition=0, epoch="1.1"),)
    )
    stop = StopConsumingCommand(
        **head, partitions=(PartitionToStop(topic="t", partition=1, epoch="1.1"),)
    )
    assert stops_first([start, stop, start]) == [stop, start, start]
