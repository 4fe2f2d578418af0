"""What a consumer owns, which commands it obeys and refuses, and which messages it sends."""

from typing import Any

import pytest

from kit.consumer.consumer_script import (
    A,
    B,
    Script,
    a_query_waits_for_the_commands_before_it,
    lasts,
    start_command,
    stop_command,
)
from penstock.consumer.core.effects import EndControlled, ForgetGroupOffset, ReadLedger
from penstock.consumer.core.inputs import MessagesRead
from penstock.messages import (
    CommandRefusedEvent,
    ConsumerPhase,
    ConsumerReport,
    FromConsumer,
    RefusalReason,
    StartConsumingEvent,
    StateQuery,
    StateQueryResponse,
    StopConsumingEvent,
    StopReason,
)
from penstock.model import Epoch, TopicPartition


def said(messages: list[FromConsumer]) -> list[str]:
    """The kind of each message, and its partitions with their epochs."""
    found = []
    for m in messages:
        rows: Any = getattr(m, "partitions", getattr(m, "owned", ()))
        names = " ".join(f"{row.topic_partition}@{row.epoch}" for row in rows)
        found.append(f"{m.event_type} {names}".strip())
    return found


def test_what_the_leader_did_not_write_is_refused() -> None:
    """Nothing of it counts, and its epoch neither: the leading controller is obeyed on."""
    script = Script().owning(A)
    before = script.own
    forged = (
        StateQuery(consumer_id=1, controller_epoch=999_999_999, plan_number=1, query_number=1),
        stop_command((A, "999999999.1"), controller_epoch=999_999_999),
        start_command((B, "999999999.2"), controller_epoch=999_999_999),
    )
    said = script.take(MessagesRead(script.now_ms, (), not_from_leader=forged))
    assert [one.event_type for one in said] == ["CommandRefusedEvent"] * 2
    for one, times in zip(said, (1, 2), strict=True):
        assert isinstance(one, CommandRefusedEvent)
        assert (one.reason, one.refused_times) == (RefusalReason.NOT_FROM_LEADER, times)
        assert (one.refused_controller_epoch, one.controller_epoch) == (999_999_999, 1)
    assert (script.own.controller_epoch, script.own.owned) == (1, before.owned)
    assert script.own.refused_as_foreign == 3
    (response,) = script.query(plan=2)
    assert response.event_type == "StateQueryResponse"


def test_a_flood_of_forged_messages_is_told_a_few_times() -> None:
    """The first, the 2nd, 4th, 8th and so on, each with the count."""
    script = Script()
    query = StateQuery(consumer_id=1, controller_epoch=7, plan_number=1, query_number=1)
    said = script.take(MessagesRead(script.now_ms, (), not_from_leader=(query,) * 100))
    told = [one.refused_times for one in said if isinstance(one, CommandRefusedEvent)]
    assert told == [1, 2, 4, 8, 16, 32, 64]
    assert script.logged().count("message_refused") == 7


def test_a_start_reads_the_ledger_and_then_says_so() -> None:
    """Reading begins at the very offset that the ledger holds."""
    script = Script()
    assert script.start((A, "1.1")) == []
    assert script.did(ReadLedger) == [ReadLedger({A: Epoch(1, 1)})]
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
    script = Script().owning(A, B).carrying(A)
    assert script.stop((A, "1.1")) == []
    assert script.own.readable == {B: 10}
    assert script.start((A, "1.1")) == [], "it is being stopped"
    (event,) = script.batch_ends({A: 15})
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
def test_what_is_stale_or_foreign_is_refused_with_a_reason(
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
    script = Script().owning(A).carrying(A)
    script.start((A, "1.7"))
    assert script.stop((A, "1.7")) == []
    assert said(script.batch_ends()) == ["StopConsumingEvent orders-0@1.7"]
    assert script.start((A, "1.7"))[0].event_type == "CommandRefusedEvent"


def test_a_new_start_of_what_is_read_takes_effect_after_the_batch() -> None:
    """The ledger is read again only when nothing is in flight."""
    script = Script().owning(A)
    assert script.start((A, "1.4")) == []
    assert script.did(ReadLedger) == [ReadLedger({A: Epoch(1, 4)})]
    script.ledger(A, "1.4", 10)
    script.carrying(A)
    assert script.start((A, "1.6")) == []
    assert not script.did(ReadLedger)
    script.batch_ends({A: 11})
    assert script.did(ReadLedger) == [ReadLedger({A: Epoch(1, 6)})]
    assert script.ledger(A, "1.4", 11) == [], "an answer for an older start is ignored"


def test_a_stop_of_the_old_and_a_start_of_the_new_cross() -> None:
    """Both are obeyed: the old one is acknowledged, and then the new one begins."""
    script = Script().owning(A).carrying(A)
    script.stop((A, "1.1"))
    script.start((A, "1.9"))
    assert said(script.batch_ends()) == ["StopConsumingEvent orders-0@1.1"]
    assert script.did(ReadLedger) == [ReadLedger({A: Epoch(1, 9)})]


def test_a_refused_commit_gives_the_partition_up() -> None:
    """Another consumer writes it: this one stops it, and its unwritten group offset is void."""
    script = Script().owning(A, B).carrying(A, B)
    (event,) = script.batch_ends({B: 20}, refused=[A])
    assert isinstance(event, StopConsumingEvent)
    assert event.partitions[0].reason is StopReason.LEDGER_REFUSED
    assert script.own.readable == {B: 20}
    assert script.did(ForgetGroupOffset) == [ForgetGroupOffset(A)]
    assert script.logged() == ["batch_carried", "ledger_refused"]


def test_a_start_that_slept_too_long_gives_up() -> None:
    """The ledger names a higher epoch: another consumer was started since."""
    script = Script()
    script.start((A, "1.1"))
    (event,) = script.ledger(A, "1.1", 42, last_epoch=Epoch(1, 5))
    assert isinstance(event, StopConsumingEvent)
    assert event.partitions[0].reason is StopReason.LEDGER_REFUSED
    assert script.own.readable == {}


def test_a_partition_that_fails_is_stopped_alone() -> None:
    """The reason travels, on one line; the others go on."""
    script = Script().owning(A, B).carrying(A, B)
    failure = lasts(StopReason.TRANSFORMATION_FAILED, "line one\nline two" * 20)
    (event,) = script.batch_ends({B: 15}, {A: failure})
    assert isinstance(event, StopConsumingEvent)
    assert event.partitions[0].detail.startswith("line one line two")
    assert script.own.readable == {B: 15}


def test_a_query_is_answered_after_the_commands_before_it() -> None:
    """And at once when nothing is pending."""
    a_query_waits_for_the_commands_before_it()
    (answer,) = Script().owning(A).query(number=3)
    assert isinstance(answer, StateQueryResponse)
    assert answer.query_number == 3
    assert said([answer]) == ["StateQueryResponse orders-0@1.1"]


def test_after_an_answer_no_earlier_plan_is_obeyed() -> None:
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
    (event,) = script.read(other)
    assert isinstance(event, CommandRefusedEvent)
    assert event.reason is RefusalReason.OTHER_CONSUMER


def test_a_controlled_shutdown_gives_everything_up_in_order() -> None:
    """Stops go out, then the last report; only then does the process end."""
    script = Script().owning(A, B).carrying(B)
    assert said(script.shut_down()) == ["StopConsumingEvent orders-0@1.1"]
    assert script.own.phase is ConsumerPhase.STOPPING
    (event,) = script.start((A, "1.8"))
    assert isinstance(event, CommandRefusedEvent)
    assert event.reason is RefusalReason.SHUTTING_DOWN
    script.start((B, "1.9"), plan_number=2)
    stopped, report = script.batch_ends({B: 12})
    assert said([stopped]) == ["StopConsumingEvent orders-1@1.2"]
    assert isinstance(report, ConsumerReport)
    assert report.phase is ConsumerPhase.STOPPED
    assert script.did(EndControlled) == [EndControlled(within_ms=10_000)]
    assert script.wait(60_000) == [], "nothing is sent after the end"


def test_every_message_is_numbered() -> None:
    """The controller can tell the newest message from a late one."""
    script = Script()
    numbers = [m.sequence for _ in range(3) for m in script.wait(2_000)]
    assert numbers == [1, 2, 3]


def test_long_lists_are_cut() -> None:
    """A consumer of thousands of partitions sends messages that fit."""
    script = Script()
    many = [(TopicPartition("t", n), f"1.{n + 1}") for n in range(1_500)]
    script.start(*many[:1_000])
    script.start(*many[1_000:])
    script.ledgers({partition: Epoch.parse(epoch) for partition, epoch in many}, 0)
    reports = script.wait(2_000)
    assert [(m.part, m.parts) for m in reports if isinstance(m, ConsumerReport)] == [(1, 2), (2, 2)]
    stops = script.shut_down()
    assert [m.event_type for m in stops[:2]] == ["StopConsumingEvent"] * 2


def test_of_messages_read_together_stops_come_first_and_queries_last() -> None:
    """A query that was read first still sees what was commanded with it."""
    script = Script().owning(A)
    query = StateQuery(consumer_id=1, controller_epoch=1, plan_number=1, query_number=1)
    messages = script.read(query, start_command((B, "1.5")), stop_command((A, "1.1")))
    assert said(messages) == ["StopConsumingEvent orders-0@1.1"]
    answers = script.ledger(B, "1.5", 0)
    assert said(answers) == [
        "StartConsumingEvent orders-1@1.5",
        "StateQueryResponse orders-1@1.5",
    ]


def test_of_two_queries_that_wait_only_the_newest_is_answered() -> None:
    """In a long outage of the lake the controller asks often; it reads one answer."""
    script = Script()
    script.start((A, "1.1"))
    assert script.query(number=1) == []
    assert script.query(number=2) == []
    answers = [one for one in script.ledger(A, "1.1", 10) if isinstance(one, StateQueryResponse)]
    assert [one.query_number for one in answers] == [2]


def test_a_stop_also_ends_the_start_that_waits_for_the_batch() -> None:
    """A start came while its batch ran, then a stop: nothing of it begins when the batch ends."""
    script = Script().owning(A).carrying(A)
    script.start((A, "1.5"))
    script.read(stop_command((A, "1.6")))
    events = script.batch_ends({A: 15})
    assert [one for one in events if isinstance(one, StopConsumingEvent)]
    assert not script.did(ReadLedger)
    assert A not in script.own.owned
