"""The settings of a running controller: at its start, read again, and as it shows them."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kit.controller.story import CATALOGUE, TWO_CONSUMERS, after
from penstock.controller.core.inputs import Requested, Tick
from penstock.controller.core.state import State
from penstock.controller.process.kept_settings import KeptSettings
from penstock.controller.process.saved_states import Remembered
from penstock.controller.process.settings_in_force import GroupSettings
from penstock.deployment import DeploymentTemplate
from penstock.errors import SettingsError
from penstock.messages import UpdateDeployments
from penstock.settings import changed_settings
from penstock.telemetry import get_logger

STARTED = GroupSettings(CATALOGUE, {"packing.capacity": "penstock.yaml"}, "/new.yaml", "new")
ROLL_OUT = Requested(5, UpdateDeployments(request_id="u", from_settings=True))


def kept(folder: Path, read_again: Callable[[], GroupSettings] | None = None) -> KeptSettings:
    return KeptSettings(STARTED, read_again, folder, get_logger(component="controller"))


def two_consumers() -> State:
    state = after(*TWO_CONSUMERS).state
    assert isinstance(state, State)
    return state


@pytest.mark.parametrize(("before", "is_due"), [("old", True), ("new", False), ("", False)])
def test_consumers_that_outlived_with_other_settings_are_replaced(
    tmp_path: Path, before: str, is_due: bool
) -> None:
    """Those of an earlier release, of which nothing is known, are left alone."""
    template = DeploymentTemplate(settings_file="/old.yaml", settings_digest=before)
    settings = kept(tmp_path)
    request = settings.roll_out_of(Remembered(two_consumers(), template), 7)
    assert (request is not None) is is_due
    assert settings.roll_out_of(Remembered(None, template), 7) is None
    started = settings.template(template)
    assert (started.settings_file, started.settings_digest) == ("/new.yaml", "new")


def test_settings_are_read_again_only_for_who_asks(tmp_path: Path) -> None:
    """The core gets them with the request, or why they cannot be read."""

    def broken() -> GroupSettings:
        raise SettingsError("penstock.yaml: not valid YAML.")

    for given in (Tick(5, 5), Requested(5, UpdateDeployments(request_id="u"))):
        assert kept(tmp_path, broken).with_new_settings(given) is given
    assert kept(tmp_path).with_new_settings(ROLL_OUT) is ROLL_OUT
    refused = kept(tmp_path, broken).with_new_settings(ROLL_OUT)
    assert isinstance(refused, Requested)
    assert (refused.new_settings, refused.not_read) == (None, "penstock.yaml: not valid YAML.")
    found = kept(tmp_path, lambda: STARTED).with_new_settings(ROLL_OUT)
    assert isinstance(found, Requested)
    assert found.new_settings is not None
    assert found.new_settings.settings is CATALOGUE
    assert found.new_settings.consumers_file == "/new.yaml"


def test_what_is_in_force_is_shown_when_it_is_adopted(tmp_path: Path) -> None:
    """Not when it was only read: the core may refuse it."""
    adopted: list[str] = []
    edited = changed_settings(CATALOGUE, {"packing.capacity": "3MB/s"})
    new = GroupSettings(
        edited, {"packing.capacity": "edited.yaml"}, on_adopted=lambda: adopted.append("yes")
    )
    settings, state = kept(tmp_path, lambda: new), two_consumers()

    def shown() -> tuple[str, str]:
        content = json.loads((tmp_path / "settings-in-force.json").read_text())
        row = content["options"]["packing.capacity"]
        return row["value"], row["origin"]

    settings.show(state, DeploymentTemplate(), 1)
    assert shown() == ("100B/s", "penstock.yaml")
    settings.with_new_settings(ROLL_OUT)
    settings.show(state, DeploymentTemplate(), 2)
    assert adopted == []
    settings.show(replace(state, chosen=edited), DeploymentTemplate(), 3)
    assert shown() == ("3MB/s", "edited.yaml")
    assert adopted == ["yes"]


PODS = replace(STARTED, pod_plan={"settings": {"image": "penstock:2"}})


def kept_pods(folder: Path) -> KeptSettings:
    return KeptSettings(PODS, lambda: PODS, folder, get_logger(component="controller"))


def test_pods_stay_as_they_are_until_a_roll_out(tmp_path: Path) -> None:
    """A start with another deployment changes no version: the roll-out brings a new one."""
    settings = kept_pods(tmp_path)
    old = DeploymentTemplate(3, settings_digest="old", pod_plan={"settings": {"image": "x:1"}})
    remembered = Remembered(two_consumers(), old)
    assert settings.template(old) is old
    due = settings.due(remembered)
    assert due is not None
    assert (due.consumers_digest, due.pod_plan) == ("new", PODS.pod_plan)
    assert settings.roll_out_of(remembered, 7) is None
    assert settings.due(Remembered(None, old)) is None


def test_what_was_rolled_back_is_tried_again_only_when_asked(tmp_path: Path) -> None:
    """A controller that is restarted does not try it, but a request can."""
    settings = kept_pods(tmp_path)
    failed = DeploymentTemplate(4, settings_digest="old", failed_digest="new", pod_plan={"a": 1})
    assert settings.due(Remembered(two_consumers(), failed)) is None
    assert settings.template(failed) is failed
    asked = settings.with_new_settings(ROLL_OUT)
    assert isinstance(asked, Requested)
    assert asked.new_settings is not None
    assert asked.new_settings.pod_plan == PODS.pod_plan


def test_a_start_with_the_deployment_of_the_consumers_replaces_nothing(tmp_path: Path) -> None:
    """The settings map may have another name: then only settings of the controller changed."""
    settings = kept_pods(tmp_path)
    same = DeploymentTemplate(
        3, settings_file="former", settings_digest="new", failed_digest="x", pod_plan={"a": 1}
    )
    assert settings.due(Remembered(two_consumers(), same)) is None
    started = settings.template(same)
    assert (started.version, started.settings_file, started.failed_digest) == (3, "/new.yaml", "")
    assert started.pod_plan == PODS.pod_plan
