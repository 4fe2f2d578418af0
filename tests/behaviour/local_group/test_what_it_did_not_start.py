"""A group stops the consumers that it started, and no others."""

import os
import socket
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from penstock.deployment import DeploymentTemplate, LocalProcesses, TrialOutcome
from penstock.deployment.local_processes import LaunchPlan
from penstock.local_group import LocalGroup
from penstock.local_group import group as group_module
from penstock.local_group.group import StartInterruptedError
from penstock.local_group.taken_folder import FolderTakenError, take_folder
from penstock.model import ConsumerId
from penstock.processes import is_alive, stop
from penstock.settings import Settings, changed_settings
from penstock.state_directory import StateDirectory, holder_of

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
ONE, TWO = ConsumerId(1), ConsumerId(2)


def settings_in(folder: Path) -> Settings:
    return changed_settings(Settings(), {"controller.directory": str(folder)})


def test_consumers_of_an_earlier_controller_keep_running(tmp_path: Path) -> None:
    """They belong to no `penstock up`: a later one uses them and does not stop them."""
    said: list[str] = []
    group = LocalGroup(
        settings_in(tmp_path), start_broker=None, embedded_spark=False, on_progress=said.append
    )
    own = Settings().lake.group
    theirs = LocalProcesses(tmp_path, own, lambda *_: LaunchPlan(SLEEP, {}))
    ours = LocalProcesses(tmp_path, own, lambda *_: LaunchPlan(SLEEP, {}), owner=group._owner)
    theirs.create(ONE, DeploymentTemplate())
    ours.create(TWO, DeploymentTemplate())
    left, ended = theirs.process_of(ONE), ours.process_of(TWO)
    try:
        group._stop_consumers()
        assert is_alive(left)
        assert not is_alive(ended)
        assert said == [
            "left running: 1 consumer that this command did not start",
            "stopping 1 consumer",
        ]
    finally:
        stop(left, grace_s=0)


def test_a_start_that_is_interrupted_while_it_tries_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C ends the trial too; what it did not find out is no reason to go on."""
    is_interrupted: list[bool] = []

    def trial(_: object, **__: object) -> TrialOutcome:
        is_interrupted.append(True)
        return TrialOutcome(note="it could not be tried: exit code 130")

    monkeypatch.setattr(group_module, "require_free_prefix", lambda _: None)
    monkeypatch.setattr(group_module, "run_trial", trial)
    started: list[str] = []
    monkeypatch.setattr(LocalGroup, "_launch", lambda _, name: started.append(name))
    group = LocalGroup(
        settings_in(tmp_path),
        start_broker=None,
        embedded_spark=False,
        is_stopped=lambda: bool(is_interrupted),
    )
    with pytest.raises(StartInterruptedError) as interrupted:
        group.start()
    assert interrupted.value.exit_code == 130
    assert started == []


@pytest.mark.parametrize("part", ["up", "controller"])
def test_a_folder_that_is_held_is_refused_at_once(tmp_path: Path, part: str) -> None:
    """By another `up`, or by a controller that was started alone; with who holds it."""
    holder = StateDirectory(tmp_path / part, "x", holder="process 7 on here, since noon")
    with holder:
        group = LocalGroup(settings_in(tmp_path), start_broker=None, embedded_spark=False)
        with pytest.raises(FolderTakenError) as refused:
            group.start()
    said = f"Another group runs in {tmp_path} (process 7 on here, since noon)."
    assert refused.value.message == said
    assert refused.value.exit_code == 8
    assert "controller.directory=DIR" in refused.value.remedy


def test_the_holder_of_a_folder_says_where_it_is(tmp_path: Path) -> None:
    """Host, process, folder and since when; not the command, which says nothing about that."""
    with ExitStack() as first:
        take_folder(first, tmp_path)
        with pytest.raises(FolderTakenError) as refused, ExitStack() as second:
            take_folder(second, tmp_path)
    said = refused.value.message
    where = f"process {os.getpid()} on {socket.gethostname()}, since 20"
    assert said.startswith(f"Another group runs in {tmp_path} ({where}")
    assert said.endswith(" UTC).")


def test_others_are_told_while_a_group_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it starts and runs they are not; a folder that another holds is left as it is."""
    seen: list[bool] = []

    def look(_: object, name: str = "") -> None:
        holder = holder_of(tmp_path / "up")
        assert holder is not None
        seen.append(holder.is_ending)

    monkeypatch.setattr(group_module, "require_free_prefix", lambda _: None)
    monkeypatch.setattr(group_module, "run_trial", lambda _, **__: TrialOutcome())
    monkeypatch.setattr(group_module, "make_control_topics", lambda _: [])
    monkeypatch.setattr(LocalGroup, "_launch", look)
    monkeypatch.setattr(LocalGroup, "_stop_child", look)
    settings = settings_in(tmp_path)
    with LocalGroup(settings, start_broker=None, embedded_spark=False):
        assert seen == [False, False]
        second = LocalGroup(settings, start_broker=None, embedded_spark=False)
        with pytest.raises(FolderTakenError):
            second.start()
        look(None)
        assert seen[-1] is False
    assert seen[3:] == [True, True]
    assert holder_of(tmp_path / "up") is None
