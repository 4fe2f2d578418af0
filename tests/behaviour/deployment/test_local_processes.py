"""Local consumers: identity by start time, restarts with pauses, damaged notes."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from kit.processes import processes_naming
from penstock.deployment import (
    DeploymentError,
    DeploymentState,
    DeploymentTemplate,
    LocalProcesses,
)
from penstock.deployment.local_processes import LaunchPlan
from penstock.model import ConsumerId
from penstock.processes import is_alive

ONE = ConsumerId(1)
TEMPLATE = DeploymentTemplate(version=3)


def sleeper(consumer: ConsumerId, _: DeploymentTemplate, state: Path) -> LaunchPlan:
    return LaunchPlan([sys.executable, "-c", "import time; time.sleep(600)", str(state)], {})


def quitter(*_: object) -> LaunchPlan:
    return LaunchPlan([sys.executable, "-c", "print('no')"], {})


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def test_another_process_with_the_number_is_left_alone(tmp_path: Path) -> None:
    """A process with another start time is not the consumer, and deleting leaves it running."""
    local = LocalProcesses(tmp_path, "g", sleeper)
    local.create(ONE, TEMPLATE)
    process = local.process_of(ONE)
    file = tmp_path / "consumer-1" / "deployment.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    content["process"]["started_at_ticks"] -= 1
    file.write_text(json.dumps(content), encoding="utf-8")
    assert local.list_consumers()[ONE].state is DeploymentState.RESTARTING
    local.delete(ONE)
    assert is_alive(process)
    content["process"]["started_at_ticks"] += 1
    file.write_text(json.dumps(content), encoding="utf-8")
    local.delete(ONE)
    assert not is_alive(process)
    assert processes_naming(str(tmp_path)) == []


def test_restarts_slow_down_and_are_called_failed(tmp_path: Path) -> None:
    """The pause doubles; after several restarts the consumer is failed, and still restarted."""
    clock = Clock()
    local = LocalProcesses(tmp_path, "g", quitter, monotonic=clock)
    local.create(ONE, TEMPLATE)
    pauses = []
    for _ in range(6):
        while is_alive(local.process_of(ONE)):
            pass
        waited = 0.0
        while not local.repair():
            clock.now_s += 0.25
            waited += 0.25
        pauses.append(waited)
    assert pauses == [0.5, 1, 2, 4, 8, 16]
    while is_alive(local.process_of(ONE)):
        pass
    listed = local.list_consumers()[ONE]
    assert (listed.state, listed.restarts) == (DeploymentState.FAILED, 6)
    assert "6 restarts" in listed.detail


def test_a_steady_consumer_restarts_quickly(tmp_path: Path) -> None:
    """After a steady run the restart count begins again."""
    clock = Clock()
    local = LocalProcesses(tmp_path, "g", quitter, monotonic=clock)
    local.create(ONE, TEMPLATE)
    for expected in (1, 1):
        while is_alive(local.process_of(ONE)):
            pass
        clock.now_s += 11
        assert len(local.repair()) == 1
        assert local.list_consumers()[ONE].restarts == expected


def test_a_death_is_reported_with_the_last_line_of_the_log(tmp_path: Path) -> None:
    """The reason is usually there; a log that was removed is no error."""
    clock = Clock()
    local = LocalProcesses(tmp_path, "g", quitter, monotonic=clock)
    local.create(ONE, TEMPLATE)
    for last in ("no", ""):
        while is_alive(local.process_of(ONE)):
            pass
        if not last:
            (tmp_path / "consumer-1" / "consumer.log").unlink()
        clock.now_s += 11
        (incident,) = local.repair()
        assert incident.explanation == f"died and was started again (1). Last line: {last}"


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"consumer": 1, "group": "g"}'])
def test_a_broken_note_counts_as_not_deployed(tmp_path: Path, content: str) -> None:
    """A damaged note counts as not deployed, and creating starts the consumer."""
    local = LocalProcesses(tmp_path, "g", sleeper)
    folder = tmp_path / "consumer-1"
    folder.mkdir()
    (folder / "deployment.json").write_text(content, encoding="utf-8")
    assert local.list_consumers() == {}
    local.create(ONE, TEMPLATE)
    assert set(local.list_consumers()) == {ONE}
    local.delete(ONE)


def test_another_groups_consumers_are_never_touched(tmp_path: Path) -> None:
    """Consumers of another group in the same directory are not touched."""
    theirs = LocalProcesses(tmp_path, "theirs", sleeper)
    theirs.create(ONE, TEMPLATE)
    ours = LocalProcesses(tmp_path, "ours", sleeper)
    assert ours.list_consumers() == {}
    ours.delete(ONE)
    assert theirs.list_consumers()[ONE].state is DeploymentState.RUNNING
    theirs.delete(ONE)


def test_a_directory_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """If the folder cannot be made, an error is raised and no process is left."""
    (tmp_path / "file").touch()
    local = LocalProcesses(tmp_path / "file", "g", sleeper)
    with pytest.raises(DeploymentError, match="could not be started"):
        local.create(ONE, TEMPLATE)
    assert processes_naming(str(tmp_path)) == []


def test_a_note_that_cannot_be_written_stops_the_process(tmp_path: Path) -> None:
    """If the note cannot be written, the process is stopped."""
    local = LocalProcesses(tmp_path, "g", sleeper)
    (tmp_path / "consumer-1" / "deployment.partial").mkdir(parents=True)
    with pytest.raises(DeploymentError, match="could not be started"):
        local.create(ONE, TEMPLATE)
    assert processes_naming(str(tmp_path)) == []


def test_the_state_of_a_deleted_consumer_stays(tmp_path: Path) -> None:
    """A deleted consumer's folder stays with its log."""
    local = LocalProcesses(tmp_path, "g", sleeper)
    local.create(ONE, TEMPLATE)
    local.delete(ONE)
    assert (tmp_path / "consumer-1" / "consumer.log").exists()


def test_a_large_log_is_turned_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large log is renamed when the consumer starts."""
    monkeypatch.setattr("penstock.deployment.local_processes.LOG_BYTES_MAX", 3)
    local = LocalProcesses(tmp_path, "g", sleeper)
    folder = tmp_path / "consumer-1"
    folder.mkdir()
    (folder / "consumer.log").write_text("long enough", encoding="utf-8")
    local.create(ONE, TEMPLATE)
    assert (folder / "consumer.log.1").read_text(encoding="utf-8") == "long enough"
    local.delete(ONE)


def running(local: LocalProcesses) -> list[int]:
    found = local.list_consumers()
    return [c for c, one in found.items() if one.state is DeploymentState.RUNNING]


def test_no_more_start_at_once_than_allowed(tmp_path: Path) -> None:
    """Two of five start at once; each that has started lets the next one start, in order."""
    clock = Clock()
    local = LocalProcesses(tmp_path, "g", sleeper, starts_at_once_max=2, monotonic=clock)
    for number in (5, 4, 3, 2, 1):
        clock.now_s += 1
        local.create(ConsumerId(number), TEMPLATE)
    assert running(local) == [4, 5]
    waiting = local.list_consumers()[ONE]
    assert waiting.state is DeploymentState.WAITING
    assert waiting.is_starting, "the bound on its start does not run yet"
    assert waiting.detail == "waits until others have started"
    with pytest.raises(DeploymentError, match="not deployed"):
        local.process_of(ONE)
    assert local.repair() == []
    assert running(local) == [4, 5]
    (tmp_path / "consumer-4" / "started").touch()
    assert local.repair() == []
    assert running(local) == [3, 4, 5]
    local.delete(ConsumerId(2))  # it waits, and there is nothing to end
    local.delete(ConsumerId(5))
    local.repair()
    assert running(local) == [1, 3, 4]
    for consumer in local.list_consumers():
        local.delete(consumer)
    assert processes_naming(str(tmp_path)) == []


def test_a_start_that_hangs_lets_the_others_start(tmp_path: Path) -> None:
    """After twenty seconds a start waits for something else than the processor."""
    clock = Clock()
    local = LocalProcesses(tmp_path, "g", sleeper, starts_at_once_max=1, monotonic=clock)
    local.create(ONE, TEMPLATE)
    local.create(ConsumerId(2), TEMPLATE)
    clock.now_s += 19.9
    local.repair()
    assert running(local) == [1]
    clock.now_s += 0.2
    local.repair()
    assert running(local) == [1, 2]
    for consumer in (1, 2):
        local.delete(ConsumerId(consumer))


def test_how_long_a_start_counts_is_a_setting(tmp_path: Path) -> None:
    """On a slow machine even the first starts take longer than the default."""
    clock = Clock()
    local = LocalProcesses(
        tmp_path, "g", sleeper, starts_at_once_max=1, start_counts_s=60, monotonic=clock
    )
    local.create(ONE, TEMPLATE)
    local.create(ConsumerId(2), TEMPLATE)
    clock.now_s += 59.9
    local.repair()
    assert running(local) == [1]
    clock.now_s += 0.2
    local.repair()
    assert running(local) == [1, 2]
    for consumer in (1, 2):
        local.delete(ConsumerId(consumer))


def test_how_long_a_start_counts_follows_what_starts_took(tmp_path: Path) -> None:
    """Where a start takes 30 s of a loaded machine, the next one after 20 s makes it slower yet."""
    clock = Clock()
    before = LocalProcesses(tmp_path, "g", sleeper, starts_at_once_max=1, monotonic=clock)
    before.create(ONE, TEMPLATE)
    started(tmp_path, 1, after_s=30.0)
    # What a former controller's starts took counts too: it is in the folder.
    local = LocalProcesses(
        tmp_path, "g", sleeper, starts_at_once_max=1, start_slack=2, monotonic=clock
    )
    for number in (2, 3):
        local.create(ConsumerId(number), TEMPLATE)
    clock.now_s += 59.9
    local.repair()
    assert running(local) == [1, 2]
    clock.now_s += 0.2
    local.repair()
    assert running(local) == [1, 2, 3]
    # When the slow one is gone, nothing is known but the setting.
    local.delete(ONE)
    local.create(ConsumerId(4), TEMPLATE)
    clock.now_s += 20.1
    local.repair()
    assert running(local) == [2, 3, 4]
    for consumer in (2, 3, 4):
        local.delete(ConsumerId(consumer))


def test_starts_that_waited_for_something_else_hold_up_nobody_for_long(tmp_path: Path) -> None:
    """One waited ten minutes for the Spark server; then all did, as nothing but a bound tells."""
    clock = Clock()
    local = LocalProcesses(
        tmp_path, "g", sleeper, starts_at_once_max=3, start_counts_s_max=45, monotonic=clock
    )
    for number in (1, 2, 3):
        local.create(ConsumerId(number), TEMPLATE)
    took_s = {1: 600.0, 2: 5.0, 3: 4.0}
    for number, seconds in took_s.items():
        started(tmp_path, number, after_s=seconds)
    assert local._start_counts_for_s(local._notes()) == 20
    started(tmp_path, 2, after_s=600.0)
    assert local._start_counts_for_s(local._notes()) == 45
    for number in took_s:
        local.delete(ConsumerId(number))


def started(root: Path, number: int, *, after_s: float) -> None:
    """Let the file say that the consumer's start took this long."""
    folder = root / f"consumer-{number}"
    began_s = (folder / "deployment.json").stat().st_mtime
    (folder / "started").touch()
    os.utime(folder / "started", (began_s + after_s, began_s + after_s))


def test_another_controller_starts_what_waits(tmp_path: Path) -> None:
    """Who waits is in the folder, so that a controller that returns starts it."""
    before = LocalProcesses(tmp_path, "g", sleeper, starts_at_once_max=1)
    before.create(ONE, TEMPLATE)
    before.create(ConsumerId(2), TEMPLATE)
    after = LocalProcesses(tmp_path, "g", sleeper, starts_at_once_max=1)
    (tmp_path / "consumer-1" / "started").touch()
    assert after.repair() == []
    assert running(after) == [1, 2]
    for consumer in (1, 2):
        after.delete(ConsumerId(consumer))


def test_a_consumer_that_cannot_start_when_its_turn_comes_is_told(tmp_path: Path) -> None:
    """It is no longer deployed, and the incident has the reason."""
    local = LocalProcesses(tmp_path, "g", sleeper, starts_at_once_max=1)
    local.create(ONE, TEMPLATE)
    local.create(ConsumerId(2), TEMPLATE)
    (tmp_path / "consumer-2" / "started").mkdir()  # cannot be removed as a file
    (tmp_path / "consumer-1" / "started").touch()
    told = local.repair()
    assert [one.consumer for one in told] == [2]
    assert "could not be started" in told[0].explanation
    assert list(local.list_consumers()) == [1]
    local.delete(ONE)


def test_a_death_that_is_found_while_another_is_created_is_told(tmp_path: Path) -> None:
    """It was started again, and nobody ever heard of its death."""
    clock = Clock()
    local = LocalProcesses(tmp_path, "g", sleeper, monotonic=clock)
    local.create(ONE, TEMPLATE)
    process = local.process_of(ONE)
    os.kill(process.pid, signal.SIGKILL)
    while is_alive(process):
        pass
    clock.now_s += 1
    local.create(ConsumerId(2), TEMPLATE)
    [told] = local.repair()
    assert (told.consumer, told.has_ended) == (1, True)
    assert local.repair() == []
    for consumer in (1, 2):
        local.delete(ConsumerId(consumer))


def test_a_death_is_told_before_there_is_room_for_a_restart(tmp_path: Path) -> None:
    """Who died while another one starts is reported dead at once, and waits until it may start."""
    clock = Clock()
    local = LocalProcesses(tmp_path, "g", sleeper, starts_at_once_max=1, monotonic=clock)
    local.create(ONE, TEMPLATE)
    (tmp_path / "consumer-1" / "started").touch()
    local.create(ConsumerId(2), TEMPLATE)
    process = local.process_of(ONE)
    os.kill(process.pid, signal.SIGKILL)
    while is_alive(process):
        pass
    clock.now_s += 1
    [told] = local.repair()
    assert (told.consumer, told.has_ended) == (1, True)
    assert "died and waits until others have started (1)" in told.explanation
    assert local.list_consumers()[ONE].state is DeploymentState.WAITING
    assert local.repair() == []
    (tmp_path / "consumer-2" / "started").touch()
    assert local.repair() == []
    assert running(local) == [1, 2]
    assert local.list_consumers()[ONE].restarts == 1
    for consumer in (1, 2):
        local.delete(ConsumerId(consumer))


def test_a_note_is_for_the_groups_own_user_only(tmp_path: Path) -> None:
    """Variables of a request are in it."""
    local = LocalProcesses(tmp_path, "g", sleeper)
    local.create(ONE, DeploymentTemplate(environment={"APP_WORD": "x"}))
    note = tmp_path / "consumer-1" / "deployment.json"
    assert note.stat().st_mode & 0o777 == 0o600
    local.delete(ONE)
