"""A plan begins as `future - current`, with real consumers for the packer's new names."""

from kit.controller.story import TWO_CONSUMERS, after
from kit.controller.story_state import state_of
from penstock.controller.core.plan import difference, open_partitions
from penstock.controller.core.step_draft import StepDraft
from penstock.model import ConsumerId, ConsumerListDiff, TopicPartition

ORDERS = [TopicPartition("orders", number) for number in range(4)]
ONE, TWO, THREE = ConsumerId(1), ConsumerId(2), ConsumerId(3)


def draft_of(*lines: str) -> StepDraft:
    teller = after(*lines)
    return StepDraft(state_of(teller), teller.now_ms)


def test_the_difference_names_what_the_plan_must_do() -> None:
    """Consumer 3 is to be created, 2 is emptied, one partition moves and one is new."""
    draft = draft_of(*TWO_CONSUMERS)
    target = {ORDERS[0]: ONE, ORDERS[1]: ONE, ORDERS[2]: THREE, ORDERS[3]: ONE}
    diff = difference(draft, target)
    assert diff == ConsumerListDiff(
        create=(THREE,),
        remove=(TWO,),
        stop={TWO: (ORDERS[2],)},
        start={ONE: (ORDERS[3],), THREE: (ORDERS[2],)},
    )
    assert diff.moves == (ORDERS[2],)
    assert open_partitions(draft, target) == {ORDERS[2], ORDERS[3]}


def test_an_idle_consumer_is_neither_created_nor_emptied() -> None:
    """A spare that stays a spare is no part of the difference."""
    draft = draft_of(*TWO_CONSUMERS, "deployed: 1 2 3", "consumer 3 reports")
    target = dict(zip(ORDERS, (ONE, ONE, TWO), strict=False))
    assert not difference(draft, target)
    target[ORDERS[2]] = THREE
    assert difference(draft, target).create == ()


def test_what_is_on_its_way_stays_open() -> None:
    """A start without an acknowledgement, and a stop whose partition is wanted back."""
    starting = draft_of(*TWO_CONSUMERS[:8])
    target = dict(zip(ORDERS, (ONE, ONE, TWO), strict=False))
    assert not difference(starting, target)
    assert open_partitions(starting, target) == set(ORDERS[:3])
    stopping = draft_of(
        *TWO_CONSUMERS,
        "3000 ms pass",
        "speeds orders-0=40 orders-1=80 orders-2=10",
        "tick +500",
        "packed 1: orders-0; 2: orders-1 orders-2",
    )
    assert difference(stopping, target).start == {ONE: (ORDERS[1],)}
    assert open_partitions(stopping, target) == {ORDERS[1]}


def test_a_partition_that_failed_is_not_open() -> None:
    """It is started again when its time has come, not by the plan."""
    draft = draft_of(*TWO_CONSUMERS, "consumer 2 stopped orders-2@1.3, transformation_failed")
    target = dict(zip(ORDERS, (ONE, ONE, TWO), strict=False))
    assert open_partitions(draft, target) == frozenset()


def test_a_consumer_that_an_overtaken_plan_wanted_is_used_by_the_next_one() -> None:
    """The difference names it again, because it was not created yet; it is wanted only once."""
    teller = after(
        "settings creations_per_minute_max=1",
        "a controller starts with epoch 1",
        "deployed:",
        "deployed:",
        "speeds a-0=90 b-0=90",
        "tick +500",
        "packed 1: a-0; 2: b-0",
        "60000 ms pass",
        "the heartbeat comes back",
        "consumer 1 cannot be created: no quota",
        "speeds a-0=90 b-0=90",
    )
    before = state_of(teller)
    wanted_since_ms = before.consumers[TWO].since_heartbeat_time_ms
    lines = teller.tell("packed 2: a-0; 3: b-0")
    assert "2 to create" in lines[0]
    since_ms = state_of(teller).consumers[TWO].since_heartbeat_time_ms
    assert since_ms == wanted_since_ms < before.heartbeats.heartbeat_time_ms
    assert set(state_of(teller).consumers) == {TWO, THREE}


def test_a_consumer_that_would_be_emptied_takes_the_place_of_a_new_one() -> None:
    """The packer renames a consumer: none is created, and nothing moves that need not."""
    teller = after(
        *TWO_CONSUMERS,
        "3000 ms pass",
        "speeds orders-0=40 orders-1=80 orders-2=10",
        "tick +500",
    )
    lines = teller.tell("packed 1: orders-0; 7: orders-1 orders-2")
    assert "  > stop at 1: orders-1@1.2 (plan 3)" in lines
    assert not any("create" in line for line in lines if line.startswith("  >"))
    plan = state_of(teller).plan
    assert plan is not None
    assert set(plan.target.values()) == {ONE, TWO}


def test_a_full_group_gets_no_new_consumer() -> None:
    """Everything is paused and stays in place: the new partition goes to the least loaded."""
    teller = after(
        "settings consumers_max=2",
        *TWO_CONSUMERS,
        "request p: pause",
        "speeds orders-0=40 orders-1=40 orders-2=40 orders-3=10",
        "tick +500",
    )
    lines = teller.tell("packed 1: orders-0 orders-1; 7: orders-2 orders-3")
    assert "  > start at 2: orders-3@1.4 (plan 3)" in lines
    assert set(state_of(teller).consumers) == {ONE, TWO}
