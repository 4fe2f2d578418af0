"""Times of the day in which the settings allow no change. Stories begin on a Thursday, 00:00."""

from kit.controller.story import TWO_CONSUMERS, Storyteller, after
from kit.controller.story_state import state_of
from penstock.controller.core.inputs import Tick
from penstock.controller.core.snapshot import snapshot
from penstock.controller.core.state import Phase
from penstock.messages import Direction

LITTLE = (
    "tick +500",
    "61000 ms pass",
    "speeds orders-0=10 orders-1=10 orders-2=10",
    "tick +500",
)


def looked_for_fewer(teller: Storyteller) -> bool:
    """A load that one consumer can carry, after a scale-down period."""
    for line in LITTLE:
        teller.tell(line)
    return state_of(teller).phase is Phase.REASSIGN


def test_the_group_does_not_shrink_in_that_time() -> None:
    """And does when it is over: the trigger says the same again."""
    assert looked_for_fewer(after(*TWO_CONSUMERS))
    held = after("settings no_scale_down=00:00-00:10", *TWO_CONSUMERS)
    assert not looked_for_fewer(held)
    seen = snapshot(state_of(held), 0, is_degraded=False)
    assert seen["pauses"] == [
        {
            "direction": "down",
            "until_unix_ms": 600_000,
            "reason": "packing.no_scale_down: 00:00-00:10",
        }
    ]
    assert any("packing.no_scale_down" in one["reason"] for one in seen["conditions"])
    held.tell("600000 ms pass")
    assert looked_for_fewer(held)
    assert not state_of(held).excluded


def test_it_still_grows_in_that_time_unless_it_is_frozen() -> None:
    """A release freezes both ways."""
    for option, grows in (("no_scale_down", True), ("freeze", False)):
        teller = after(f"settings {option}=00:00-00:10", *TWO_CONSUMERS, "4000 ms pass")
        teller.tell("speeds orders-0=90 orders-1=90 orders-2=40")
        teller.tell("tick +500")
        assert (state_of(teller).phase is Phase.REASSIGN) == grows, option


def test_the_clock_is_that_of_the_time_zone() -> None:
    """One hour ahead of UTC, the time is over; the pause names what holds."""
    teller = after("settings freeze=00:00-00:10", *TWO_CONSUMERS, "tick +500")
    (pause,) = state_of(teller).excluded
    assert (pause.direction, pause.request_id) == (Direction.BOTH, "packing.freeze")
    teller.give(Tick(teller.now_ms, teller.now_ms, utc_offset_s=3_600))
    assert not state_of(teller).excluded
