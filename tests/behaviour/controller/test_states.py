"""Corners of Synchronize, Reassign and Group Management that no story tells."""

from dataclasses import replace

import pytest

from kit.controller.story import SECOND_FALLS_SILENT, TWO_CONSUMERS, Storyteller, after
from kit.controller.story_state import state_of
from penstock.controller.core import group_management, inputs, reassignment
from penstock.controller.core.state import Phase
from penstock.controller.core.state_machine import Machine
from penstock.controller.core.step_draft import StepDraft
from penstock.model import Assignment, ConsumerId, TopicPartition
from penstock.packing import Packing

OVERLOAD = (
    *TWO_CONSUMERS,
    "3000 ms pass",
    "speeds orders-0=40 orders-1=80 orders-2=40",
    "tick +500",
)


def phase_of(teller: Storyteller) -> Phase:
    return state_of(teller).phase


# Synchronize


def test_the_list_is_asked_for_until_it_comes() -> None:
    """A deployment that does not answer is asked again."""
    teller = after("a controller starts with epoch 1")
    assert teller.tell("tick +100") == []
    assert teller.tell("tick +1000") == ["  > list deployments"]
    teller.tell("deployed: 1")
    assert teller.tell("deployed: 1") == [], "a second list before the answers changes nothing"


def test_the_second_look_is_asked_for_until_it_comes() -> None:
    """Its answer may get lost too; and it may show a consumer that the first one hid."""
    teller = after("a controller starts with epoch 1", "deployed: 1", "consumer 1 answers nothing")
    assert teller.tell("tick +1000") == ["  > list deployments"]
    assert teller.tell("deployed: 1 2") == ["  > query 2"]
    teller.tell("consumer 2 answers nothing")
    assert phase_of(teller) is Phase.SENTINEL


def test_whoever_speaks_while_synchronising_is_asked_too() -> None:
    """A list that was out of date hides nobody who speaks."""
    teller = after("a controller starts with epoch 1", "deployed: 1")
    assert teller.tell("consumer 2 reports") == ["  > query 2"]
    assert teller.tell("consumer 2 reports") == []
    assert state_of(teller).counts["ignored_while_synchronising"] == 2


def test_answers_that_came_late_or_twice_are_dropped() -> None:
    """Only the newest answer of the newest incarnation counts."""
    teller = after(
        "a controller starts with epoch 1", "deployed: 1 2", "consumer 1 answers nothing"
    )
    teller.tell("the same message comes again")
    assert state_of(teller).counts["out_of_order"] == 1


def test_of_two_who_claim_a_partition_the_higher_epoch_has_it() -> None:
    """The other one is told to stop, whichever answered first."""
    claims = ["consumer 1 answers t-0@1.5 t-1@1.6", "consumer 2 answers t-0@1.7 t-1@1.1"]
    for order in (claims, claims[::-1]):
        teller = after("a controller starts with epoch 2", "deployed: 1 2", *order)
        lines = teller.tell("deployed: 1 2")
        assert "  > stop at 1: t-0@1.5 (plan 1)" in lines
        assert "  > stop at 2: t-1@1.1 (plan 1)" in lines
        owners = {str(p): h.consumer for p, h in state_of(teller).holdings.items()}
        assert owners == {"t-0": 2, "t-1": 1}


def test_an_impossible_claim_in_an_answer_is_ignored() -> None:
    """An epoch that nobody gave out owns nothing."""
    teller = after("a controller starts with epoch 2", "deployed: 1", "consumer 1 answers t-0@9.1")
    teller.tell("deployed: 1")
    assert not state_of(teller).holdings


def test_what_departs_is_not_asked() -> None:
    """A consumer that is being deleted is no part of the group any more."""
    teller = after(*TWO_CONSUMERS, *SECOND_FALLS_SILENT)
    teller.tell("a controller starts with epoch 2 with its state file")
    assert teller.tell("consumer 2 reports") == []
    assert teller.tell("deployed: 1 2") == ["  > query 1"]
    teller.tell("consumer 2 is deleted")
    assert not state_of(teller).departing
    teller.tell("consumer 7 cannot be created: too late")
    assert state_of(teller).counts["late_creation_failure"] == 1


def test_a_departed_consumer_that_is_not_listed_is_forgotten() -> None:
    """The list says that the deployment is gone."""
    teller = after(*TWO_CONSUMERS, *SECOND_FALLS_SILENT)
    teller.tell("a controller starts with epoch 2 with its state file")
    teller.tell("deployed: 1")
    assert not state_of(teller).departing


def test_a_consumer_that_was_only_wanted_is_not_asked() -> None:
    """It was never created: nobody is there to answer."""
    teller = after(
        "settings creations_per_minute_max=1",
        "a controller starts with epoch 1",
        "deployed:",
        "deployed:",
        "speeds a-0=90 b-0=90",
        "tick +500",
        "packed 1: a-0; 2: b-0",
        "a controller starts with epoch 2 with its state file",
    )
    assert teller.tell("deployed: 1") == ["  > query 1"]


# Reassign


def test_a_packer_that_fails_is_given_up() -> None:
    """The machine goes back to watching, and tries again after a while."""
    teller = after(*OVERLOAD)
    assert teller.tell("the packer fails: no luck")[-1] == "  = Sentinel"
    assert teller.tell("packed 1: orders-0") == []
    assert teller.tell("the packer fails: no luck") == []
    assert state_of(teller).counts["late_packing"] == 2
    assert phase_of(after(*OVERLOAD, "tick +1000")) is Phase.REASSIGN


def test_the_packer_has_a_bound() -> None:
    """Nothing waits for ever, not even for our own packer."""
    teller = after("settings packing_timeout=2s", *OVERLOAD)
    assert "  packing_failed: the packer did not answer in time" in teller.tell("tick +2500")


def test_an_answer_to_another_question_is_dropped() -> None:
    """The packer was asked again meanwhile: only the newest answer counts."""
    teller = after(*OVERLOAD)
    number = state_of(teller).packing_number
    old = inputs.Packed(teller.now_ms, number - 1, Packing(Assignment()))
    assert teller.give(old) == []
    assert teller.give(inputs.PackingFailed(teller.now_ms, number - 1, "late")) == []
    assert phase_of(teller) is Phase.REASSIGN


def test_a_group_that_changed_meanwhile_is_packed_again() -> None:
    """The answer does not know the partition that appeared, or counts on a consumer that leaves."""
    teller = after(*OVERLOAD, "speeds orders-0=40 orders-1=80 orders-2=40 orders-3=1")
    lines = teller.tell("packed 1: orders-0; 2: orders-1 orders-2")
    assert lines[0].startswith("  > pack")
    teller.tell("consumer 2 reports orders-2@1.3, phase=stopping")
    lines = teller.tell("packed 1: orders-0; 2: orders-1 orders-2 orders-3")
    assert lines[0].startswith("  > pack")


def test_a_number_that_the_packer_made_up_is_nobody_who_leaves() -> None:
    """The packer names new consumers as it likes, also after one that is on its way out."""
    teller = after(*TWO_CONSUMERS, "consumer 1 reports orders-0@1.1 orders-1@1.2, phase=stopping")
    teller.tell("consumer 1 stopped orders-0@1.1 orders-1@1.2")
    teller.tell("tick +500")
    assert phase_of(teller) is Phase.REASSIGN
    lines = teller.tell("packed 1: orders-0 orders-1; 2: orders-2")
    assert not any(line.startswith("  > pack") for line in lines)
    assert phase_of(teller) is Phase.GROUP_MANAGEMENT
    plan = state_of(teller).plan
    assert plan is not None
    assert 1 not in plan.target.values()


def test_a_plan_that_gains_nothing_is_not_made() -> None:
    """As many consumers as before, or the very same assignment: not worth a move."""
    teller = after(*OVERLOAD)
    lines = teller.tell("packed 1: orders-0 orders-1; 2: orders-2")
    assert lines[0].startswith("  nothing_to_gain: consumer 1 is over capacity")
    assert teller.tell("tick +500") == [], "not asked again at once"
    shrinking = after(
        *TWO_CONSUMERS,
        "speeds orders-0=30 orders-1=30 orders-2=30",
        "tick +500",
        "60000 ms pass",
        "consumer 1 reports orders-0@1.1 orders-1@1.2",
        "consumer 2 reports orders-2@1.3",
        "speeds orders-0=30 orders-1=30 orders-2=30",
        "tick +500",
    )
    lines = shrinking.tell("packed 1: orders-0; 2: orders-1 orders-2")
    assert lines[0].startswith(
        "  nothing_to_gain: 1 consumer may do instead of 2: 90 of 100 B/s, but"
    )


def test_what_cannot_be_helped_is_said() -> None:
    """An oversize partition and a binding maximum are flagged, not planned for for ever."""
    teller = after(*OVERLOAD)
    owned = {
        ConsumerId(1): [TopicPartition("orders", 0)],
        ConsumerId(2): [TopicPartition("orders", 1), TopicPartition("orders", 2)],
    }
    packing = Packing(Assignment(owned), (TopicPartition("orders", 1),), (ConsumerId(2),))
    lines = teller.give(inputs.Packed(teller.now_ms, state_of(teller).packing_number, packing))
    assert lines[0] == (
        "  oversize_partition: more than one consumer's capacity, each on its own: orders-1"
    )
    assert lines[1] == "  maximum_binds: with at most 100 consumers these are over capacity: 2"


def test_a_packing_needs_a_reason() -> None:
    """Our own mistake is found where it is made."""
    teller = after(*OVERLOAD)
    draft = StepDraft(replace(state_of(teller), packing_code=None), teller.now_ms)
    owned = {ConsumerId(1): [TopicPartition("orders", n) for n in range(3)]}
    with pytest.raises(ValueError, match="without a reason"):
        reassignment.packed(
            draft, inputs.Packed(0, draft.state.packing_number, Packing(Assignment(owned)))
        )


def test_no_consumer_to_be_had() -> None:
    """The only one cannot be created, and there is no other: nothing is asked of the packer."""
    teller = after(
        "a controller starts with epoch 1",
        "deployed:",
        "deployed:",
        "speeds a-0=90",
        "tick +500",
        "packed 1: a-0",
    )
    lines = teller.tell("consumer 1 cannot be created: no quota")
    assert "  nothing_to_gain: no consumer can be created now" in lines
    assert teller.tell("tick +500") == [], "it waits for the back-off to end"
    assert any(line.startswith("  > pack") for line in teller.tell("tick +10000"))
    teller.tell("consumer 1 cannot be created: late")
    assert state_of(teller).counts["late_creation_failure"] == 1


def test_growth_is_paused() -> None:
    """While growing is paused, the packer may use the consumers there are, and no more."""
    teller = after(*TWO_CONSUMERS, "request p: pause direction=up", "3000 ms pass")
    teller.tell("speeds orders-0=40 orders-1=80 orders-2=40")
    assert teller.tell("tick +500") == []
    assert state_of(teller).counts["held_by_pause"] == 1
    teller.tell("consumer 2 starts again")
    teller.tell("consumer 2 reports")
    state, effects = Machine().step(state_of(teller), inputs.Tick(teller.now_ms + 500))
    (problem,) = [e.problem for e in effects if hasattr(e, "problem")]
    assert problem.consumers_max == 2
    assert state.phase is Phase.REASSIGN


# Group Management


def test_group_management_needs_a_plan() -> None:
    """Our own mistake is found where it is made."""
    draft = StepDraft(state_of(after("a controller starts with epoch 1")), 0)
    with pytest.raises(ValueError, match="without a plan"):
        group_management.advance(draft, ())
    assert not group_management.has_lost_a_target(draft)


def test_a_partition_that_fails_during_a_plan_is_set_aside() -> None:
    """The plan goes on without it."""
    teller = after(*TWO_CONSUMERS[:8], "consumer 2 started orders-2@1.3")
    teller.tell("consumer 1 stopped orders-0@1.1, offset_out_of_range")
    lines = teller.tell("consumer 1 started orders-1@1.2")
    assert "  = Sentinel" in lines


def test_a_late_stop_of_another_epoch_is_only_counted() -> None:
    """An echo of an older start does not end a newer one."""
    teller = after(*TWO_CONSUMERS, "consumer 1 stopped orders-0@1.0")
    assert state_of(teller).counts["stop_of_another_epoch"] == 1


def test_a_start_is_acknowledged_while_it_is_being_stopped() -> None:
    """The consumer began before the stop came: from then on its reports count."""
    teller = after("settings vanish_after_measurements=1", *TWO_CONSUMERS[:8])
    teller.tell("speeds orders-0=40 orders-1=40")
    assert teller.tell("consumer 2 started orders-2@1.3") == []
    assert teller.tell("consumer 2 reports orders-2@1.3") == []
    teller.tell("consumer 2 reports")
    assert TopicPartition("orders", 2) not in state_of(teller).holdings


def test_a_consumer_that_is_lost_in_a_plan_is_planned_around() -> None:
    """It fell silent in Group Management: the plan is overtaken as soon as that is known."""
    teller = after(*OVERLOAD, "packed 1: orders-1; 2: orders-0 orders-2")
    lines = [line for told in SECOND_FALLS_SILENT for line in teller.tell(told)]
    assert "  plan_overtaken: plan 3 is overtaken: a consumer that the plan needs is lost" in lines


def test_only_what_the_state_has_can_be_changed() -> None:
    """A name that is written wrong is an error at once. The former state stays as it was."""
    state = state_of(after(*TWO_CONSUMERS))
    draft = StepDraft(state, state.now_ms)
    draft.change(plan_number=state.plan_number + 1)
    assert draft.state == replace(state, plan_number=state.plan_number + 1)
    assert draft.before.plan_number == state.plan_number
    with pytest.raises(TypeError, match="State has no plan_nummer"):
        draft.change(plan_nummer=7)
