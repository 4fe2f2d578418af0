"""Everything the core can ask the process to do, as values.

The process carries them out in order. `SaveState` comes before everything that depends on what is
saved, and after the effects that change the deployment template, which is saved with the state.
"""

from dataclasses import dataclass

from penstock.controller.core.inputs import NewSettings
from penstock.messages import ControllerHeartbeat, Message, UpdateDeployments
from penstock.model import ConsumerId
from penstock.packing import PackingProblem


@dataclass(frozen=True, slots=True)
class Effect:
    pass


@dataclass(frozen=True, slots=True)
class SaveState(Effect):
    """Make the new state durable before going on."""


@dataclass(frozen=True, slots=True)
class ListDeployments(Effect):
    """Answered by `DeploymentsListed` or `ListingFailed`."""


@dataclass(frozen=True, slots=True)
class CreateConsumer(Effect):
    """Deploy it if it is not there. It is ready with its first report."""

    consumer: ConsumerId
    version: int


@dataclass(frozen=True, slots=True)
class DeleteConsumer(Effect):
    """Delete its deployment. Answered by `ConsumerDeleted`, also when there was none."""

    consumer: ConsumerId


@dataclass(frozen=True, slots=True)
class SetDeploymentTemplate(Effect):
    """Deploy new consumers like this from now on, under this version."""

    version: int
    request: UpdateDeployments
    new_settings: NewSettings | None = None


@dataclass(frozen=True, slots=True)
class RestoreDeploymentTemplate(Effect):
    """Deploy new consumers as before the last `SetDeploymentTemplate`, under this version."""

    version: int


@dataclass(frozen=True, slots=True)
class TryDeployment(Effect):
    """Try whether consumers that are deployed like this can work. Answered by `DeploymentTried`."""

    version: int
    request: UpdateDeployments
    new_settings: NewSettings | None = None


@dataclass(frozen=True, slots=True)
class Send(Effect):
    """Put a message on its topic, in its mailbox."""

    message: Message


@dataclass(frozen=True, slots=True)
class SendHeartbeat(Effect):
    """Write it to where reports are and to our own partition. `HeartbeatReturned` when read."""

    message: ControllerHeartbeat


@dataclass(frozen=True, slots=True)
class Pack(Effect):
    """Run the packing algorithm of this name. Answered by `Packed` or `PackingFailed`."""

    number: int
    algorithm: str
    problem: PackingProblem


@dataclass(frozen=True, slots=True)
class AskWhoLeads(Effect):
    """Write in a transaction of ours. Answered by `LeadershipConfirmed` or `LeadershipLost`."""


@dataclass(frozen=True, slots=True)
class WaitUntil(Effect):
    """Nothing is due before then: the next tick may wait, unless an input arrives."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class StepDown(Effect):
    """A newer controller leads: end this process with a clear code."""

    reason: str
