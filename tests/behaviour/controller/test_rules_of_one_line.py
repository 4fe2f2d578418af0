"""Rules of one line each, which a stranger's changes broke without another test noticing."""

from dataclasses import replace

from kit.controller.story import TWO_CONSUMERS, after
from penstock.controller.core import housekeeping, roll_out, sentinel
from penstock.controller.core.backlog import catch_up_load
from penstock.controller.core.carried_samples import CarriedSample
from penstock.controller.core.effects import DeleteConsumer
from penstock.controller.core.growth import SAMPLES
from penstock.controller.core.growth import begin as begin_growth
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
    under_way = RollOut(update, 1, 2, replacing=ConsumerId(1), replacement=ConsumerId(9))
    draft = StepDraft(replace(state, roll_out=under_way), 0)
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


def test_a_partition_that_no_plan_can_help_raises_no_bound() -> None:
    """What is written to it does not let the backlogs of others add more."""
    state = state_with({})
    hot, other = sorted(state.write_speeds)[:2]
    speeds = {hot: 1_000.0, other: 10.0}
    memory = replace(state.speed_memory, established=speeds)
    settings = replace(state.settings, catch_up_ms=1_000, catch_up_share=0.5)
    draft = StepDraft(replace(state, speed_memory=memory, settings=settings), 0)
    assert catch_up_load(draft, {other: 1e9}, {hot}) == {other: 5.0}


def test_growth_is_compared_with_what_was_carried_lately() -> None:
    """Not with a better hour."""
    state = state_with({})
    settle_ms = state.settings.growth_settle_ms
    step_ms = settle_ms // SAMPLES
    quick = [CarriedSample(n * step_ms, 1_000 * n * step_ms, 1) for n in range(SAMPLES)]
    ms, bytes_ = quick[-1].at_ms, quick[-1].carried_bytes
    slow = [CarriedSample(ms + n * step_ms, bytes_ + n * step_ms, 1) for n in range(1, 2 * SAMPLES)]
    now_ms = slow[-1].at_ms
    draft = StepDraft(replace(state, carried_samples=(*quick, *slow)), now_ms)
    begin_growth(draft, 1, 2)
    trial = draft.state.growth_trial
    assert trial is not None
    assert trial.carried_bytes_per_s == 1_000.0


def test_a_new_consumer_has_its_time_for_the_newest_of_its_partitions() -> None:
    """One that it got a moment ago is not late because it has others for long."""
    state = state_with({})
    bound_ms = state.settings.creation_timeout_ms
    first = min(state.held_by[ConsumerId(1)])
    heartbeats = replace(state.heartbeats, heartbeat_time_ms=bound_ms)
    holdings = {
        partition: replace(
            holding, since_heartbeat_time_ms=bound_ms - 1 if partition == first else 0
        )
        for partition, holding in state.holdings.items()
    }
    draft = StepDraft(replace(state, heartbeats=heartbeats, holdings=holdings), 0)
    assert len(draft.held_by(ConsumerId(1))) > 1
    assert not roll_out._is_late(draft, ConsumerId(1))
