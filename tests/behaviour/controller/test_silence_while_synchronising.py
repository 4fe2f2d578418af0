"""Whom a new controller waits for while it synchronises, and whom it gives up."""

from kit.controller.story import TWO_CONSUMERS, Storyteller, after
from kit.controller.story_state import state_of
from penstock.controller.core.state import ConsumerStatus
from penstock.model import ConsumerId

RESTARTED = "a controller starts with epoch 9 with its state file"


def fenced(lines: list[str]) -> list[str]:
    return [line.strip() for line in lines if line.startswith("  consumer_fenced")]


def synchronising(*deployed: str) -> Storyteller:
    return after(
        "settings synchronise=3s patience=10s",
        "a controller starts with epoch 1",
        f"deployed: {' '.join(deployed)}",
        "consumer 1 answers orders-0@0.1",
    )


def synchronise(teller: Storyteller, *deployed: str) -> list[str]:
    lines = teller.tell("the controller hears itself for 3000 ms")
    teller.tell(f"deployed: {' '.join(deployed)}")
    return lines + teller.tell("the controller hears itself for 1000 ms")


def test_who_still_starts_is_not_told_to_end_by_a_new_controller() -> None:
    """The deployment says so; it owns nothing, and is awaited like a new one."""
    lines = synchronise(teller := synchronising("1", "2*"), "1", "2*")
    assert fenced(lines) == []
    assert any("synchronised: 1 consumer answered" in line for line in lines)
    assert state_of(teller).consumers[ConsumerId(2)].status is ConsumerStatus.CREATING


def test_who_started_meanwhile_and_says_nothing_is_given_up() -> None:
    """The newer list counts."""
    assert len(fenced(synchronise(synchronising("1", "2*"), "1", "2"))) == 1


def test_who_reports_is_waited_for_up_to_patience() -> None:
    """It is alive, and cannot answer before the commands before the query have taken effect."""
    teller = synchronising("1", "2*")
    lines = []
    for _ in range(9):
        teller.tell("consumer 2 reports orders-2@0.3, waits_for=lake")
        lines += teller.tell("the controller hears itself for 1000 ms")
        teller.tell("deployed: 1 2")
    assert fenced(lines) == []
    teller.tell("consumer 2 reports orders-2@0.3, waits_for=lake")
    (line,) = fenced(teller.tell("the controller hears itself for 1000 ms"))
    assert "consumer 2 did not answer within 10 s" in line


def test_a_former_incarnation_is_no_sign_of_life_while_synchronising() -> None:
    """Its successor is awaited, and says nothing."""
    teller = after(
        "settings synchronise=3s",
        *TWO_CONSUMERS,
        "consumer 2 starts again",
        "consumer 2 reports",
        "a controller starts with epoch 2 with its state file",
        "deployed: 1 2",
        "consumer 1 answers orders-0@1.1",
    )
    teller.incarnation[2] = 1
    lines = []
    for _ in range(3):
        teller.tell("consumer 2 reports orders-2@1.3")
        lines += teller.tell("the controller hears itself for 1000 ms")
    teller.tell("deployed: 1 2")
    lines += teller.tell("the controller hears itself for 1000 ms")
    assert len(fenced(lines)) == 1


def test_nobody_is_judged_before_the_first_list() -> None:
    """Heartbeats that come back earlier say nothing about consumers that are not known."""
    teller = after("settings synchronise=3s", "a controller starts with epoch 1")
    teller.tell("the controller hears itself for 9000 ms")
    teller.tell("deployed: 1")
    assert fenced(teller.tell("the controller hears itself for 2000 ms")) == []
    assert state_of(teller).phase.value == "Synchronize"


def test_who_is_not_deployed_any_more_is_not_waited_for() -> None:
    """`penstock up` ended its consumers after its controller: the next one goes on at once."""
    teller = after(*TWO_CONSUMERS, RESTARTED)
    lines = teller.tell("deployed now: 2")
    assert "  consumer_removed: consumer 1 is removed: it is not deployed any more" in lines
    assert set(state_of(teller).consumers) == {ConsumerId(2)}
    teller.tell("deployed now:")
    assert any(
        "first_start: no consumer is deployed yet" in line for line in teller.tell("deployed now:")
    )


def test_a_list_that_may_be_old_proves_no_end() -> None:
    """A cluster's list may leave out who is there: it is queried, as the saved state says."""
    teller = after(*TWO_CONSUMERS, RESTARTED, "deployed: 2")
    assert set(state_of(teller).consumers) == {ConsumerId(1), ConsumerId(2)}


def test_who_is_heard_or_only_just_created_is_waited_for() -> None:
    """It is on its way into the list, or its note was lost."""
    teller = after(*TWO_CONSUMERS, RESTARTED, "consumer 1 reports")
    teller.tell("deployed now: 2")
    assert set(state_of(teller).consumers) == {ConsumerId(1), ConsumerId(2)}


def test_who_was_to_be_created_and_is_not_deployed_is_created_again() -> None:
    """The group was stopped in between. It would be waited for, and nobody would make it."""
    teller = after(
        "settings synchronise=3s patience=10s",
        "a controller starts with epoch 1",
        "deployed:",
        "deployed:",
        "speeds orders-0=40",
        "tick +500",
        "packed 1: orders-0",
        RESTARTED,
        "deployed now:",
    )
    assert state_of(teller).consumers[ConsumerId(1)].is_new
    lines = synchronise(teller)
    assert any("create consumer 1" in line for line in lines), lines
    assert state_of(teller).consumers[ConsumerId(1)].status is ConsumerStatus.CREATING
