"""An end of a consumer's process that its deployment confirms: nobody waits for its silence."""

from kit.controller.story import TWO_CONSUMERS, after
from kit.controller.story_state import state_of
from penstock.controller.core.state import ConsumerStatus
from penstock.model import ConsumerId


def test_a_confirmed_end_frees_the_partitions_at_once() -> None:
    """The consumer is awaited like a new one; what it holds is started anew."""
    teller = after(*TWO_CONSUMERS)
    lines = teller.tell("the process of consumer 2 is gone")
    assert "  consumer_ended: the process of consumer 2 is gone: 1 partition to start anew" in lines
    assert state_of(teller).consumers[ConsumerId(2)].status is ConsumerStatus.CREATING
    assert any("pack" in line for line in teller.tell("tick +500"))


def test_a_confirmed_end_of_a_leaving_consumer_lets_it_leave() -> None:
    """It does not become available again."""
    teller = after(*TWO_CONSUMERS, "consumer 2 reports orders-2@1.3, phase=stopping")
    teller.tell("the process of consumer 2 is gone")
    state = state_of(teller)
    assert state.consumers[ConsumerId(2)].status is ConsumerStatus.LEAVING
    assert not state.held_by.get(ConsumerId(2))


def test_a_plan_is_overtaken_when_what_a_leaving_consumer_held_is_free() -> None:
    """It left while its partitions were in place; with its end they need another consumer."""
    teller = after(
        *TWO_CONSUMERS,
        "speeds orders-0=40 orders-1=40 orders-2=40 orders-3=90",
        "tick +3000",
        "packed 1: orders-0 orders-1; 2: orders-2; 3: orders-3",
        "consumer 2 reports orders-2@1.3, phase=stopping",
    )
    assert state_of(teller).phase.value == "Group Management", "orders-2 is in place"
    teller.tell("the process of consumer 2 is gone")
    assert "  = Reassign" in teller.tell("tick +100")
