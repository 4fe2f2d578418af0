"""What growth is compared with: what as many consumers as before carried, by the time it took."""

from dataclasses import replace

import pytest

from kit.controller.imagined_group import MB, NEVER_MS, ImaginedGroup, partitions
from kit.controller.story import TWO_CONSUMERS, after
from kit.controller.story_state import state_of
from penstock.controller.core.growth import begin, note_carried
from penstock.controller.core.heartbeat_state import HeartbeatState
from penstock.controller.core.heartbeats import count_returned
from penstock.controller.core.inputs import HeartbeatReturned
from penstock.controller.core.step_draft import StepDraft
from penstock.model import ConsumerId

PARTITIONS = 16


def overloaded() -> ImaginedGroup:
    """Four consumers, which are all that there may be, carry 4 of 5 MB/s."""
    group = ImaginedGroup(
        partitions(PARTITIONS, 5 * MB / PARTITIONS),
        carries_bytes_per_s=1 * MB,
        waiting_bytes=400 * MB,
        packing__capacity="1MB/s",
        controller__consumers_max=4,
        controller__spare_consumers=0,
        controller__growth_settle="10s",
    ).run(60)
    assert group.working == 4
    return group


def test_who_takes_the_place_of_a_lost_one_is_no_growth() -> None:
    """Four consumers carry no more than four did: none of them is removed for that."""
    group = overloaded()
    for back_after_ms in (4_000, 15_000):
        group.kill(ConsumerId(4), back_after_ms)
        group.run(40)
        assert group.said("growth_did_not_help") == []
        assert group.working == 4


def test_a_group_that_was_smaller_for_long_is_compared_with() -> None:
    """After `growth_settle` with three consumers, a fourth one has to help again."""
    group = overloaded()
    group.is_cluster_full = True
    group.kill(ConsumerId(4), NEVER_MS)
    group.run(60)
    assert group.working == 3
    draft = StepDraft(group.state, group.now_ms)
    begin(draft, 3, 4)
    trial = draft.state.growth_trial
    assert trial is not None
    assert trial.consumers_before == 3


class Rising(ImaginedGroup):
    """Two consumers carry 0.8 MB/s; when the load has risen, five carry 2.5 MB/s of 2.8."""

    def __init__(self) -> None:
        self.load_bytes_per_s = 0.8 * MB
        super().__init__(
            {f"t-{n}": lambda _: self.load_bytes_per_s / PARTITIONS for n in range(PARTITIONS)},
            carries_bytes_per_s=0.5 * MB,
            packing__capacity="500kB/s",
            controller__consumers_max=5,
            controller__spare_consumers=0,
            controller__growth_settle="20s",
        )
        self.run(60)
        assert self.working == 2

    def rise(self) -> None:
        self.load_bytes_per_s = 2.8 * MB


def test_a_pause_of_the_controller_does_not_falsify_what_was_carried() -> None:
    """All that waited for it is read in one moment: two seemed to carry 3.6 of their 0.8 MB/s."""
    group = Rising()
    group.stand_still(20)
    group.run(3)
    group.rise()
    group.run(50)
    assert group.said("growth_did_not_help") == []
    assert group.working == 5


@pytest.mark.parametrize("after_s", [1, 10, 18])
def test_a_pause_within_a_trial_ends_in_no_wrong_verdict(after_s: int) -> None:
    """It is compared when all that waited has been read, and over the time that it took."""
    group = Rising()
    group.rise()
    while group.working < 5:
        group.run(0.5)
    group.run(after_s).stand_still(30)
    group.run(60)
    assert group.said("growth_did_not_help") == []
    assert group.working == 5


def slow_heartbeats(period: str, takeover_after: str, shared_bytes_per_s: float) -> ImaginedGroup:
    """A group that needs more than its first ten consumers, with `growth_settle` of 4 s."""
    return ImaginedGroup(
        partitions(40, 0.2 * MB),
        carries_bytes_per_s=0.5 * MB,
        shared_bytes_per_s=shared_bytes_per_s,
        waiting_bytes=800 * MB,
        packing__capacity="auto",
        calibrated={"t": 1 * MB},
        controller__consumers_max=40,
        controller__spare_consumers=0,
        controller__growth_settle="4s",
        controller__heartbeat_period=period,
        controller__takeover_after=takeover_after,
    )


def test_a_group_whose_heartbeats_are_rare_grows_all_the_same() -> None:
    """Its trials end, although nothing is heard for longer than `growth_settle` is remembered."""
    group = slow_heartbeats("15s", "120s", 40 * MB).run(300)
    assert group.working > 10
    assert group.behind_bytes < 800 * MB


def test_growth_is_compared_also_where_heartbeats_are_rarer_than_the_time_it_has() -> None:
    """Else nothing would be known of before, and whatever does not help would stay."""
    group = slow_heartbeats("5s", "40s", 5 * MB).run(300)
    assert group.said("growth_did_not_help")
    assert group.working == 10


def test_what_was_carried_is_dated_by_the_heartbeat_behind_it() -> None:
    """By when it was sent, also when it comes back after the next one; not when that is unknown."""
    heartbeats = HeartbeatState(heartbeats_sent=9, last_sent_ms=(70_000, 40_000))
    state = replace(state_of(after(*TWO_CONSUMERS)), heartbeats=heartbeats, carried_samples=())
    draft = StepDraft(state, 90_000)
    for number in (7, 8, 9):
        count_returned(draft, HeartbeatReturned(90_000, state.controller_epoch, number))
        note_carried(draft)
    assert [one.at_ms for one in draft.state.carried_samples] == [40_000, 70_000]
    assert [one.working for one in draft.state.carried_samples] == [2, 2]
