"""A back-end that only keeps a list of consumers, for tests of the controller.

It records every call, fails where a test planted a failure, and lets a test make a consumer die.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from penstock.deployment.interface import (
    DeployedConsumer,
    DeploymentError,
    DeploymentState,
    DeploymentTemplate,
    Incident,
    TrialOutcome,
)
from penstock.model import ConsumerId


class InMemoryDeployment:
    lists_are_current = True

    def __init__(self) -> None:
        self.calls: list[tuple[str, ConsumerId]] = []
        # Raised by the next call of that name, once.
        self.next_error: dict[str, DeploymentError] = {}
        self.trial_outcome = TrialOutcome()
        self.tried: list[DeploymentTemplate] = []
        self._consumers: dict[ConsumerId, DeployedConsumer] = {}
        self._dead: set[ConsumerId] = set()

    def list_consumers(self) -> Mapping[ConsumerId, DeployedConsumer]:
        self._called("list_consumers", ConsumerId(0))
        return {consumer: self._consumers[consumer] for consumer in sorted(self._consumers)}

    def create(self, consumer: ConsumerId, template: DeploymentTemplate) -> None:
        self._called("create", consumer)
        new = DeployedConsumer(consumer, template.version, DeploymentState.RUNNING)
        self._consumers.setdefault(consumer, new)

    def delete(self, consumer: ConsumerId) -> None:
        self._called("delete", consumer)
        self._consumers.pop(consumer, None)
        self._dead.discard(consumer)

    def try_out(self, template: DeploymentTemplate) -> TrialOutcome:
        """The outcome that a test has set, for every template."""
        self._called("try_out", ConsumerId(0))
        self.tried.append(template)
        return self.trial_outcome

    def repair(self) -> Sequence[Incident]:
        incidents = []
        for consumer in sorted(self._dead & set(self._consumers)):
            known = self._consumers[consumer]
            self._consumers[consumer] = replace(
                known, state=DeploymentState.RUNNING, restarts=known.restarts + 1
            )
            incidents.append(Incident(consumer, "died and was started again", has_ended=True))
        self._dead.clear()
        return incidents

    def die(self, consumer: ConsumerId) -> None:
        """Behave as if the consumer's process had ended by itself."""
        self._dead.add(consumer)
        known = self._consumers[consumer]
        self._consumers[consumer] = replace(known, state=DeploymentState.RESTARTING)

    def _called(self, name: str, consumer: ConsumerId) -> None:
        self.calls.append((name, consumer))
        error = self.next_error.pop(name, None)
        if error is not None:
            raise error
