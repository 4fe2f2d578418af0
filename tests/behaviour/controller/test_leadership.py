"""Who leads is the broker's word alone: a message that names a higher epoch proves nothing."""

from kit.controller.story import TWO_CONSUMERS, Storyteller, after
from kit.controller.story_state import state_of
from penstock.controller.core.decisions import Code, Decision
from penstock.controller.core.inputs import (
    ConsumerMessageRead,
    HeartbeatReturned,
    LeadershipConfirmed,
    MessageRefused,
)
from penstock.controller.core.leadership import ASK_AGAIN_MS
from penstock.controller.core.state import Phase
from penstock.messages import CommandRefusedEvent, ConsumerPhase, ConsumerReport, RefusalReason

FORGED_EPOCH = 999_999_999


def refusals(teller: Storyteller) -> list[Decision]:
    return [one for one in state_of(teller).history if one.code is Code.MESSAGE_REFUSED]


def forged(epoch: int = FORGED_EPOCH, consumer: int = 1) -> ConsumerReport:
    """What a consumer that was deceived reports, or somebody in its name."""
    return ConsumerReport(
        consumer_id=consumer,
        incarnation=1,
        sequence=1_000,
        controller_epoch=epoch,
        plan_number=1,
        report_number=1,
        phase=ConsumerPhase.RUNNING,
    )


def test_one_forged_message_does_not_stop_control() -> None:
    """A message that names a huge epoch is refused, and the controller leads on."""
    teller = after(*TWO_CONSUMERS)
    held = state_of(teller).holdings
    assert teller.tell(f"consumer 1 has obeyed epoch {FORGED_EPOCH}") == ["  > ask who leads"]
    told = teller.tell("the broker says that we lead")
    assert told == [
        (
            f"  message_refused: a message of consumer 1 names controller epoch {FORGED_EPOCH}, "
            "above "
            "our 1, and the broker says that we lead: refused"
        )
    ]
    assert state_of(teller).phase is Phase.SENTINEL
    assert state_of(teller).holdings == held


def test_only_the_brokers_fence_ends_a_controller() -> None:
    """A higher epoch is a reason to ask; the answer decides."""
    teller = after(*TWO_CONSUMERS)
    teller.tell("consumer 1 has obeyed epoch 2")
    assert state_of(teller).phase is Phase.SENTINEL
    teller.tell("the broker fences us")
    assert state_of(teller).phase is Phase.SUPERSEDED


def test_an_epoch_beyond_the_logs_end_is_refused_without_asking() -> None:
    """An epoch is one more than a claim's offset, so no message can name one above its own."""
    teller = after(*TWO_CONSUMERS)
    given = ConsumerMessageRead(teller.now_ms, forged(epoch=501), offset=500)
    assert teller.give(given) == [
        (
            "  message_refused: a message of consumer 1 names controller epoch 501, which no claim "
            "in "
            "the log can have: refused"
        )
    ]
    asked = teller.give(ConsumerMessageRead(teller.now_ms, forged(epoch=500), offset=500))
    assert asked == ["  > ask who leads"]


def test_a_log_that_was_made_again_does_not_silence_the_group() -> None:
    """Its offsets are then below our epoch, and messages that name ours count."""
    teller = after("a controller starts with epoch 900", *TWO_CONSUMERS[1:])
    teller.give(ConsumerMessageRead(teller.now_ms, forged(epoch=900), offset=3))
    assert refusals(teller) == []
    assert state_of(teller).consumers[1].sequence == 1_000  # type: ignore[index]  # a number


def test_many_forged_messages_are_told_once_with_a_count() -> None:
    """They push nothing out of the history, whatever numbers they name."""
    teller = after(*TWO_CONSUMERS)
    for number in range(300):
        message = forged(epoch=FORGED_EPOCH + number, consumer=1 + number)
        teller.give(ConsumerMessageRead(teller.now_ms, message, offset=10))
    assert [one.times for one in refusals(teller)] == [300]
    assert state_of(teller).counts["higher_epoch"] == 300


def test_the_broker_is_asked_now_and_then() -> None:
    """A flood of forged messages is no flood of transactions."""
    teller = after(*TWO_CONSUMERS)
    asks = [teller.give(ConsumerMessageRead(teller.now_ms, forged())) for _ in range(5)]
    assert [len(lines) for lines in asks] == [1, 0, 0, 0, 0]
    teller.now_ms += ASK_AGAIN_MS
    assert teller.give(ConsumerMessageRead(teller.now_ms, forged())) == ["  > ask who leads"]


def test_a_heartbeat_of_a_newer_controller_makes_us_ask() -> None:
    """A controller that sends nothing would otherwise never learn that it was fenced."""
    teller = after(*TWO_CONSUMERS)
    assert teller.give(HeartbeatReturned(teller.now_ms, 7, 1)) == ["  > ask who leads"]
    told = teller.give(LeadershipConfirmed(teller.now_ms))
    assert told[0].startswith("  message_refused: a heartbeat names controller epoch 7, above our")
    assert teller.give(LeadershipConfirmed(teller.now_ms)) == []


def test_a_forged_heartbeat_beyond_the_logs_end_is_refused() -> None:
    """It is no reason to ask."""
    teller = after(*TWO_CONSUMERS)
    told = teller.give(HeartbeatReturned(teller.now_ms, 7, 1, offset=6))
    assert told[0].startswith("  message_refused: a heartbeat names controller epoch 7, which no")


def test_what_consumers_refuse_as_foreign_is_in_the_history() -> None:
    """The newest count is told, in one entry."""
    teller = after(*TWO_CONSUMERS)
    for times in (1, 2, 4):
        teller.reads(
            CommandRefusedEvent(
                consumer_id=2,
                incarnation=1,
                sequence=100 + times,
                controller_epoch=1,
                plan_number=1,
                refused_event_type="StateQuery",
                refused_controller_epoch=FORGED_EPOCH,
                refused_plan_number=1,
                reason=RefusalReason.NOT_FROM_LEADER,
                refused_times=times,
            )
        )
    assert [(one.times, one.explanation) for one in refusals(teller)][-1] == (
        2,
        (
            "consumer 2 refused 4 messages that the leading controller did not write; the last one "
            f"names controller epoch {FORGED_EPOCH}"
        ),
    )
    assert state_of(teller).phase is Phase.SENTINEL


def test_messages_of_other_groups_are_told_once_with_a_count() -> None:
    """Whatever names they have: they push nothing out of the history."""
    teller = after(*TWO_CONSUMERS)
    for number in range(300):
        explanation = f"a message of another group was refused: Pause of group g{number}x"
        teller.give(MessageRefused(teller.now_ms, explanation))
    (told,) = refusals(teller)
    assert (told.times, told.explanation[-5:]) == (300, "g299x")
    assert state_of(teller).counts["message_refused"] == 300


def test_who_is_refused_for_its_epoch_is_not_heard() -> None:
    """A consumer that obeyed a forged epoch obeys nobody else: it is given up, and replaced."""
    teller = after(*TWO_CONSUMERS)
    before = state_of(teller).consumers[1].heard_ms  # type: ignore[index]  # a number
    teller.now_ms += 1_000
    teller.give(ConsumerMessageRead(teller.now_ms, forged()))
    assert state_of(teller).consumers[1].heard_ms == before  # type: ignore[index]  # a number
