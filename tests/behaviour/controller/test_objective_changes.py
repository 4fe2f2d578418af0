"""The objective in a running group: settings follow what was measured."""

from dataclasses import replace
from typing import Any

from kit.controller.story import TWO_CONSUMERS, after
from kit.controller.story_state import state_of
from penstock.controller.core.decisions import Code
from penstock.controller.core.objective_changes import FOLLOW_EVERY_MS, follow, note_rises
from penstock.controller.core.settings import controller_settings
from penstock.controller.core.state import State
from penstock.controller.core.step_draft import StepDraft
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
    decision = after_it.history[-1]
    assert decision.code is Code.OBJECTIVE_FOLLOWED
    assert decision.explanation.startswith("packing.target_utilisation is 0.95 instead of 0.85: ")


def test_what_a_person_set_is_not_followed() -> None:
    """Nothing changes, and nothing is told."""
    own = {"packing.target_utilisation": 0.6, "packing.scale_down_period": "2m"}
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
