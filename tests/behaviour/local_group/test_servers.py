"""The servers that a local group starts itself come back before what needs them."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, cast

import pytest

from penstock.deployment import DeploymentState, DeploymentTemplate, LocalProcesses
from penstock.deployment.local_processes import SERVERS_RESTARTING_NAME, LaunchPlan
from penstock.errors import PenstockError
from penstock.local_group import LocalGroup
from penstock.local_group import group as module
from penstock.model import ConsumerId
from penstock.processes import ProcessIdentity, identity_of, restart_pace, stop
from penstock.processes import start_child as child_of_test
from penstock.processes.child import ENDED_AT_ONCE
from penstock.settings import Settings, changed_settings
from penstock.settings.sections import KafkaSettings

ONE = ConsumerId(1)
DEAD = ProcessIdentity(1, ENDED_AT_ONCE)
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


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
    spark_dies: Callable[[], None] = lambda: None

    def restart(self, number: int, meanwhile: Callable[[], None]) -> None:
        self.spark_dies()
        meanwhile()
        meanwhile()
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
    return LaunchPlan(SLEEP, {})


@pytest.fixture
def broker(tmp_path: Path) -> PlayedBroker:
    return PlayedBroker(LocalProcesses(tmp_path, "g", sleeper))


def group_with(broker: PlayedBroker, folder: Path) -> LocalGroup:
    settings: Settings = changed_settings(Settings(), {"controller.directory": str(folder)})
    group = LocalGroup(settings, start_broker=None, embedded_spark=False)
    group.broker = broker
    return group


@dataclass
class PlayedSpark:
    """A Spark server that answers when the test says so."""

    process: ProcessIdentity = DEAD
    answers: bool = False
    begun: int = 0
    failure: str = ""
    master: str = "sc://127.0.0.1:1"

    def begin(self) -> None:
        self.begun += 1
        self.process = alive()

    def is_ready(self) -> bool:
        if self.failure:
            self.process = DEAD
            raise PenstockError(self.failure)
        return self.answers


def alive() -> ProcessIdentity:
    """A process that lives: this one."""
    found = identity_of(os.getpid())
    assert found is not None
    return found


@dataclass
class Stage:
    """A group whose Spark server, controller and monitor are dead."""

    group: LocalGroup
    spark: PlayedSpark
    # The last words of the commands that were started, in their order.
    started: list[str]

    @property
    def holds_consumers_back(self) -> bool:
        return (self.group.directory / SERVERS_RESTARTING_NAME).exists()


@pytest.fixture
def stage(broker: PlayedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    group = group_with(broker, tmp_path)
    spark, started = PlayedSpark(), list[str]()
    group.spark_server = cast("Any", spark)

    def start_child(command: Sequence[str], *, log_file: Path, **_: object) -> ProcessIdentity:
        started.append("warm-up" if "sc://127.0.0.1:1" in command else command[3])
        return child_of_test(SLEEP, log_file=tmp_path / "child.log")

    monkeypatch.setattr(module, "start_child", start_child)
    for name in ("monitor", "controller"):
        group._children[name] = module._Child(name, DEAD, started_s=0.0)
    yield Stage(group, spark, started)
    for child in group._children.values():
        stop(child.process, grace_s=0)
    group._end_warm_up()


def test_controller_and_monitor_do_not_wait_for_spark(stage: Stage) -> None:
    """They need the broker alone: they start in the same pass in which Spark is begun."""
    lines = stage.group.repair()
    assert stage.spark.begun == 1
    assert stage.started == ["monitor", "controller"]
    assert [line.partition(" died")[0] for line in lines] == ["the monitor", "the controller"]
    assert stage.holds_consumers_back


def test_consumers_are_held_back_until_spark_answers(stage: Stage) -> None:
    """However many passes that takes; then the server gets its first job, and once."""
    for _ in range(3):
        stage.group.repair()
        assert stage.holds_consumers_back
        assert stage.group.is_spark_starting
    stage.spark.answers = True
    assert stage.group.repair() == ["the Spark server died and was started again"]
    assert not stage.holds_consumers_back
    assert stage.started == ["monitor", "controller", "warm-up"]
    assert stage.group.repair() == []
    assert stage.spark.begun == 1
    assert stage.started == ["monitor", "controller", "warm-up"]


def test_a_spark_server_that_dies_while_starting_is_told_and_tried_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Consumers are not held back in the pause: they wait for Spark themselves."""
    stage.group.repair()
    stage.spark.failure = "no memory"
    failed = "the Spark server died and could not be restarted: no memory"
    assert stage.group.repair() == [failed]
    assert not stage.holds_consumers_back
    assert stage.group.repair() == []
    assert stage.spark.begun == 1
    monkeypatch.setattr(restart_pace, "PAUSE_FIRST_S", 0.0)
    stage.spark.failure = ""
    stage.group.repair()
    assert stage.spark.begun == 2
    assert stage.holds_consumers_back


def test_a_spark_server_that_cannot_be_begun_is_told(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Java nothing starts, and nothing is waited for."""

    def begin() -> None:
        raise PenstockError("no Java")

    monkeypatch.setattr(stage.spark, "begin", begin)
    lines = stage.group.repair()
    assert lines[0] == "the Spark server died and could not be restarted: no Java"
    assert not stage.group.is_spark_starting
    assert not stage.holds_consumers_back


def test_a_spark_server_that_dies_with_the_broker_starts_beside_it(
    stage: Stage, broker: PlayedBroker
) -> None:
    """It took a second more to die than the broker, and waited for it for a quarter of a minute."""
    stage.spark.process = alive()
    broker.nodes = {1: Node(is_alive=False)}
    broker.spark_dies = lambda: setattr(stage.spark, "process", DEAD)
    stage.group.repair()
    assert broker.restarted == [1]
    assert stage.spark.begun == 1
    assert stage.holds_consumers_back


def test_without_a_broker_nothing_else_is_started(stage: Stage, broker: PlayedBroker) -> None:
    """Spark starts meanwhile; controller and monitor would only end again, with longer pauses."""
    broker.nodes = {2: Node(is_alive=False)}
    lines = stage.group.repair()
    assert [line.partition(":")[0] for line in lines] == [
        "the broker died and could not be restarted"
    ]
    assert stage.spark.begun == 1
    assert stage.started == []
    broker.nodes = {2: Node()}
    stage.group.repair()
    assert stage.started == ["monitor", "controller"]
    broker.deployment.delete(ONE)


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
    clock[0] += 0.9
    assert group.repair() == ["the broker 1 died and was started again"]
    clock[0] += 0.1
    group.repair()
    assert broker.restarted == [2, 1, 2]
    broker.deployment.delete(ONE)
