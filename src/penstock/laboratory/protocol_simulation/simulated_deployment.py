"""A simulated deployment back-end: it starts and ends processes with delays and faults.

A deleted process keeps running on an unreachable node. A creation may fail, or the process may
never come up. A list may be out of date, or fail.
"""

import random
from typing import TYPE_CHECKING

from penstock.controller.core.inputs import (
    ConsumerDeleted,
    ConsumerIncident,
    CreationFailed,
    Deployed,
    DeploymentsListed,
    DeploymentTried,
    ListingFailed,
)
from penstock.laboratory.protocol_simulation.simulated_consumer import SimulatedConsumer
from penstock.laboratory.protocol_simulation.simulated_process import FOR_EVER_MS
from penstock.model import ConsumerId

if TYPE_CHECKING:
    from penstock.laboratory.protocol_simulation.simulated_controller import SimulatedController
    from penstock.laboratory.protocol_simulation.simulated_group import SimulatedGroup

RESTART_MS = (300, 1_500)
# Of the processes that are started again: those whose end is reported.
INCIDENT_SHARE = 0.5
START_MS = (100, 1_500)
TRIAL_MS = 50


class SimulatedDeployment:
    def __init__(self, group: "SimulatedGroup") -> None:
        self.group = group
        self.deployed: dict[ConsumerId, int] = {}
        self.processes: list[SimulatedConsumer] = []
        self.unreachable_next = 0
        self.creations_to_fail = 0
        self.never_up_next = 0
        self.stale_list_next = False
        self.listings_to_fail = 0
        # How many consumers were ever created, and told to end.
        self.created = 0
        self.ended = 0
        self._old_list: dict[ConsumerId, int] = {}
        self._current: dict[ConsumerId, SimulatedConsumer] = {}
        self._incarnations = 0
        # Created, and neither up nor certain never to come up; with the number of the creation.
        self.starting: dict[ConsumerId, int] = {}
        self._creations = 0
        self.slow_starts_until_ms = 0
        self.slow_start_ms = 0
        self._bad_versions: set[int] = set()
        # Draws of its own, so that the course of the other faults stays the same.
        self._chance = random.Random(group.scenario.seed + 3)

    def alive(self) -> list[SimulatedConsumer]:
        return [process for process in self.processes if process.is_alive]

    def reached(self, consumer: ConsumerId) -> list[SimulatedConsumer]:
        return [p for p in self.processes if p.is_alive and p.consumer == consumer]

    def list(self, controller: "SimulatedController") -> None:
        if self.listings_to_fail > 0:
            self.listings_to_fail -= 1
            self.group.count_event("listing failed")
            controller.send_input(lambda now: ListingFailed(now, "the API is away"), 20)
            return
        found = self._old_list if self.stale_list_next else dict(self.deployed)
        self.stale_list_next = False
        self._old_list = dict(self.deployed)
        if self.group.is_answer_lost():
            return
        answer = {c: Deployed(version, c in self.starting) for c, version in found.items()}
        delay = self.group.chance.randint(5, 60)
        controller.send_input(lambda now: DeploymentsListed(now, answer), delay)

    def try_out(self, controller: "SimulatedController", version: int) -> None:
        """Every deployment passes: what is wrong with one shows in its consumers."""
        controller.send_input(lambda now: DeploymentTried(now, version), TRIAL_MS)

    def set_template(self, version: int, *, is_bad: bool) -> None:
        """Consumers of a bad version stop every partition that they start."""
        self._bad_versions.discard(version)
        if is_bad:
            self._bad_versions.add(version)

    def restore_template(self, version: int) -> None:
        """As it was before the last version was set."""
        self.set_template(version, is_bad=self.is_bad(version - 2))
        self.group.count_event("rolled back")

    def is_bad(self, version: int) -> bool:
        return version in self._bad_versions

    def create(self, controller: "SimulatedController", consumer: ConsumerId, version: int) -> None:
        group = self.group
        if consumer in self.deployed:
            return
        if self.creations_to_fail > 0:
            self.creations_to_fail -= 1
            group.count_event("creation failed")
            controller.send_input(lambda now: CreationFailed(now, consumer, "quota"), 20)
            return
        self.deployed[consumer] = version
        self.created += 1
        if self.never_up_next > 0:
            self.never_up_next -= 1
            group.count_event("consumer never came up")
            return
        self._creations += 1
        number = self.starting[consumer] = self._creations
        delay = group.chance.randint(*START_MS)
        if group.clock.now_ms < self.slow_starts_until_ms:
            delay += self._chance.randint(0, self.slow_start_ms)

        def come_up() -> None:
            if self.starting.get(consumer) == number:  # it was not deleted meanwhile
                self.start(consumer)

        group.clock.after(delay, come_up)

    def start(self, consumer: ConsumerId) -> None:
        """Start a process. A deleted one with the same number may still run on another node."""
        current = self._current.get(consumer)
        self.starting.pop(consumer, None)
        if consumer in self.deployed and (current is None or not current.is_alive):
            self._incarnations += 1
            version = self.deployed[consumer]
            process = SimulatedConsumer(self.group, consumer, self._incarnations, version)
            self._current[consumer] = process
            self.processes = [*self.alive(), process]

    def delete(self, controller: "SimulatedController", consumer: ConsumerId) -> None:
        group = self.group
        self.ended += self.deployed.pop(consumer, None) is not None
        self.starting.pop(consumer, None)
        self._current.pop(consumer, None)
        for process in self.reached(consumer):
            if self.unreachable_next > 0:
                self.unreachable_next -= 1
                process.harm(FOR_EVER_MS)  # its node is lost, and nobody wants it any more
                group.count_event("deleted, but still running")
            else:
                group.clock.after(group.chance.randint(5, 300), process.crash)
        if not group.is_answer_lost():
            controller.send_input(lambda now: ConsumerDeleted(now, consumer), 50)

    def crashed(self, process: SimulatedConsumer) -> None:
        """A crashed process restarts, as on Kubernetes, or stays dead."""
        process.crash()
        if self.group.restarts_consumers:
            delay = self.group.chance.randint(*RESTART_MS)
            self.group.clock.after(delay, lambda: self._restart(process.consumer))

    def _restart(self, consumer: ConsumerId) -> None:
        """Some back-ends say at once that the former process is gone."""
        self.start(consumer)
        for process in self.reached(consumer):
            process.harm()
        if self._chance.random() < INCIDENT_SHARE:
            self.group.count_event("death confirmed")
            for controller in self.group.controllers:
                controller.send_input(
                    lambda now: ConsumerIncident(now, consumer, "died", has_ended=True), 1
                )

    def end_slow_starts(self) -> None:
        """What takes long to start is up now."""
        self.slow_starts_until_ms = 0
        for consumer in sorted(self.starting):
            self.start(consumer)

    def end_deleted_processes(self) -> None:
        """All nodes are reachable again: deleted processes end."""
        for process in self.alive():
            if self._current.get(process.consumer) is not process:
                process.crash()
