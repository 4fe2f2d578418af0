"""A controller that starts with another deployment replaces the consumers that it finds."""

from dataclasses import replace

import pytest

from kit.controller.story import CATALOGUE, TWO_CONSUMERS, Storyteller, after
from penstock.controller.core.effects import SetDeploymentTemplate
from penstock.controller.core.inputs import DeploymentTried, NewSettings, Tick
from penstock.controller.core.saved_state import decode_state, encode_state
from penstock.controller.core.snapshot import snapshot
from penstock.controller.core.start_roll_out import AtStart, at_start
from penstock.controller.core.state import State
from penstock.controller.core.state_machine import Machine

NEW = NewSettings(
    CATALOGUE, "penstock-2", "digest-2", {"settings": {"image": "registry/penstock:2"}}
)


@pytest.mark.parametrize(
    ("of_consumers", "rolled_back", "expected"),
    [
        ("new", "", AtStart.AS_THEY_ARE),
        ("new", "new", AtStart.AS_THEY_ARE),
        ("old", "", AtStart.REPLACE_THEM),
        ("old", "older", AtStart.REPLACE_THEM),
        ("old", "new", AtStart.ROLLED_BACK_BEFORE),
        ("", "", AtStart.REPLACE_THEM),
    ],
)
def test_the_digests_decide(of_consumers: str, rolled_back: str, expected: AtStart) -> None:
    """What was rolled back is not tried at every start; what nobody knows is replaced."""
    found = at_start(digest="new", of_consumers=of_consumers, rolled_back=rolled_back)
    assert found is expected


def with_due(*lines: str) -> Storyteller:
    """The story so far, with something due that this controller was started with."""
    teller = after(*TWO_CONSUMERS, *lines)
    assert teller.state is not None
    teller.state = replace(teller.state, due=NEW)
    return teller


def state_of(teller: Storyteller) -> State:
    assert teller.state is not None
    return teller.state


def test_it_begins_when_the_group_is_calm_and_says_so() -> None:
    """The history names the image and the settings; the new deployment comes with its version."""
    teller = with_due()
    lines = teller.tell("tick +500")
    assert any("image registry/penstock:2, settings penstock-2" in line for line in lines)
    state = state_of(teller)
    assert state.due is None
    assert state.roll_out is not None
    assert state.roll_out.request.request_id == f"start-{state.controller_epoch}"
    after_trial, effects = Machine().step(state, DeploymentTried(state.now_ms, 1, "", ""))
    (deployed,) = (one for one in effects if isinstance(one, SetDeploymentTemplate))
    assert (deployed.version, deployed.new_settings) == (1, NEW)
    shown = snapshot(after_trial, 0, is_degraded=False)["roll_out"]
    assert (shown["version"], shown["left"], shown["total"]) == (1, 2, 2)
    assert "another deployment" in shown["requested_by"]


def test_the_consumers_are_replaced_one_by_one() -> None:
    """The second has its turn when the first new one carries, as in every roll-out."""
    teller = with_due("tick +500")
    teller.tell("tick +500")
    teller.tell("the new deployment works")
    assert "  > create consumer 3 version 1" in teller.tell("tick +500")
    for line in (
        "consumer 3 reports",
        "tick +500",
        "consumer 1 stopped orders-0@1.1 orders-1@1.2",
        "consumer 3 started orders-0@1.4 orders-1@1.5",
        "consumer 1 is deleted",
    ):
        teller.tell(line)
    assert "  > create consumer 1 version 1" not in teller.tell("tick +500")
    teller.tell("consumer 3 reports orders-0@1.4 orders-1@1.5, behind_records=0")
    assert "  > create consumer 1 version 1" in teller.tell("tick +500")


def test_it_waits_for_a_roll_out_in_progress() -> None:
    """Two at once would not know whose consumers to take back."""
    teller = with_due("request u1: update", "the new deployment works", "tick +500")
    teller.tell("tick +500")
    state = state_of(teller)
    assert state.due is NEW
    assert state.roll_out is not None
    assert state.roll_out.request.request_id == "u1"


def test_it_takes_the_place_of_a_roll_back() -> None:
    """The upgrade may be the remedy for what failed before."""
    teller = with_due("request u1: update", "the new deployment works", "tick +500")
    roll_out = state_of(teller).roll_out
    assert roll_out is not None
    teller.state = replace(state_of(teller), roll_out=replace(roll_out, undoes=1, version=2))
    teller.tell("tick +500")
    begun = state_of(teller).roll_out
    assert begun is not None
    assert begun.new_settings is NEW
    assert begun.undoes is None


def restarted(saved: State, due: NewSettings | None) -> State:
    read = decode_state(encode_state(saved), CATALOGUE)
    assert isinstance(read, State)
    state, _ = Machine().begin(
        controller_epoch=saved.controller_epoch + 1,
        settings=CATALOGUE,
        now_ms=saved.now_ms,
        saved=read,
        due=due,
    )
    return state


def test_a_restart_before_it_was_tried_begins_anew() -> None:
    """What the last controller wanted to deploy was not saved, and this one has its own."""
    teller = with_due()
    teller.tell("tick +500")
    saved = state_of(teller)
    assert saved.roll_out is not None
    assert restarted(saved, NEW).roll_out is None
    assert restarted(saved, NEW).due is NEW
    tried, _ = Machine().step(saved, DeploymentTried(saved.now_ms, 1, "", ""))
    going_on = restarted(tried, None)
    assert going_on.roll_out is not None
    assert going_on.roll_out.is_tried


def test_without_anything_due_nothing_begins() -> None:
    """A start with the same deployment leaves the group alone."""
    teller = after(*TWO_CONSUMERS)
    state, effects = Machine().step(state_of(teller), Tick(state_of(teller).now_ms + 500, 0))
    assert state.roll_out is None
    assert not [one for one in effects if isinstance(one, SetDeploymentTemplate)]
