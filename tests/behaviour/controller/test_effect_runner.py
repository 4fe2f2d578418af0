"""What the controller does when something outside refuses."""

import queue
from collections.abc import Mapping
from dataclasses import replace

import pytest

from kit.deployment.in_memory import InMemoryDeployment
from penstock.controller.core.effects import (
    CreateConsumer,
    ListDeployments,
    RestoreDeploymentTemplate,
    SetDeploymentTemplate,
    TryDeployment,
)
from penstock.controller.core.inputs import (
    ConsumerIncident,
    CreationFailed,
    DeploymentTried,
    ListingFailed,
    NewSettings,
)
from penstock.controller.process.effect_runner import EffectRunner
from penstock.controller.process.inbound import Inbox
from penstock.deployment import (
    DeployedConsumer,
    DeploymentError,
    DeploymentTemplate,
    TrialOutcome,
)
from penstock.errors import PenstockError, UnreachableError
from penstock.messages import UpdateDeployments
from penstock.model import ConsumerId
from penstock.settings import Settings
from penstock.telemetry import get_logger


@pytest.mark.parametrize(
    "error",
    [
        UnreachableError("No Kafka broker answers."),
        DeploymentError("The back-end is away."),
        OSError(28, "No space left on device"),
    ],
)
def test_a_consumer_that_cannot_be_made_does_not_end_the_controller(
    error: PenstockError | OSError,
) -> None:
    """Whatever refuses, the loop hears that it failed and why, and goes on."""
    inbox: Inbox = queue.Queue()

    def refused(_: ConsumerId) -> None:
        raise error

    effect_runner = EffectRunner(
        InMemoryDeployment(),
        inbox,
        get_logger(component="controller"),
        template=DeploymentTemplate(),
        make_mailboxes=refused,
    )
    effect_runner.do(CreateConsumer(ConsumerId(3), version=0))
    given = inbox.get(timeout=10)
    effect_runner.close()
    assert not isinstance(given, Exception)
    said = given(7)
    assert isinstance(said, CreationFailed)
    assert (said.now_ms, said.consumer, said.reason) == (7, 3, str(error))


class AwayDeployment(InMemoryDeployment):
    """A back-end that does not answer."""

    def list_consumers(self) -> Mapping[ConsumerId, DeployedConsumer]:
        raise DeploymentError("The API server does not answer.")


def test_a_failed_listing_is_told_to_the_core_at_once() -> None:
    """The runner neither waits nor asks again: the core decides when to list again."""
    inbox: Inbox = queue.Queue()
    effect_runner = EffectRunner(
        AwayDeployment(),
        inbox,
        get_logger(component="controller"),
        template=DeploymentTemplate(),
        make_mailboxes=lambda _: None,
    )
    effect_runner.do(ListDeployments())
    given = inbox.get(timeout=10)
    effect_runner.close()
    assert not isinstance(given, Exception)
    assert given(7) == ListingFailed(7, "The API server does not answer.")
    assert inbox.empty()


def test_an_incident_of_a_consumer_reaches_the_core() -> None:
    """And so the history, where `penstock status` shows it."""
    inbox: Inbox = queue.Queue()
    deployment = InMemoryDeployment()
    deployment.create(ConsumerId(3), DeploymentTemplate())
    deployment.die(ConsumerId(3))
    effect_runner = EffectRunner(
        deployment,
        inbox,
        get_logger(component="controller"),
        template=DeploymentTemplate(),
        make_mailboxes=lambda _: None,
    )
    effect_runner.repair()
    given = inbox.get(timeout=10)
    effect_runner.close()
    assert not isinstance(given, Exception)
    assert given(7) == ConsumerIncident(
        7, ConsumerId(3), "died and was started again", has_ended=True
    )


CLEAN = UpdateDeployments(request_id="u", transformations={"orders": "mine:clean"})


@pytest.mark.parametrize(
    ("error", "outcome", "said"),
    [
        (None, TrialOutcome("no module", 3), DeploymentTried(7, 2, refusal="no module")),
        (None, TrialOutcome(doubt="all dead"), DeploymentTried(7, 2, refusal="all dead")),
        (DeploymentError("away"), TrialOutcome(), DeploymentTried(7, 2, note="away")),
    ],
)
def test_the_template_of_a_request_is_tried(
    error: DeploymentError | None, outcome: TrialOutcome, said: DeploymentTried
) -> None:
    """It is tried as it would be, and nothing is deployed like it yet."""
    inbox: Inbox = queue.Queue()
    deployment = InMemoryDeployment()
    deployment.trial_outcome = outcome
    if error is not None:
        deployment.next_error["try_out"] = error
    effect_runner = EffectRunner(
        deployment,
        inbox,
        get_logger(component="controller"),
        template=DeploymentTemplate(version=1, environment={"APP_X": "1"}),
        make_mailboxes=lambda _: None,
    )
    effect_runner.do(TryDeployment(2, CLEAN))
    given = inbox.get(timeout=10)
    effect_runner.close()
    assert not isinstance(given, Exception)
    assert given(7) == said
    assert effect_runner.template.version == 1
    for template in deployment.tried:
        assert template.transformations == {"orders": "mine:clean"}
        assert template.environment == {"APP_X": "1"}


def test_the_former_template_comes_back_under_a_new_version() -> None:
    """Also after a restart, which is given both."""
    former = DeploymentTemplate(version=1, transformations={"orders": "mine:old"})
    effect_runner = EffectRunner(
        InMemoryDeployment(),
        queue.Queue(),
        get_logger(component="controller"),
        template=former,
        make_mailboxes=lambda _: None,
    )
    effect_runner.do(SetDeploymentTemplate(2, CLEAN))
    assert effect_runner.template.transformations == {"orders": "mine:clean"}
    assert effect_runner.former == former
    effect_runner.do(RestoreDeploymentTemplate(3))
    effect_runner.close()
    assert effect_runner.template == DeploymentTemplate(3, transformations={"orders": "mine:old"})


def test_a_roll_back_restores_what_pods_were_made_of() -> None:
    """And remembers what failed, so that the next start does not try it again."""
    old = DeploymentTemplate(1, settings_digest="old", pod_plan={"settings": {"image": "x:1"}})
    runner = EffectRunner(
        InMemoryDeployment(),
        queue.Queue(),
        get_logger(component="controller"),
        template=old,
        make_mailboxes=lambda _: None,
    )
    new = NewSettings(Settings(), "map-2", "new", {"settings": {"image": "x:2"}})
    request = UpdateDeployments(request_id="start-2", from_settings=True)
    runner.do(SetDeploymentTemplate(2, request, new))
    assert runner.template.pod_plan == new.pod_plan
    assert (runner.template.settings_file, runner.template.settings_digest) == ("map-2", "new")
    runner.do(RestoreDeploymentTemplate(3))
    assert runner.template == replace(old, version=3, failed_digest="new")
    runner.do(SetDeploymentTemplate(4, request, new))
    assert runner.template.failed_digest == ""
    runner.close()
