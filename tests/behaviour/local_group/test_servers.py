"""The servers that a local group starts itself come back before what needs them."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import pytest

from penstock.deployment import DeploymentState, DeploymentTemplate, LocalProcesses
from penstock.deployment.local_processes import LaunchPlan
from penstock.errors import PenstockError
from penstock.local_group import LocalGroup
from penstock.local_group import group as module
from penstock.model import ConsumerId
from penstock.settings import Settings, changed_settings
from penstock.settings.sections import KafkaSettings

ONE = ConsumerId(1)


@dataclass
class Node:
    is_alive: bool = True


@dataclass
class PlayedBroker:
    """A broker whose restart is noted, with the consumers that run at that moment."""

    deployment: LocalProcesses
    nodes: dict[int, Node] = field(default_factory=lambda: {1: Node(), 2: Node()})
    restarted: list[int] = field(default_factory=list)
    running_meanwhile: list[int] = field(default_factory=list)
    settings: KafkaSettings = field(default_factory=KafkaSettings)
    bootstrap_servers: str = ""

    def restart(self, number: int) -> None:
        self.deployment.create(ONE, DeploymentTemplate())
        self.deployment.repair()
        listed = self.deployment.list_consumers()
        self.running_meanwhile += [
            c for c, one in listed.items() if one.state is DeploymentState.RUNNING
        ]
        self.restarted.append(number)
        if number == 2:
            raise PenstockError("no room on the disk")
        self.nodes[number].is_alive = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


def sleeper(*_: object) -> LaunchPlan:
    return LaunchPlan([sys.executable, "-c", "import time; time.sleep(600)"], {})


@pytest.fixture
def broker(tmp_path: Path) -> PlayedBroker:
    return PlayedBroker(LocalProcesses(tmp_path, "g", sleeper))


def group_with(broker: PlayedBroker, folder: Path) -> LocalGroup:
    settings: Settings = changed_settings(Settings(), {"controller.directory": str(folder)})
    group = LocalGroup(settings, start_broker=None, embedded_spark=False)
    group.broker = broker
    return group


def test_no_consumer_starts_while_a_server_does(broker: PlayedBroker, tmp_path: Path) -> None:
    """A consumer that is asked for while a broker starts is started when it answers again."""
    group = group_with(broker, tmp_path)
    broker.nodes[1].is_alive = False
    assert group.repair() == ["the broker 1 died and was started again"]
    assert broker.running_meanwhile == []
    broker.deployment.repair()
    assert broker.deployment.list_consumers()[ONE].state is DeploymentState.RUNNING
    broker.deployment.delete(ONE)


def test_a_server_is_not_kept_waiting_for_the_pause_of_another(
    broker: PlayedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that has just failed to start is tried again after a pause, another one at once."""
    clock = [1000.0]
    monkeypatch.setattr(f"{module.__name__}.time.monotonic", lambda: clock[0])
    group = group_with(broker, tmp_path)
    broker.nodes[2].is_alive = False
    failed = "the broker 2 died and could not be restarted: no room on the disk"
    assert [line.strip(".") for line in group.repair()] == [failed]
    broker.nodes[1].is_alive = False
    clock[0] += 1
    assert group.repair() == ["the broker 1 died and was started again"]
    clock[0] += 10
    group.repair()
    assert broker.restarted == [2, 1, 2]
    broker.deployment.delete(ONE)
