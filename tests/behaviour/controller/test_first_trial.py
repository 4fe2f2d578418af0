"""A controller that finds no consumers tries the deployment before it leads."""

from typing import Any

import pytest

from kit.deployment.in_memory import InMemoryDeployment
from penstock.controller.process.first_trial import require_that_it_can_work
from penstock.deployment import DeploymentError, DeploymentTemplate, TrialOutcome
from penstock.errors import PenstockError, SettingsError
from penstock.model import ConsumerId


class Log:
    """Keeps the names of events."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def info(self, event: str, **_: Any) -> None:
        self.events.append(event)

    warning = info


@pytest.mark.parametrize(("exit_code", "kind"), [(3, SettingsError), (1, PenstockError)])
def test_what_cannot_work_is_not_started(exit_code: int, kind: type[PenstockError]) -> None:
    """The error has the reason, and the exit code of what is wrong."""
    deployment = InMemoryDeployment()
    deployment.trial_outcome = TrialOutcome("no module", exit_code)
    with pytest.raises(kind, match="The group was not started: no module") as raised:
        require_that_it_can_work(deployment, DeploymentTemplate(), Log())
    assert raised.value.exit_code == exit_code


def test_a_group_with_consumers_is_led_anyway() -> None:
    """They carry what they can, and somebody must lead them."""
    deployment = InMemoryDeployment()
    deployment.trial_outcome = TrialOutcome("no module", 3)
    deployment.create(ConsumerId(1), DeploymentTemplate())
    require_that_it_can_work(deployment, DeploymentTemplate(), Log())
    assert deployment.tried == []


def test_what_works_or_cannot_be_tried_is_started() -> None:
    """The log says which it was."""
    deployment, log = InMemoryDeployment(), Log()
    require_that_it_can_work(deployment, DeploymentTemplate(version=4), log)
    assert [one.version for one in deployment.tried] == [4]
    deployment.next_error["list_consumers"] = DeploymentError("away")
    require_that_it_can_work(deployment, DeploymentTemplate(), log)
    assert log.events == ["deployment_tried", "deployment_not_tried"]
