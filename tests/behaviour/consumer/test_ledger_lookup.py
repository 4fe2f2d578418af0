"""When the ledger is read, and what its answer means for a partition."""

import pytest

from kit.consumer.consumer_script import USUAL, A, B, Script, passes
from penstock.consumer.core import inputs, ledger_lookup, owned_partitions
from penstock.consumer.core.effects import Log, ReadEnds, ReadLedger, ReadLogSizes
from penstock.consumer.core.step_draft import StepDraft
from penstock.errors import UnreachableError
from penstock.messages import (
    StartConsumingEvent,
    StateQueryResponse,
    StopConsumingEvent,
    StopReason,
)
from penstock.model import Epoch, TopicPartition


def not_read(script: Script, asked: dict[TopicPartition, Epoch]) -> None:
    script.take(inputs.LedgerNotRead(script.now_ms, UnreachableError("away"), asked))


def asked_again_after_ms(script: Script) -> int:
    """How long until the ledger is asked again, in ticks of a tenth of a second."""
    for tick in range(1, 1_000):
        script.wait(100)
        if script.did(ReadLedger):
            return tick * 100
    raise AssertionError("the ledger is not asked again")


def test_starts_that_come_together_are_looked_up_together() -> None:
    """One read for all, and none while one is under way."""
    script = Script()
    script.start((A, "1.1"), (B, "1.2"))
    assert script.did(ReadLedger) == [ReadLedger({A: Epoch(1, 1), B: Epoch(1, 2)})]
    script.wait(60_000)
    assert not script.did(ReadLedger)


def test_a_failed_read_is_repeated_at_growing_intervals() -> None:
    """Half a second, one, two, and at most a quarter of a minute."""
    script = Script()
    script.start((A, "1.1"))
    waits = []
    for _ in range(7):
        not_read(script, {A: Epoch(1, 1)})
        assert script.logged() == ["ledger_not_read"]
        waits.append(asked_again_after_ms(script))
    assert waits == [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000]
    assert script.ledger(A, "1.1", 3), "it starts all the same"


def others_start_beside_one_that_cannot_be_asked_about() -> None:
    """The law that planted bugs break: a failure of one partition puts off that one alone."""
    script = Script()
    script.start((A, "1.1"), (B, "1.2"))
    asked = {A: Epoch(1, 1), B: Epoch(1, 2)}
    entries = {B: inputs.LedgerEntry("id", 3, 3)}
    failures = {A: UnreachableError("no leader")}
    said = script.take(inputs.LedgerRead(script.now_ms, asked, entries, failures))
    started = [one for one in said if isinstance(one, StartConsumingEvent)]
    assert started == said
    assert [row.topic_partition for one in started for row in one.partitions] == [B]
    assert "ledger_not_read" in script.logged()
    script.now_ms = 2 * USUAL.missing_partition_wait_ms
    assert script.wait(0), "a report is due"
    assert script.did(ReadLedger) == [ReadLedger({A: Epoch(1, 1)})]
    assert not script.take(inputs.LedgerRead(script.now_ms, {A: Epoch(1, 1)}, {}, failures))
    assert A in script.own.owned, "it is not taken for gone"


def test_a_partition_that_cannot_be_asked_about_is_put_off_alone() -> None:
    """No leader or no right: the others start, and it is asked for again."""
    others_start_beside_one_that_cannot_be_asked_about()


def test_every_reason_is_logged_once_with_its_partitions() -> None:
    """Two tables that cannot be read are two lines, however many partitions they have."""
    script = Script()
    third = TopicPartition("others", 0)
    script.start((A, "1.1"), (B, "1.2"), (third, "1.3"))
    asked = {A: Epoch(1, 1), B: Epoch(1, 2), third: Epoch(1, 3)}
    failures = {A: UnreachableError("x"), B: UnreachableError("x"), third: UnreachableError("y")}
    script.take(inputs.LedgerRead(script.now_ms, asked, {}, failures))
    lines = [one for one in script.did(Log) if one.event == "ledger_not_read"]
    assert [(one.fields["partitions"], one.fields["error"]) for one in lines] == [
        (2, "x"),
        (1, "y"),
    ]


def test_a_started_partition_that_cannot_be_asked_about_is_settled_later() -> None:
    """The outcome of its batch stays unknown until the ledger and Kafka can say it."""
    script = Script().owning(A).carrying(A)
    script.batch_ends(failures={A: passes()})
    script.wait(500)
    failures = {A: UnreachableError("no leader")}
    script.take(inputs.LedgerRead(script.now_ms, {A: Epoch(1, 1)}, {}, failures))
    assert asked_again_after_ms(script) == 1_000


def _given_up(draft: StepDraft, partition: TopicPartition, *_: object) -> None:
    owned_partitions.give_up(draft, partition, StopReason.TOPIC_DELETED, None, "gone")


@pytest.mark.parametrize("bug", ["a failure is taken for gone", "a failure is not asked again"])
def test_planted_bugs_about_failures_are_caught(monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    """Each bug makes the law fail that one partition is put off alone."""
    if bug == "a failure is taken for gone":
        monkeypatch.setattr(ledger_lookup, "_put_off", _given_up)
    else:
        monkeypatch.setattr(ledger_lookup, "_put_off", lambda draft, p, *_: draft.lookups.pop(p))
    with pytest.raises(AssertionError):
        others_start_beside_one_that_cannot_be_asked_about()


def test_a_query_does_not_wait_for_a_table_that_cannot_be_read() -> None:
    """The answer names the start without an offset: one table must not hold up a new controller."""
    script = Script().owning(A)
    script.start((B, "1.2"))
    assert script.query(number=1) == [], "the ledger may answer at once"
    failures = {B: UnreachableError("broken")}
    (answer,) = script.take(inputs.LedgerRead(script.now_ms, {B: Epoch(1, 2)}, {}, failures))
    (again,) = script.query(number=2)
    for one, number in ((answer, 1), (again, 2)):
        assert isinstance(one, StateQueryResponse)
        assert one.query_number == number
        rows = [(row.topic_partition, row.epoch, row.next_offset) for row in one.owned]
        assert rows == [(A, "1.1", 10), (B, "1.2", None)]
    script.wait(500)
    assert isinstance(script.ledger(B, "1.2", 3)[0], StartConsumingEvent), "it starts all the same"


def test_a_stop_that_waits_for_a_batch_still_holds_the_answer_back() -> None:
    """Only a start can be named before it has taken effect."""
    script = Script().owning(A).carrying(A)
    script.start((B, "1.2"))
    not_read(script, {B: Epoch(1, 2)})
    script.stop((A, "1.1"))
    assert script.query(plan=2) == []
    said = script.batch_ends({A: 12})
    (answer,) = [one for one in said if isinstance(one, StateQueryResponse)]
    assert [str(row.topic_partition) for row in answer.owned] == ["orders-1"]


def test_an_answer_for_an_older_start_is_ignored_and_asked_again() -> None:
    """The new start has an epoch of its own, and reads the ledger itself."""
    script = Script()
    script.start((A, "1.1"))
    script.start((A, "1.2"))
    assert not script.did(ReadLedger), "a read is under way"
    assert script.ledger(A, "1.1", 5) == []
    assert script.did(ReadLedger) == [ReadLedger({A: Epoch(1, 2)})]
    script.stop((A, "1.2"))
    assert script.ledger(A, "1.2", 5) == [], "it is not owned any more"


def test_a_failed_read_of_what_is_not_owned_any_more_changes_nothing() -> None:
    """Only partitions that are still owned are asked for again."""
    script = Script()
    script.start((A, "1.1"))
    script.stop((A, "1.1"))
    not_read(script, {A: Epoch(1, 1)})
    assert not script.state.lookups
    assert not script.state.progress


def test_a_new_partition_may_be_missing_for_a_while() -> None:
    """It is asked for again; one that stays missing is given up as gone."""
    script = Script(missing_partition_wait_ms=7_000)
    script.start((A, "1.1"))
    assert script.ledger_lacks(A, "1.1") == []
    assert asked_again_after_ms(script) == 500
    script.now_ms = 6_999
    assert script.ledger_lacks(A, "1.1") == []
    script.now_ms = 7_000
    (event,) = script.ledger_lacks(A, "1.1")
    assert isinstance(event, StopConsumingEvent)
    assert event.partitions[0].reason is StopReason.TOPIC_DELETED
    assert "does not have it" in event.partitions[0].detail


def test_a_started_partition_is_weighed_and_looked_at_at_once() -> None:
    """Nothing waits between the ledger's answer and the first look."""
    script = Script().with_spark()
    script.start((A, "1.1"))
    script.ledger(A, "1.1", 10)
    assert script.did(ReadLogSizes) == [ReadLogSizes((A,))]
    assert script.did(ReadEnds) == [ReadEnds((A,))]


def test_an_unknown_outcome_is_settled_by_the_ledger_before_reading_on() -> None:
    """The batch was committed: reading goes on behind it, and nothing is read twice."""
    script = Script().owning(A).carrying(A)
    script.batch_ends(failures={A: passes()})
    assert not script.did(ReadLedger)
    assert asked_again_after_ms(script) == 500
    script.ends({A: 15})
    assert script.state.batches.running is None, "it is not settled yet"
    script.ledger(A, "1.1", 15)
    script.ends({A: 18})
    assert script.carried(A) == (15, 18)


def test_an_unknown_outcome_that_was_not_committed_is_read_again() -> None:
    """Also when the ledger holds nothing of the partition yet."""
    script = Script()
    script.start((A, "1.1"))
    script.ledger(A, "1.1", 10, ledger_offset=None)
    script.carrying(A)
    script.batch_ends(failures={A: passes()})
    script.wait(500)
    script.ledger(A, "1.1", 10, ledger_offset=None)
    script.ends({A: 15})
    assert script.carried(A) == (10, 15)


def test_an_unknown_outcome_may_show_that_another_consumer_took_over() -> None:
    """The ledger names a higher epoch: the partition is given up."""
    script = Script().owning(A).carrying(A)
    script.batch_ends(failures={A: passes()})
    script.wait(500)
    (event,) = script.ledger(A, "1.1", 15, last_epoch=Epoch(1, 9))
    assert isinstance(event, StopConsumingEvent)
    assert event.partitions[0].reason is StopReason.LEDGER_REFUSED


def test_settling_fails_and_is_repeated() -> None:
    """The pauses grow on from those of the batch."""
    script = Script().owning(A).carrying(A)
    script.batch_ends(failures={A: passes()})
    assert asked_again_after_ms(script) == 500
    not_read(script, {A: Epoch(1, 1)})
    assert asked_again_after_ms(script) == 1_000


def test_a_started_partition_may_be_missing_for_a_while() -> None:
    """A topic that is being made again is away for a moment; one that stays away is deleted."""
    script = Script(missing_partition_wait_ms=7_000).owning(A).carrying(A)
    script.batch_ends(failures={A: passes()})
    script.wait(500)
    assert script.ledger_lacks(A, "1.1") == []
    assert asked_again_after_ms(script) == 1_000
    script.now_ms += 60_000
    script.ledger(A, "1.1", 10)
    assert script.ledger_lacks(A, "1.1") == [], "it was back meanwhile"
    missing_ms = script.now_ms
    script.now_ms = missing_ms + 6_999
    assert script.ledger_lacks(A, "1.1") == []
    script.now_ms = missing_ms + 7_000
    (event,) = script.ledger_lacks(A, "1.1")
    assert isinstance(event, StopConsumingEvent)
    assert event.partitions[0].reason is StopReason.TOPIC_DELETED
    assert script.state.failed[A].offset == 10


def test_settling_one_partition_does_not_end_the_batch_of_another() -> None:
    """An outcome becomes known while a batch runs: that batch still counts in full."""
    script = Script().owning(A, B).carrying(A)
    script.batch_ends(failures={A: passes()})
    script.carrying(B)
    script.wait(500)
    script.ledger(A, "1.1", 50)
    assert script.own.owned[B].is_in_batch
    script.batch_ends({B: 15})
    assert script.own.readable == {A: 50, B: 15}
