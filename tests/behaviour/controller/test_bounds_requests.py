"""Requests that the group has still to follow: when and how each is answered."""

from kit.controller.story import TWO_CONSUMERS, after
from kit.controller.story_state import state_of
from penstock.controller.core.requests import BOUNDS_REQUESTS_MAX
from penstock.controller.core.state import BoundsRequest


def test_only_the_bounds_that_were_asked_for_are_waited_for() -> None:
    """A raised maximum is done at once in a group that is still below its minimum."""
    teller = after("a controller starts with epoch 1", "deployed:", "deployed:")
    assert "  > answer a: accepted" in teller.tell("request a: settings consumers_min=1")
    assert "  > answer b: done" in teller.tell("request b: settings consumers_max=200")


def test_an_unfinished_change_of_bounds_survives_a_restart() -> None:
    """The next controller answers it when the group keeps its bounds."""
    teller = after(*TWO_CONSUMERS, "request m: settings consumers_max=1")
    assert state_of(teller).bounds_requests == (BoundsRequest("m", {"consumers_max": 1}),)
    teller.tell("a controller starts with epoch 2 with its state file")
    teller.tell("deployed: 1 2")
    teller.tell("consumer 1 answers orders-0@1.1 orders-1@1.2 orders-2@1.4")
    teller.tell("consumer 2 answers nothing")
    teller.tell("deployed: 1 2")
    teller.tell("speeds orders-0=40 orders-1=40 orders-2=10")
    teller.tell("tick +500")
    for _ in range(4):
        teller.tell("7500 ms pass")
        teller.tell("consumer 1 reports orders-0@1.1 orders-1@1.2 orders-2@1.4")
        teller.tell("consumer 2 reports")
        teller.tell("tick +500")
    assert list(state_of(teller).consumers) == [1]
    assert "  > answer m: done" in teller.tell("tick +500")


def test_a_request_that_a_later_one_overrides_is_never_done() -> None:
    """It is refused with the name of the later one; one that asks for the same waits on."""
    teller = after(*TWO_CONSUMERS, "request a: settings consumers_max=1")
    assert "  > answer same: accepted" in teller.tell("request same: settings consumers_max=1")
    lines = teller.tell("request other: settings spare_consumers=0")
    assert lines[-1] == "  > answer other: done"
    assert len(state_of(teller).bounds_requests) == 2
    lines = teller.tell("request b: settings consumers_max=50")
    assert "  request_answered: request a: refused, replaced by request b" in lines
    assert "  request_answered: request same: refused, replaced by request b" in lines
    assert "  > answer b: done" in lines
    assert not any("answer" in line for line in teller.tell("tick +500"))


def test_an_invalid_request_replaces_nothing() -> None:
    """What is refused leaves the request before it as it was."""
    teller = after(*TWO_CONSUMERS, "request a: settings consumers_max=1")
    assert "  > answer b: refused" in teller.tell(
        "request b: settings consumers_max=50 consumers_min=3 algorithm=nosuch"
    )
    assert [r.request_id for r in state_of(teller).bounds_requests] == ["a"]


def test_spares_are_done_when_they_are_up() -> None:
    """A request for spare consumers is accepted until the group has them."""
    teller = after(*TWO_CONSUMERS)
    lines = teller.tell("request s: settings spare_consumers=1")
    assert "  request_answered: request s: accepted, 0 spare consumers up, 1 wanted" in lines
    assert "  > create consumer 3" in teller.tell("tick +500")
    assert not any("answer" in line for line in teller.tell("tick +500"))
    teller.tell("consumer 3 reports")
    assert "  > answer s: done" in teller.tell("tick +500")


def test_spares_above_the_maximum_are_explained() -> None:
    """The answer says that the maximum has been reached."""
    teller = after("settings consumers_max=2", *TWO_CONSUMERS)
    lines = teller.tell("request s: settings spare_consumers=1")
    assert lines[0].endswith("0 spare consumers up, 1 wanted; the group is at its maximum of 2")


def test_an_answer_names_the_pause_that_holds_a_request() -> None:
    """At once when the pause is there already, and again when a pause begins or ends."""
    teller = after(*TWO_CONSUMERS, "request p: pause direction=down")
    teller.tell("request up: settings consumers_min=3")
    lines = teller.tell("request m: settings consumers_min=0 consumers_max=1")
    waits = "request m: accepted, 2 consumers now, the maximum is 1"
    assert f"  request_answered: {waits}; held by pause p (down)" in lines
    assert not any("answer" in line for line in teller.tell("tick +500"))
    teller.tell("request q: pause")
    teller.tell("request r: resume direction=down")
    assert f"  request_answered: {waits}" in teller.tell("tick +500")
    teller.tell("request t: pause")
    assert "  > answer m: accepted" in teller.tell("tick +500")
    assert state_of(teller).bounds_requests[0].held_by == "t"


def test_a_pause_does_not_hold_what_has_begun() -> None:
    """A spare that is created already comes up in spite of the pause, which is not blamed."""
    teller = after(*TWO_CONSUMERS, "request s: settings spare_consumers=1", "tick +500")
    teller.tell("request p: pause")
    assert not any("answer" in line for line in teller.tell("tick +500"))
    lines = teller.tell("request t: settings spare_consumers=2")
    assert "  request_answered: request s: refused, replaced by request t" in lines
    assert "0 spare consumers up, 2 wanted; held by pause p (both)" in lines[1]


def test_requests_that_wait_for_the_group_are_bounded() -> None:
    """One too many is refused with the reason, and changes nothing."""
    teller = after(*TWO_CONSUMERS)
    for number in range(BOUNDS_REQUESTS_MAX):
        assert f"  > answer m{number}: accepted" in teller.tell(
            f"request m{number}: settings consumers_max=1"
        )
    lines = teller.tell("request more: settings consumers_max=1 spare_consumers=1")
    assert "  request_answered: request more: refused, 20 requests wait for the group already" in (
        lines
    )
    assert state_of(teller).settings.spare_consumers == 0
    assert "  > answer other: accepted" in teller.tell(
        "request other: settings consumers_min=3 consumers_max=3"
    )


def test_a_bound_that_a_restart_drops_has_failed() -> None:
    """The file no longer allows it: its request is answered, and never done."""
    teller = after(*TWO_CONSUMERS, "request m: settings consumers_max=1")
    teller.tell("settings consumers_min=2")
    teller.tell("a controller starts with epoch 2 with its state file")
    teller.tell("deployed: 1 2")
    teller.tell("consumer 1 answers orders-0@1.1 orders-1@1.2")
    teller.tell("consumer 2 answers orders-2@1.3")
    teller.tell("deployed: 1 2")
    assert "  > answer m: failed" in teller.tell("tick +500")
    assert state_of(teller).bounds_requests == ()
