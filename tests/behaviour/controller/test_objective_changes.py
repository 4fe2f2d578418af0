"""The objective in a running group: settings follow what was measured."""

from dataclasses import replace
from typing import Any

import pytest

from kit.controller.story import TWO_CONSUMERS, after
from kit.controller.story_state import state_of
from penstock.controller.core.decisions import Code
from penstock.controller.core.objective_changes import (
    FOLLOW_EVERY_MS,
    follow,
    note_peaks,
    note_rises,
)
from penstock.controller.core.settings import controller_settings
from penstock.controller.core.state import KnownCapacity, State
from penstock.controller.core.step_draft import StepDraft
from penstock.packing.peaks import Peaks
from penstock.packing.rises import Rises
from penstock.settings import Settings, changed_settings

OPEN = changed_settings(Settings(), {"packing.capacity": "100B/s"})
CALM = Rises(0, 3_600_000, counted=(9.0, *(0.0,) * 50))


def group(**changes: Any) -> State:
    """Two consumers whose operator has set nothing that follows the objective."""
    state = state_of(after(*TWO_CONSUMERS))
    return replace(state, chosen=OPEN, settings=controller_settings(OPEN), **changes)


def followed(state: State, now_ms: int) -> State:
    draft = StepDraft(state, now_ms)
    follow(draft)
    return draft.finish(now_ms)[0]


def test_a_calm_group_is_filled_further() -> None:
    """After ten minutes, with the reason in the history."""
    first = followed(group(followed_ms=None, rises=CALM), 1_000)
    assert first.settings == controller_settings(OPEN)
    assert followed(first, FOLLOW_EVERY_MS).settings == first.settings
    after_it = followed(first, FOLLOW_EVERY_MS + 1_000)
    before, now = first.settings.policy, after_it.settings.policy
    assert now.target_utilisation > before.target_utilisation
    assert (first.settings.spare_consumers, after_it.settings.spare_consumers) == (1, 0)
    decision = after_it.history[-1]
    assert decision.code is Code.OBJECTIVE_FOLLOWED
    assert decision.explanation.startswith("packing.target_utilisation is 0.95 instead of 0.85: ")


def test_what_a_person_set_is_not_followed() -> None:
    """Nothing changes, and nothing is told."""
    own = {
        "packing.target_utilisation": 0.6,
        "packing.scale_down_period": "2m",
        "controller.spare_consumers": 1,
    }
    held = changed_settings(OPEN, own)
    state = replace(group(followed_ms=0, rises=CALM), chosen=held)
    state = replace(state, settings=controller_settings(held))
    after_it = followed(state, FOLLOW_EVERY_MS)
    assert after_it.settings == state.settings
    assert after_it.history == state.history


def test_slow_starts_count_when_there_were_three() -> None:
    """One slow start says little."""
    few = followed(group(followed_ms=0, starts_took_ms=(50_000,) * 2), FOLLOW_EVERY_MS)
    assert few.followed.start_s is None
    known = followed(group(followed_ms=0, starts_took_ms=(50_000,) * 3), FOLLOW_EVERY_MS)
    assert known.followed.start_s == 50


def test_rises_are_noted_with_measurements() -> None:
    """Every ten seconds or so, by who holds what; before the first measurement nothing is."""
    teller = after(*TWO_CONSUMERS)
    assert state_of(teller).rises.looked_ms is not None
    first = state_of(teller).rises
    teller.tell("speeds orders-0=40 orders-1=40 orders-2=40")
    assert state_of(teller).rises is first
    teller.tell("11000 ms pass")
    teller.tell("speeds orders-0=80 orders-1=40 orders-2=40")
    counted = state_of(teller).rises.counted
    assert sum(counted) == 2
    assert counted[0] == 1
    draft = StepDraft(replace(state_of(teller), speeds=None), teller.now_ms)
    note_rises(draft)
    assert draft.state.rises is state_of(teller).rises


SPARE = "controller.spare_consumers"


def test_one_job_in_some_hours_is_not_calm() -> None:
    """Otherwise the spare would come and go with it."""
    seldom = Rises(0, 3_600_000, counted=(*(0.0,) * 2, 996.0, *(0.0,) * 20, 4.0, *(0.0,) * 27))
    after_it = followed(group(followed_ms=0, rises=seldom), FOLLOW_EVERY_MS)
    assert after_it.followed.rise == pytest.approx(0.04)
    assert after_it.settings.spare_consumers == 1


def test_rises_that_make_several_looks_late_are_covered() -> None:
    """Eight of a thousand are fewer than may be late, and more than half of these."""
    seldom = Rises(0, 3_600_000, counted=(992.0, 0, 0, 0, 8.0, *(0.0,) * 46))
    after_it = followed(group(followed_ms=0, rises=seldom), FOLLOW_EVERY_MS)
    assert after_it.followed.rise == pytest.approx(0.08)


def test_the_slowest_start_counts_and_requests_stay() -> None:
    """What an operator asked for is not followed, and not told as if it had changed."""
    starts = (5_000, 50_000, 6_000)
    state = group(followed_ms=0, starts_took_ms=starts, overrides={SPARE: 3}, rises=CALM)
    after_it = followed(state, FOLLOW_EVERY_MS)
    assert after_it.followed.start_s == 50
    assert after_it.settings.spare_consumers == 3
    assert SPARE not in after_it.history[-1].explanation
    assert "packing.target_utilisation is 0.95" in after_it.history[-1].explanation


def test_the_second_change_tells_what_changed_since_the_first() -> None:
    """Not since the start."""
    first = followed(group(followed_ms=0, rises=CALM), FOLLOW_EVERY_MS)
    restless = Rises(0, 3_600_000, counted=(*(0.0,) * 5, 9.0, *(0.0,) * 45))
    second = followed(replace(first, rises=restless), 2 * FOLLOW_EVERY_MS)
    told = second.history[-1].explanation
    assert told.startswith("controller.spare_consumers is 1 instead of 0: ")


def test_rises_use_the_measured_capacity() -> None:
    """Of a topic of which one consumer carries a gigabyte, a rise of some bytes is next to none."""
    state = group(followed_ms=0)
    assert state.speeds is not None
    at_ms, topic = state.speeds.measured_ms, next(iter(state.speeds.bytes_per_s)).topic
    state = replace(
        state,
        settings=replace(state.settings, capacity_is_measured=True),
        capacities={topic: KnownCapacity(1e9, 1e9, 1e9, "measured")},
        rises=Rises(at_ms - 60_000, at_ms - 60_000, dict.fromkeys(state.speeds.bytes_per_s, 0.0)),
    )
    draft = StepDraft(state, state.now_ms)
    note_rises(draft)
    assert draft.state.rises.counted[:2] == (0, 2)


def test_rises_use_the_strength_of_each_consumer() -> None:
    """The same rise is twice the share of a consumer that carries half of what others do."""
    state = group(followed_ms=0)
    assert state.speeds is not None
    at_ms, topic = state.speeds.measured_ms, next(iter(state.speeds.bytes_per_s)).topic
    held = {consumer: tuple(parts)[:1] for consumer, parts in state.held_by.items()}
    weak, usual = sorted(held)
    speeds = {held[weak][0]: 20.0, held[usual][0]: 20.0}
    consumers = {
        **state.consumers,
        weak: replace(state.consumers[weak], capacity_by_topic={topic: 100.0}),
        usual: replace(state.consumers[usual], capacity_by_topic={topic: 200.0}),
    }
    state = replace(
        state,
        settings=replace(state.settings, capacity_is_measured=True),
        capacities={topic: KnownCapacity(200.0, 100.0, 200.0, "measured")},
        consumers=consumers,
        speeds=replace(state.speeds, bytes_per_s=speeds),
        rises=Rises(at_ms - 60_000, at_ms - 60_000, dict.fromkeys(speeds, 0.0)),
    )
    draft = StepDraft(state, state.now_ms)
    note_rises(draft)
    assert (draft.state.rises.counted[5], draft.state.rises.counted[10]) == (1, 1)


def test_a_peak_that_comes_again_is_kept() -> None:
    """Until the next one, with the reason in the history."""
    peaks = Peaks(0, ({"orders": 100.0}, *({"orders": 40.0},) * 9) * 4)
    after_it = followed(group(followed_ms=0, rises=CALM, peaks=peaks), FOLLOW_EVERY_MS)
    assert after_it.followed.peak_returns_s == 300
    assert after_it.settings.policy.scale_down_period_ms == 360_000
    assert "the peak comes again within 5 min" in after_it.history[-1].explanation


def test_peaks_are_noted_with_measurements() -> None:
    """What is written lastingly, by topic; before the first measurement nothing is."""
    teller = after(*TWO_CONSUMERS)
    first = state_of(teller)
    assert first.peaks.highest_bytes_per_s == (first.written_by_topic,)
    teller.tell("31000 ms pass")
    teller.tell("speeds orders-0=10 orders-1=10 orders-2=10")
    assert state_of(teller).peaks.highest_bytes_per_s[1:] == ({"orders": 30.0},)
    for same in (replace(first, speeds=None), replace(first, written_by_topic={"orders": 1.0})):
        draft = StepDraft(same, teller.now_ms - 31_000)
        note_peaks(draft)
        assert draft.state.peaks is first.peaks


def test_peaks_count_what_the_bytes_of_a_topic_cost() -> None:
    """A job of a topic that costs a hundred times as much is seen among many bytes of another."""
    quiet, run = {"plain": 1_000.0, "slow": 0.0}, {"plain": 1_000.0, "slow": 10.0}
    plain = KnownCapacity(1_000.0, 1_000.0, 1_000.0, "measured")
    state = group(followed_ms=0, peaks=Peaks(0, (run, *(quiet,) * 5) * 4))
    assert followed(state, FOLLOW_EVERY_MS).followed.peak_returns_s is None
    state = replace(
        state,
        settings=replace(state.settings, capacity_is_measured=True),
        capacities={"plain": plain, "slow": replace(plain, bytes_per_s=10.0)},
        written_by_topic=quiet,
    )
    assert followed(state, FOLLOW_EVERY_MS).followed.peak_returns_s == 180
