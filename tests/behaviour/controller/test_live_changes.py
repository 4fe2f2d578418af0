"""What requests changed: which request it was, how long it holds, and how it is taken back."""

from dataclasses import replace
from typing import Final

import pytest

from kit.controller.story import CATALOGUE, TWO_CONSUMERS, after
from penstock.controller.core.decisions import Code
from penstock.controller.core.inputs import Requested
from penstock.controller.core.saved_state import decode_state, encode_state
from penstock.controller.core.state import State
from penstock.controller.core.state_machine import Machine
from penstock.messages import ChangeSettings, DropChanges, ServiceAnswer, ServiceRequest
from penstock.settings import Settings, changed_settings

CAPACITY: Final = "packing.capacity"


def asked(state: State, request: ServiceRequest) -> tuple[State, str]:
    """The state after a request, and the answer to it."""
    state, effects = Machine().step(state, Requested(state.now_ms + 5, request))
    messages = [getattr(effect, "message", None) for effect in effects]
    (answer,) = [one for one in messages if isinstance(one, ServiceAnswer)]
    return state, f"{answer.outcome}: {answer.detail}"


def two_consumers() -> State:
    state = after(*TWO_CONSUMERS).state
    assert isinstance(state, State)
    return state


def changed(text: str = "700kB/s") -> State:
    request = ChangeSettings(request_id="r", requested_by="eve", changes={CAPACITY: text})
    state, answer = asked(two_consumers(), request)
    assert answer == f"done: changed: packing.capacity {text}"
    return state


def restarted(state: State, settings: Settings) -> State:
    """The next controller, which has the saved state and these settings."""
    saved = decode_state(encode_state(state), settings)
    assert isinstance(saved, State)
    return Machine().begin(
        controller_epoch=state.controller_epoch + 1,
        settings=settings,
        now_ms=state.now_ms + 100,
        saved=saved,
    )[0]


def dropped(state: State) -> list[str]:
    return [d.explanation for d in state.history if d.code is Code.SETTING_DROPPED]


def test_a_request_uses_the_names_and_units_of_the_settings() -> None:
    """It is remembered who asked for it, and what the settings had at that time."""
    state = changed()
    assert state.settings.policy.capacity_bytes_per_s == 700_000
    origin = state.override_origins[CAPACITY]
    assert (origin.request_id, origin.requested_by) == ("r", "eve")
    assert origin.instead_of == "100B/s"
    wrong = ChangeSettings(request_id="w", changes={CAPACITY: "fast"})
    assert asked(state, wrong)[1].startswith("refused: packing.capacity: ")


def test_a_change_holds_while_the_settings_stay_as_they_were() -> None:
    """A controller that restarts with the same settings goes on with the change."""
    after_restart = restarted(changed(), CATALOGUE)
    assert after_restart.settings.policy.capacity_bytes_per_s == 700_000
    assert after_restart.override_origins[CAPACITY].requested_by == "eve"
    assert dropped(after_restart) == []


def test_settings_that_were_edited_since_win() -> None:
    """The case of the user whose `--set packing.capacity` was ignored; and it is said."""
    edited = changed_settings(CATALOGUE, {CAPACITY: "3MB/s"})
    after_restart = restarted(changed(), edited)
    assert after_restart.settings.policy.capacity_bytes_per_s == 3e6
    assert after_restart.overrides == {}
    assert after_restart.override_origins == {}
    (said,) = dropped(after_restart)
    assert said == (
        "packing.capacity: the settings were changed from 100B/s to 3MB/s since request r, "
        "so 3MB/s counts"
    )


def test_a_change_of_an_earlier_release_goes_on() -> None:
    """It did not save what the settings had: nobody can say that they were edited."""
    state = replace(changed(), overrides={"capacity_bytes_per_s": 5e5}, override_origins={})
    edited = changed_settings(CATALOGUE, {CAPACITY: "3MB/s"})
    after_restart = restarted(state, edited)
    assert after_restart.settings.policy.capacity_bytes_per_s == 5e5
    assert list(after_restart.overrides) == [CAPACITY]


@pytest.mark.parametrize("options", [(), (CAPACITY,)])
def test_a_change_is_taken_back(options: tuple[str, ...]) -> None:
    """One or all; the settings count again. Once more is no error."""
    request = DropChanges.model_validate_json(
        DropChanges(request_id="d").model_dump_json()
    ).model_copy(update={"options": options})
    state, answer = asked(changed(), request)
    assert answer == "done: as in the settings again: packing.capacity 100B/s"
    assert state.settings == two_consumers().settings
    assert state.overrides == state.override_origins == {}
    again = request.model_copy(update={"request_id": "again"})
    assert asked(state, again)[1] == "done: nothing was changed"


def test_other_changes_stay() -> None:
    """Only what is named is taken back."""
    more = ChangeSettings(request_id="m", changes={"controller.consumers_max": 7})
    state, _ = asked(changed(), more)
    state, _ = asked(state, DropChanges(request_id="d", options=(CAPACITY,)))
    assert state.overrides == {"controller.consumers_max": 7}
    assert state.settings.consumers_max == 7


def test_what_the_rest_depends_on_is_not_taken_back_alone() -> None:
    """A raised minimum needs the raised maximum."""
    bounds = ChangeSettings(
        request_id="b",
        changes={"controller.consumers_max": 200, "controller.consumers_min": 150},
    )
    state, _ = asked(two_consumers(), bounds)
    state, answer = asked(state, DropChanges(request_id="d", options=("controller.consumers_max",)))
    assert answer.startswith("refused: controller: consumers_min 150 is above consumers_max")
    assert state.settings.consumers_max == 200


def test_the_group_follows_bounds_that_are_taken_back() -> None:
    """The request is done when the group is as large as the settings want it."""
    fewer = changed_settings(CATALOGUE, {"controller.consumers_max": 1})
    state = replace(two_consumers(), chosen=fewer)
    state, _ = asked(state, ChangeSettings(request_id="m", changes={"controller.consumers_max": 5}))
    state, answer = asked(state, DropChanges(request_id="d"))
    assert answer == "accepted: 2 consumers now, the maximum is 1"
    assert [one.request_id for one in state.bounds_requests] == ["d"]
