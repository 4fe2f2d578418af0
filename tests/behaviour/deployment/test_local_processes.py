"""Local consumers: identity by start time, restarts with pauses, damaged notes."""

import json
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
    note = local._read(ONE)
    assert note is not None
    file = tmp_path / "consumer-1" / "deployment.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    content["process"]["started_at_ticks"] -= 1
    file.write_text(json.dumps(content), encoding="utf-8")
    assert local.list_consumers()[ONE].state is DeploymentState.RESTARTING
    local.delete(ONE)
    assert is_alive(note.process)
    content["process"]["started_at_ticks"] += 1
    file.write_text(json.dumps(content), encoding="utf-8")
    local.delete(ONE)
    assert not is_alive(note.process)
    assert processes_naming(str(tmp_path)) == []


def test_restarts_slow_down_and_are_called_failed(tmp_path: Path) -> None:
    """The pause doubles; after several restarts the consumer is failed, and still restarted."""
    clock = Clock()
    local = LocalProcesses(tmp_path, "g", quitter, monotonic=clock)
    local.create(ONE, TEMPLATE)
    pauses = []
    for _ in range(6):
        while is_alive(local._read(ONE).process):  # type: ignore[union-attr]  # it was created
            pass
        waited = 0.0
        while not local.repair():
            clock.now_s += 0.25
            waited += 0.25
        pauses.append(waited)
    assert pauses == [0.5, 1, 2, 4, 8, 16]
    while is_alive(local._read(ONE).process):  # type: ignore[union-attr]  # as above
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
        while is_alive(local._read(ONE).process):  # type: ignore[union-attr]  # it was created
            pass
        clock.now_s += 11
        assert len(local.repair()) == 1
        assert local.list_consumers()[ONE].restarts == expected


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
