"""What requests changed: which request it was, how long it holds, and how it is taken back."""

from dataclasses import replace
from typing import Final

import pytest

from kit.controller.story import CATALOGUE, TWO_CONSUMERS, after
from penstock.controller.core.decisions import Code
from penstock.controller.core.effects import (
    Effect,
    RestoreDeploymentTemplate,
    SetDeploymentTemplate,
    TryDeployment,
)
from penstock.controller.core.inputs import DeploymentTried, NewSettings, Requested, Tick
from penstock.controller.core.saved_state import decode_state, encode_state
from penstock.controller.core.settings import LiveChange, overtaken_changes
from penstock.controller.core.state import State
from penstock.controller.core.state_machine import Machine
from penstock.messages import (
    ChangeSettings,
    DropChanges,
    ServiceAnswer,
    ServiceRequest,
    UpdateDeployments,
)
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


def test_a_default_that_a_release_changed_is_no_edit() -> None:
    """Who asked for 5 MB/s in place of the former default of 2 MB/s keeps them."""
    asked_for = {CAPACITY: LiveChange("r", "eve", 0, "2MB/s")}
    assert overtaken_changes(Settings(), {CAPACITY: "5MB/s"}, asked_for) == {}
    edited = changed_settings(Settings(), {CAPACITY: "auto"})
    assert CAPACITY in overtaken_changes(edited, {CAPACITY: "5MB/s"}, asked_for)


def test_a_setting_that_was_taken_out_of_the_file_overtakes_a_change() -> None:
    """Who deletes the line wants the default, and not what a request once put in its place."""
    edited = changed_settings(Settings(), {CAPACITY: "2MB/s"})
    with_line, without = restarted(changed(), CATALOGUE), restarted(changed(), Settings())
    assert with_line.override_origins[CAPACITY].was_set
    assert CAPACITY not in without.overrides
    never_set = {CAPACITY: LiveChange("r", "eve", 0, "2MB/s", was_set=False)}
    assert overtaken_changes(Settings(), {CAPACITY: "5MB/s"}, never_set) == {}
    assert overtaken_changes(edited, {CAPACITY: "5MB/s"}, never_set) == {}


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


# A file that is rolled out


def rolled_out(
    state: State, settings: Settings | None, **fields: object
) -> tuple[State, str, list[SetDeploymentTemplate]]:
    request = UpdateDeployments.model_validate({"request_id": "u", "from_settings": True, **fields})
    new = None if settings is None else NewSettings(settings, "/copy.yaml", "digest")
    given = Requested(state.now_ms + 5, request, new, not_read="penstock.yaml: not valid YAML.")
    state, effects = Machine().step(state, given)
    messages = [getattr(effect, "message", None) for effect in effects]
    answers = [f"{m.outcome}: {m.detail}" for m in messages if isinstance(m, ServiceAnswer)]
    tried = next((e for e in effects if isinstance(e, TryDeployment)), None)
    if tried is not None:
        assert tried.new_settings is new
        state, effects = Machine().step(state, DeploymentTried(state.now_ms + 5, tried.version))
    return state, answers[0], [e for e in effects if isinstance(e, SetDeploymentTemplate)]


def test_a_file_is_rolled_out_as_a_whole() -> None:
    """The controller goes on with it, and so do consumers; what it changed beats the request."""
    more = ChangeSettings(request_id="m", changes={"packing.target_utilisation": 0.5})
    state, _ = asked(changed(), more)
    edited = changed_settings(state.chosen, {CAPACITY: "3MB/s", "controller.catch_up": "7m"})
    state, answer, (template,) = rolled_out(state, edited)
    assert answer == "accepted: version 1 is tried first, then one by one"
    assert state.chosen is edited
    assert state.settings.policy.capacity_bytes_per_s == 3e6
    assert state.settings.catch_up_ms == 420_000
    assert state.settings.policy.target_utilisation == 0.5
    assert list(state.overrides) == list(state.override_origins) == ["packing.target_utilisation"]
    assert dropped(state)[-1].startswith("packing.capacity: the settings were changed from")
    assert template.new_settings == NewSettings(edited, "/copy.yaml", "digest")


def test_a_file_that_is_refused_by_its_trial_is_not_adopted() -> None:
    """The controller goes on with the settings that it has, and so do consumers."""
    before = two_consumers()
    request = UpdateDeployments(request_id="u", from_settings=True)
    edited = changed_settings(before.chosen, {CAPACITY: "3MB/s"})
    given = Requested(before.now_ms + 5, request, NewSettings(edited, "/copy.yaml", "digest"))
    state, _ = Machine().step(before, given)
    assert state.chosen is before.chosen
    state, effects = Machine().step(state, DeploymentTried(state.now_ms + 5, 1, "no such module"))
    assert state.chosen is before.chosen
    assert state.roll_out is None
    assert not any(isinstance(e, SetDeploymentTemplate) for e in effects)


def test_a_file_that_is_rolled_back_is_given_up_as_a_whole() -> None:
    """Where its consumers do not carry, the former settings are in force again."""
    before = two_consumers()
    edited = changed_settings(before.chosen, {CAPACITY: "3MB/s"})
    state, _, _ = rolled_out(before, edited)
    assert state.roll_out is not None
    state = replace(state, roll_out=replace(state.roll_out, fault="consumer 3 carries nothing"))
    effects: list[Effect] = []
    while not any(isinstance(e, RestoreDeploymentTemplate) for e in effects):
        state, more = Machine().step(state, Tick(state.now_ms + 500))
        effects = list(more)
    assert state.chosen is before.chosen
    assert state.settings.policy.capacity_bytes_per_s == before.settings.policy.capacity_bytes_per_s


@pytest.mark.parametrize(
    ("changes", "fields", "why"),
    [
        (None, {}, "penstock.yaml: not valid YAML."),
        ({"topics.prefix": "other"}, {}, "changes that need a restart: topics.prefix"),
        ({"lake.root": "/elsewhere"}, {}, "changes that need a restart: lake.root"),
        ({}, {"image": "penstock:2"}, "an image and resources are for consumers on Kubernetes"),
    ],
)
def test_a_file_that_cannot_be_rolled_out_changes_nothing(
    changes: dict[str, object] | None, fields: dict[str, object], why: str
) -> None:
    """A wrong file, and what no running process can change."""
    before = two_consumers()
    before = replace(
        before, chosen=changed_settings(before.chosen, {"controller.deployment": "local"})
    )
    settings = None if changes is None else changed_settings(before.chosen, changes)
    state, answer, templates = rolled_out(before, settings, **fields)
    assert answer.startswith(f"refused: {why}")
    assert state.chosen is before.chosen
    assert state.roll_out is None
    assert templates == []
