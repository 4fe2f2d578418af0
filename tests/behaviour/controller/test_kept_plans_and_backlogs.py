"""Plans that are kept, backlogs by partition, idle consumers, and what a transition may be."""

import pytest

from kit.controller.story import TWO_CONSUMERS, Storyteller, after
from kit.controller.story_state import state_of
from penstock.controller.core.load import group_load
from penstock.controller.core.state import Phase
from penstock.controller.core.step_draft import StepDraft
from penstock.controller.core.transitions import TransitionError, go
from penstock.messages import ConsumerPhase, ConsumerReport, ReportedPartition
from penstock.model import ConsumerId, TopicPartition


def planned_for_an_overload(*reports: str) -> Storyteller:
    """A plan that waits for a new consumer, and an overload that is over."""
    return after(
        *TWO_CONSUMERS,
        *reports,
        "3000 ms pass",
        "speeds orders-0=90 orders-1=90 orders-2=40",
        "tick +500",
        "packed 1: orders-0; 2: orders-2; 3: orders-1",
        "speeds orders-0=40 orders-1=40 orders-2=40",
    )


def test_a_plan_is_kept_while_the_group_is_behind() -> None:
    """Its load is carried again, but not what has piled up: the new consumer is still needed."""
    dropped = planned_for_an_overload().tell("tick +500")
    assert any("plan_dropped" in line for line in dropped)
    behind = planned_for_an_overload("consumer 2 reports orders-2@1.3, behind_log_bytes=5000")
    assert not any("plan_dropped" in line for line in behind.tell("tick +500"))
    assert state_of(behind).phase is Phase.GROUP_MANAGEMENT


def test_a_backlog_is_shared_by_the_unread_offsets() -> None:
    """Of 400 bytes three quarters wait where three quarters of the offsets are unread."""
    teller = after("settings catch_up=10s catch_up_share=9", *TWO_CONSUMERS)
    rows = tuple(
        ReportedPartition(
            topic="orders", partition=n, epoch=f"1.{n + 1}", next_offset=10, end_offset=end
        )
        for n, end in ((0, 40), (1, 20))
    )
    teller.reads(
        ConsumerReport(
            consumer_id=1,
            incarnation=1,
            sequence=100,
            controller_epoch=1,
            plan_number=state_of(teller).plan_number,
            report_number=9,
            phase=ConsumerPhase.RUNNING,
            behind_log_bytes=400,
            owned=rows,
        )
    )
    behind = state_of(teller).consumers[ConsumerId(1)].behind_by_partition
    assert behind == {TopicPartition("orders", 0): 300, TopicPartition("orders", 1): 100}
    load = group_load(StepDraft(state_of(teller), teller.now_ms)).load_bytes_per_s
    assert load[TopicPartition("orders", 0)] == 40 + 30
    assert load[TopicPartition("orders", 1)] == 40 + 10


def test_idle_consumers_stay_for_a_grace() -> None:
    """One that nobody needs at the moment is not removed at the first glance."""
    teller = after(*TWO_CONSUMERS, "deployed: 1 2 9", "consumer 9 reports")
    for _ in range(3):
        assert "  > delete consumer 9" not in teller.tell("tick +500")


def test_spares_go_when_the_maximum_is_lowered() -> None:
    """Two work and two are spares; of a group of three one spare is kept."""
    teller = after(
        "settings consumers_max=5 spare_consumers=2",
        *TWO_CONSUMERS,
        "tick +500",
        "consumer 3 reports",
        "consumer 4 reports",
    )
    assert len(state_of(teller).consumers) == 4
    teller.tell("request s1: settings consumers_max=3")
    for _ in range(10):
        teller.tell("consumer 1 reports orders-0@1.1 orders-1@1.2")
        teller.tell("consumer 2 reports orders-2@1.3")
        teller.tell("consumer 3 reports")
        if ConsumerId(4) in state_of(teller).consumers:
            teller.tell("consumer 4 reports")
        teller.tell("tick +7000")
    assert sorted(state_of(teller).consumers) == [1, 2, 3]


def test_only_a_transition_of_the_table_is_made() -> None:
    """Not from Sentinel to Group Management, and not for another reason than the table has."""
    draft = StepDraft(state_of(after(*TWO_CONSUMERS)), 10_000)
    for destination, why in (
        (Phase.GROUP_MANAGEMENT, "a plan is made"),
        (Phase.REASSIGN, "a plan is made"),
    ):
        with pytest.raises(TransitionError, match="no transition from Sentinel"):
            go(draft, destination, why)
    go(draft, Phase.REASSIGN, "a reassignment is due")
    assert draft.state.phase is Phase.REASSIGN


def test_a_low_load_does_not_empty_a_consumer_when_a_partition_appears() -> None:
    """After an outage speeds are low for a moment; the new partition goes where most room is."""
    teller = after(
        *TWO_CONSUMERS,
        "3000 ms pass",
        "speeds orders-0=1 orders-1=1 orders-2=1 orders-3=1",
        "tick +500",
        "packed 1: orders-0 orders-1 orders-2 orders-3",
    )
    plan = state_of(teller).plan
    assert plan is not None
    kept = {TopicPartition("orders", n): ConsumerId(c) for n, c in ((0, 1), (1, 1), (2, 2), (3, 2))}
    assert dict(plan.target) == kept


def test_a_plan_is_kept_while_no_measurement_comes() -> None:
    """By an old one nobody knows whether the overload is over."""
    teller = planned_for_an_overload()
    stale = teller.tell("tick +600000")
    assert not any("plan_dropped" in line for line in stale)
    teller.tell("speeds orders-0=40 orders-1=40 orders-2=40")
    assert any("plan_dropped" in line for line in teller.tell("tick +500"))
