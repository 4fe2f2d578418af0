"""The checks that every message passes: who speaks, in which incarnation, and in which order."""

import pytest

from kit.controller.story import SECOND_FALLS_SILENT, TWO_CONSUMERS, Storyteller, after
from kit.controller.story_state import state_of
from penstock.controller.core.decisions import HISTORY_MAX, Code
from penstock.controller.core.incarnations import AHEAD_OF_THE_CLOCK_MAX_MS, STARTS_UNHEARD_MAX
from penstock.controller.core.inputs import INPUT_TYPES, ConsumerMessageRead, LeadershipLost
from penstock.controller.core.saved_state import decode_state, encode_state
from penstock.controller.core.state import Phase, State
from penstock.controller.core.state_machine import HANDLERS, Machine
from penstock.controller.core.step_draft import StepDraft
from penstock.controller.core.transitions import TRANSITIONS, TransitionError, go
from penstock.messages import (
    ConsumerPhase,
    ConsumerReport,
    StartConsumingEvent,
    StartedPartition,
)
from penstock.model import ConsumerId, TopicPartition
from penstock.model.epoch import INTEGER_MAX
from penstock.settings import Settings


def counted(teller: Storyteller, name: str) -> int:
    return state_of(teller).counts.get(name, 0)


def test_every_input_has_a_handler_in_every_state() -> None:
    """The table is whole: nothing can arrive that no state knows."""
    for phase in set(Phase) - {Phase.SUPERSEDED}:
        for kind in set(INPUT_TYPES) - {LeadershipLost}:
            assert (phase, kind) in HANDLERS


def test_what_is_not_in_the_table_raises() -> None:
    """A transition nobody thought of is a mistake, not a surprise."""
    draft = StepDraft(state_of(after("a controller starts with epoch 1")), 0)
    with pytest.raises(TransitionError, match="no transition from Synchronize to Reassign"):
        go(draft, Phase.REASSIGN, "a reassignment is due")
    assert len({(t.origin, t.destination, t.why) for t in TRANSITIONS}) == len(TRANSITIONS)


def test_an_epoch_is_never_taken_twice() -> None:
    """A controller that would reuse the saved epoch does not begin."""
    saved = state_of(after("a controller starts with epoch 5"))
    with pytest.raises(ValueError, match="epoch 5 is not above the saved 5"):
        Machine().begin(controller_epoch=5, settings=Settings(), now_ms=0, saved=saved)


def test_an_unknown_consumer_is_looked_for() -> None:
    """It may have been deployed by hand, or hidden by a stale list: the list is asked for."""
    teller = after(*TWO_CONSUMERS)
    assert "  > list deployments" in teller.tell("consumer 7 reports")
    lines = teller.tell("deployed: 1 2 7/3")
    assert lines[0] == "  consumer_adopted: consumer 7 is deployed and was unknown"
    teller.tell("consumer 7 reports")
    assert state_of(teller).consumers[7].deployment_version == 3  # type: ignore[index]  # a number


def test_a_consumer_that_was_given_up_is_not_heard() -> None:
    """Its deletion is under way; what it says changes nothing."""
    teller = after(*TWO_CONSUMERS, *SECOND_FALLS_SILENT)
    assert counted(teller, "departed_consumer_spoke") == 0
    teller.tell("consumer 2 reports orders-2@1.3")
    assert counted(teller, "departed_consumer_spoke") == 1
    assert "  > delete consumer 2" in teller.tell("tick +5000")
    teller.tell("deployed: 1")
    assert not state_of(teller).departing


def test_a_message_that_comes_twice_counts_once() -> None:
    """Order is checked by the sender's own count."""
    teller = after(*TWO_CONSUMERS, "the same message comes again")
    assert counted(teller, "out_of_order") == 1


def test_a_former_incarnation_is_not_believed() -> None:
    """After a restart, what the incarnation before still says is dropped."""
    teller = after(*TWO_CONSUMERS, "consumer 2 starts again", "consumer 2 reports")
    teller.incarnation[2] = 1
    assert teller.tell("consumer 2 reports orders-2@1.3") == []
    assert counted(teller, "former_incarnation_spoke") == 1


def test_a_deletion_that_nobody_asked_for_is_looked_into() -> None:
    """Somebody deleted a consumer by hand: the list will tell."""
    teller = after(*TWO_CONSUMERS)
    assert "  > list deployments" in teller.tell("consumer 1 is deleted")


def test_a_reader_that_was_hidden_keeps_what_nobody_else_has() -> None:
    """It is adopted with what it reads; what does not exist any more is stopped."""
    teller = after(
        "a controller starts with epoch 2",
        "deployed:",
        "deployed:",
        "speeds orders-0=40",
        "deployed: 4",
        "consumer 4 reports",
    )
    lines = teller.tell("consumer 4 reports orders-0@1.1 gone-0@1.2")
    assert "  > stop at 4: gone-0@1.2 (plan 1)" in lines
    assert TopicPartition("orders", 0) in state_of(teller).holdings
    assert counted(teller, "reader_adopted") == 1


def test_a_claim_that_cannot_be_true_is_ignored() -> None:
    """Nobody was ever given that epoch: a lying consumer moves nothing, and stops nothing."""
    teller = after(*TWO_CONSUMERS)
    assert teller.tell("consumer 1 reports orders-0@1.1 orders-1@1.2 orders-2@1.999") == []
    assert counted(teller, "impossible_claim") == 1
    lines = teller.tell("consumer 1 reports orders-0@1.1 orders-1@1.2 orders-1@1.1")
    assert lines == [], "an older epoch of what it holds itself"


def test_a_forged_restart_that_claims_an_older_epoch_does_not_stop_the_controller() -> None:
    """A new incarnation releases what the former one had; it cannot have had it under an older one.

    One such message ended the controller: the epoch of a partition fell.
    """
    teller = after(*TWO_CONSUMERS)
    held = state_of(teller).holdings[TopicPartition("orders", 2)]
    assert str(held.epoch) == "1.3"
    teller.tell("consumer 2 starts again")
    teller.tell("consumer 2 reports orders-2@1.2")
    assert counted(teller, "impossible_claim") == 1
    assert state_of(teller).phase is not Phase.SUPERSEDED


NOW_UNIX_MS = 1_790_000_000_000


def from_the_future(incarnation: int, sequence: int = 1, consumer: int = 1) -> ConsumerMessageRead:
    """What somebody writes in the name of a consumer, or one whose clock is wrong."""
    report = ConsumerReport(
        consumer_id=consumer,
        incarnation=incarnation,
        sequence=sequence,
        controller_epoch=1,
        plan_number=1,
        report_number=1,
        phase=ConsumerPhase.RUNNING,
    )
    return ConsumerMessageRead(NOW_UNIX_MS, report, unix_ms=NOW_UNIX_MS)


@pytest.mark.parametrize("ahead_ms", [AHEAD_OF_THE_CLOCK_MAX_MS + 1, INTEGER_MAX - NOW_UNIX_MS])
@pytest.mark.parametrize("script", [TWO_CONSUMERS, TWO_CONSUMERS[:1]], ids=["watching", "asking"])
def test_an_incarnation_of_the_far_future_is_refused(
    ahead_ms: int, script: tuple[str, ...]
) -> None:
    """Nobody could ever use that consumer's number again, nor a controller the saved state."""
    teller = after(*script)
    before = state_of(teller)
    (line,) = teller.give(from_the_future(NOW_UNIX_MS + ahead_ms))
    assert line.startswith("  message_refused: a message of consumer 1 names an incarnation that")
    assert line.endswith(" is more than a day ahead of the controller's clock: refused")
    assert counted(teller, "impossible_incarnation") == 1
    assert state_of(teller).incarnation_floor == before.incarnation_floor
    assert state_of(teller).consumers == before.consumers
    teller.tell("consumer 1 reports orders-0@1.1 orders-1@1.2")
    assert isinstance(decode_state(encode_state(state_of(teller)), Settings()), State)


def test_clocks_that_differ_and_one_that_was_set_back_are_heard() -> None:
    """A consumer may be ahead by hours; one that counts on from a wrong clock is known."""
    teller = after(*TWO_CONSUMERS)
    ahead = NOW_UNIX_MS + AHEAD_OF_THE_CLOCK_MAX_MS
    teller.give(from_the_future(ahead))
    assert state_of(teller).incarnation_floor[ConsumerId(1)] == ahead
    teller.give(from_the_future(ahead + STARTS_UNHEARD_MAX))
    assert state_of(teller).incarnation_floor[ConsumerId(1)] == ahead + STARTS_UNHEARD_MAX
    teller.give(from_the_future(ahead + 2 * STARTS_UNHEARD_MAX + 1))
    assert counted(teller, "impossible_incarnation") == 1


def test_offsets_of_what_the_sender_does_not_hold_are_not_kept() -> None:
    """They are saved, and nothing would ever remove those of partitions that do not exist."""
    teller = after(*TWO_CONSUMERS)
    known = dict(state_of(teller).ledger_offsets)
    epochs = {"orders-2": "1.3", "nowhere-0": "1.2", "orders-0": "1.99"}
    rows = tuple(
        StartedPartition(topic=name[:-2], partition=int(name[-1]), epoch=epoch, next_offset=7)
        for name, epoch in epochs.items()
    )
    teller.reads(StartConsumingEvent(**teller._head("1"), partitions=rows))
    assert state_of(teller).ledger_offsets == known
    held = (StartedPartition(topic="orders", partition=0, epoch="1.1", next_offset=7),)
    teller.reads(StartConsumingEvent(**teller._head("1"), partitions=held))
    assert state_of(teller).ledger_offsets == {**known, TopicPartition("orders", 0): 7}


@pytest.mark.parametrize("reason", ["stale_controller_epoch", "other_incarnation", "stale_plan"])
def test_a_refusal_of_something_else_is_only_counted(reason: str) -> None:
    """Refusals of what was overtaken are the protocol at work."""
    teller = after(*TWO_CONSUMERS)
    assert teller.tell(f"consumer 1 refuses orders-0@1.1, {reason}") == []
    assert counted(teller, "command_refused") == 1


def test_refusals_of_other_incarnations_and_plans_are_only_counted() -> None:
    """An echo of a former controller or plan says nothing about this one."""
    teller = after(*TWO_CONSUMERS)
    teller.tell("consumer 1 refuses orders-0@1.1, stale_plan")
    original = teller.last
    assert original is not None
    for number, change in enumerate(({"refused_controller_epoch": 0}, {"refused_plan_number": 1})):
        head = {**change, "sequence": original.sequence + 1 + number}
        teller.reads(original.model_copy(update=head))
    assert counted(teller, "command_refused") == 3
    assert state_of(teller).phase is Phase.SENTINEL


def test_a_consumer_that_shuts_down_gets_nothing_more() -> None:
    """It refused because it leaves: its partitions find another place."""
    teller = after(*TWO_CONSUMERS, "consumer 2 refuses orders-2@1.3, shutting_down")
    teller.tell("consumer 2 refuses orders-2@1.3, shutting_down")
    lines = teller.tell("consumer 2 stopped orders-2@1.3, shutdown")
    assert "  > save" not in lines
    assert "given Assignment(1: [orders-0 orders-1])" in teller.tell("tick +500")[0]


def test_a_consumer_that_ends_with_a_start_on_its_way_is_fenced() -> None:
    """Its last report says that it shut down: the start will not be carried out."""
    teller = after(*TWO_CONSUMERS[:8])
    lines = teller.tell("consumer 2 reports nothing, phase=stopped")
    assert lines[0].startswith("  consumer_fenced: consumer 2 shut down")


def test_the_end_is_the_end() -> None:
    """A superseded controller does nothing any more."""
    teller = after(*TWO_CONSUMERS, "the broker fences us")
    assert teller.tell("tick +500") == []
    assert counted(teller, "input_after_the_end") == 1


def test_a_clock_that_runs_backwards_stands_still() -> None:
    """No wait gets longer, and nothing is re-planned by it."""
    teller = after(*TWO_CONSUMERS)
    now = state_of(teller).now_ms
    teller.now_ms = 0
    assert teller.tell("tick +1") == []
    assert state_of(teller).now_ms == now


def test_history_is_bounded() -> None:
    """The newest decisions push out the oldest."""
    teller = after(*TWO_CONSUMERS)
    for number in range(HISTORY_MAX + 20):
        teller.tell(f"request r{number}: dance")
    history = state_of(teller).history
    assert len(history) == HISTORY_MAX
    assert history[-1].code is Code.REQUEST_ANSWERED
    teller.tell("request r219: dance")
    assert counted(teller, "request_seen_before") == 1


@pytest.mark.parametrize(("plan", "is_out_of_step"), [(1, False), (2, True)])
def test_only_a_refusal_of_the_present_plan_shows_an_outdated_view(
    plan: int, is_out_of_step: bool
) -> None:
    """While a start is under way, a late refusal of an earlier plan's start changes nothing."""
    teller = after(*TWO_CONSUMERS[:-2])
    assert state_of(teller).plan_number == 2
    teller.tell("consumer 1 refuses orders-0@1.1, stale_plan")
    assert state_of(teller).phase is Phase.SYNCHRONIZE
    refusal = teller.last
    assert refusal is not None
    again = after(*TWO_CONSUMERS[:-2])
    again.reads(refusal.model_copy(update={"refused_plan_number": plan}))
    assert (state_of(again).phase is Phase.SYNCHRONIZE) == is_out_of_step
