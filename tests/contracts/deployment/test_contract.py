"""The contract of every deployment back-end, tested on each of them."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pytest

from kit.deployment.in_memory import InMemoryDeployment
from kit.kubernetes.kubernetes_bench import SimulatedBench
from penstock.deployment import (
    DeployedConsumer,
    DeploymentBackend,
    DeploymentState,
    DeploymentTemplate,
    LocalProcesses,
)
from penstock.deployment.local_processes import LaunchPlan
from penstock.model import ConsumerId
from penstock.processes import is_alive

ONE, TWO = ConsumerId(1), ConsumerId(2)
FIRST = DeploymentTemplate(version=1, environment={"APP_COLOUR": "blue"})
SECOND = replace(FIRST, version=2)


class Bench(Protocol):
    """A back-end, a second one for the same group, and a way to kill consumers."""

    @property
    def backend(self) -> DeploymentBackend: ...

    def returned(self) -> DeploymentBackend: ...

    def kill(self, consumer: ConsumerId) -> None: ...

    def close(self) -> None: ...


class InMemoryBench:
    def __init__(self) -> None:
        self.backend = InMemoryDeployment()

    def returned(self) -> DeploymentBackend:
        return self.backend

    def kill(self, consumer: ConsumerId) -> None:
        self.backend.die(consumer)

    def close(self) -> None:
        """Nothing runs."""


class LocalBench:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.backend = self._made()

    def _made(self) -> LocalProcesses:
        return LocalProcesses(self._directory, "bench", launched, grace_s=10)

    def returned(self) -> DeploymentBackend:
        return self._made()

    def kill(self, consumer: ConsumerId) -> None:
        process = self.backend.process_of(consumer)
        os.kill(process.pid, signal.SIGKILL)
        deadline = time.monotonic() + 10
        while is_alive(process) and time.monotonic() < deadline:
            time.sleep(0.01)  # a killed process takes a moment to be gone

    def close(self) -> None:
        for consumer in self.backend.list_consumers():
            self.backend.delete(consumer)


def launched(consumer: ConsumerId, template: DeploymentTemplate, _: Path) -> LaunchPlan:
    line = f"print('consumer {consumer} of version', os.environ['V'], flush=True)"
    script = f"import os, time; {line}; time.sleep(600)"
    return LaunchPlan([sys.executable, "-c", script], {"V": str(template.version)})


def simulated(request: pytest.FixtureRequest, _: Path) -> Bench:
    return SimulatedBench(request.getfixturevalue("simulated_cluster"))


def in_memory(_: pytest.FixtureRequest, __: Path) -> Bench:
    return InMemoryBench()


def local(_: pytest.FixtureRequest, folder: Path) -> Bench:
    return LocalBench(folder)


@pytest.fixture(
    params=[in_memory, local, pytest.param(simulated, marks=pytest.mark.kubernetes)],
    ids=lambda made: made.__name__,
)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    made: Bench = request.param(request, tmp_path)
    yield made
    made.close()


def state_of(backend: DeploymentBackend, consumer: ConsumerId) -> DeploymentState:
    return backend.list_consumers()[consumer].state


def test_nothing_is_deployed_at_first(bench: Bench) -> None:
    """A new group has no consumers and no incidents."""
    assert bench.backend.list_consumers() == {}
    assert list(bench.backend.repair()) == []


def test_a_trial_deploys_nothing(bench: Bench) -> None:
    """It has an outcome, or says why it was not tried; no consumer comes of it."""
    found = bench.backend.try_out(FIRST)
    assert found.refusal == ""
    assert bench.backend.list_consumers() == {}


def test_created_is_listed_with_its_version(bench: Bench) -> None:
    """Created consumers are listed as running, in ascending order."""
    bench.backend.create(TWO, SECOND)
    bench.backend.create(ONE, FIRST)
    found = listed(bench.backend)
    assert [(one.consumer, one.version) for one in found] == [(ONE, 1), (TWO, 2)]
    assert {one.state for one in found} == {DeploymentState.RUNNING}


def listed(backend: DeploymentBackend) -> list[DeployedConsumer]:
    """Without what time alone changes: consumers come up meanwhile."""
    found = backend.list_consumers().values()
    return [replace(one, is_starting=False, detail="") for one in found]


def test_creating_twice_changes_nothing(bench: Bench) -> None:
    """A consumer that is deployed stays as it is, also when another template is given."""
    bench.backend.create(ONE, FIRST)
    before = listed(bench.backend)
    bench.backend.create(ONE, SECOND)
    assert listed(bench.backend) == before


def test_deleting_is_final_and_may_be_repeated(bench: Bench) -> None:
    """Deleting twice, or what never existed, is no error."""
    bench.backend.create(ONE, FIRST)
    bench.backend.delete(ONE)
    bench.backend.delete(ONE)
    bench.backend.delete(TWO)
    assert bench.backend.list_consumers() == {}
    assert list(bench.backend.repair()) == []


def test_the_dead_are_started_again_and_reported(bench: Bench) -> None:
    """A consumer that ended by itself is restarted and reported."""
    bench.backend.create(ONE, FIRST)
    bench.backend.create(TWO, FIRST)
    bench.kill(ONE)
    assert state_of(bench.backend, ONE) is DeploymentState.RESTARTING
    incidents = list(bench.backend.repair())
    deadline = time.monotonic() + 10
    while not incidents and time.monotonic() < deadline:
        time.sleep(0.02)  # a restart waits for its pause
        incidents = list(bench.backend.repair())
    assert [one.consumer for one in incidents] == [ONE]
    assert "started again" in incidents[0].explanation
    again = bench.backend.list_consumers()[ONE]
    assert (again.state, again.restarts, again.version) == (DeploymentState.RUNNING, 1, 1)
    assert bench.backend.list_consumers()[TWO].restarts == 0
    assert list(bench.backend.repair()) == []


def test_a_controller_that_returns_finds_them(bench: Bench) -> None:
    """A second back-end of the group lists and deletes the first one's consumers."""
    bench.backend.create(ONE, FIRST)
    returned = bench.returned()
    assert [one.consumer for one in listed(returned)] == [ONE]
    assert listed(returned) == listed(bench.backend)
    returned.delete(ONE)
    assert bench.backend.list_consumers() == {}
