"""Rules of one line each, which a stranger's changes broke without another test noticing."""

from dataclasses import replace

from kit.controller.story import TWO_CONSUMERS, after
from penstock.controller.core import housekeeping, sentinel
from penstock.controller.core.effects import DeleteConsumer
from penstock.controller.core.membership import STARTS_REMEMBERED, delete_again, make_ready
from penstock.controller.core.state import ConsumerRecord, ConsumerStatus, RollOut, State
from penstock.controller.core.step_draft import StepDraft
from penstock.messages import UpdateDeployments
from penstock.model import ConsumerId


def state_with(statuses: dict[int, ConsumerStatus]) -> State:
    """Two consumers with partitions, and these without."""
    state = after(*TWO_CONSUMERS).state
    assert state is not None
    more = {ConsumerId(c): ConsumerRecord(status, 0) for c, status in statuses.items()}
    return replace(state, consumers={**state.consumers, **more})


def test_a_deletion_is_asked_for_again_once_in_a_while() -> None:
    """Not with every tick from then on."""
    state = replace(state_with({}), departing={ConsumerId(9): 0})
    due_ms = state.settings.delete_resend_ms
    draft = StepDraft(state, due_ms)
    delete_again(draft)
    delete_again(draft)
    assert draft.finish(0)[1].count(DeleteConsumer(ConsumerId(9))) == 1


def test_the_latest_starts_tell_how_long_one_takes() -> None:
    """Machines that have become slow count, not those of the first day."""
    state = state_with({9: ConsumerStatus.CREATING})
    state = replace(state, starts_took_ms=(1,) * STARTS_REMEMBERED)
    draft = StepDraft(state, 0)
    make_ready(draft, ConsumerId(9))
    took_ms = draft.state.starts_took_ms
    assert len(took_ms) == STARTS_REMEMBERED
    assert took_ms[-1] == draft.heartbeat_time_ms != 1


def test_a_spare_that_is_up_comes_before_one_that_starts() -> None:
    """Whatever their numbers are."""
    state = state_with({8: ConsumerStatus.CREATING, 9: ConsumerStatus.READY})
    assert housekeeping.idle(StepDraft(state, 0)) == [9, 8]


def test_the_replacement_of_a_roll_out_is_not_idle() -> None:
    """It has no partitions yet, and there are more spares than wanted."""
    state = state_with({7: ConsumerStatus.READY, 8: ConsumerStatus.READY, 9: ConsumerStatus.READY})
    update = UpdateDeployments(request_id="u")
    roll_out = RollOut(update, 1, 2, replacing=ConsumerId(1), replacement=ConsumerId(9))
    draft = StepDraft(replace(state, roll_out=roll_out), 0)
    housekeeping.remove_the_idle(draft)
    assert ConsumerId(9) in draft.consumers
    assert ConsumerId(8) not in draft.consumers


def test_few_commands_are_sent_again_in_one_tick() -> None:
    """A thousand that were not acknowledged would fill the producer."""
    names = " ".join(f"orders-{number}" for number in range(200))
    speeds = " ".join(f"orders-{number}=1" for number in range(200))
    teller = after(
        "a controller starts with epoch 1",
        "deployed:",
        "deployed:",
        f"speeds {speeds}",
        "tick +500",
        f"packed 1: {names}",
        "consumer 1 reports",
    )
    assert teller.state is not None
    draft = StepDraft(teller.state, teller.now_ms + teller.state.settings.command_resend_ms)
    assert len(draft.in_flight) == 200
    housekeeping.send_again(draft)
    state, _ = draft.finish(0)
    assert state.counts["commands_resent"] == housekeeping.RESENT_PER_TICK_MIN


def test_the_grace_of_the_idle_begins_anew() -> None:
    """A group that had no surplus meanwhile gives the next one its whole time."""
    spares = {7: ConsumerStatus.READY, 8: ConsumerStatus.READY}
    state = replace(state_with({}), idle_since_ms=0)
    draft = StepDraft(state, 10)
    sentinel._let_the_idle_go(draft)
    assert draft.state.idle_since_ms is None
    later = StepDraft(replace(state_with(spares), idle_since_ms=draft.state.idle_since_ms), 10**9)
    sentinel._let_the_idle_go(later)
    assert set(spares) <= set(later.consumers)
