"""What the controller asks of whatever runs the consumers.

Every call may be repeated: creating what is there and deleting what is not are no errors. "Deleted"
means that the back-end has let go of it; whether the process is dead is another matter, and nothing
that must be safe rests on it. A consumer that dies by itself is started again by the back-end, and
`tend` says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from penstock.errors import PenstockError
from penstock.model import ConsumerId


class DeploymentError(PenstockError):
    """The back-end could not do it. `is_passing`: trying again later may help."""

    def __init__(self, message: str, *, remedy: str = "", is_retryable: bool = True) -> None:
        super().__init__(message, remedy=remedy)
        self.is_retryable = is_retryable


class StillEndingError(DeploymentError):
    """Its end is under way and will come by itself; deleting again asks how far it is."""


@dataclass(frozen=True, slots=True)
class DeploymentTemplate:
    """How consumers are deployed. A change has a new version; what is absent is as settings say."""

    version: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    transformations: Mapping[str, str] = field(default_factory=dict)
    spark_settings: Mapping[str, str] = field(default_factory=dict)
    image: str | None = None
    cpu_millicores: int | None = None
    memory_megabytes: int | None = None


class DeploymentState(StrEnum):
    RUNNING = "running"
    # It ended by itself and is, or will soon be, started again.
    RESTARTING = "restarting"
    # It keeps ending, or cannot be started; `detail` says why.
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class DeployedConsumer:
    """One consumer as the back-end sees it."""

    consumer: ConsumerId
    version: int
    state: DeploymentState
    restarts: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that happened to a consumer without being asked for."""

    consumer: ConsumerId
    explanation: str


class DeploymentBackend(Protocol):
    """Only consumers with the group's label are ever seen or touched."""

    def list_consumers(self) -> Mapping[ConsumerId, DeployedConsumer]:
        """Every consumer of the group, in ascending order."""

    def create(self, consumer: ConsumerId, template: DeploymentTemplate) -> None:
        """Deploy it if it is not there; one that is there stays as it is."""

    def delete(self, consumer: ConsumerId) -> None:
        """End it in order (its grace period included) and forget it; its state directory stays."""

    def logs(self, consumer: ConsumerId, *, lines: int = 100) -> Sequence[str]:
        """The end of its log; empty when it has none."""

    def repair(self) -> Sequence[Incident]:
        """Look after the consumers: start again what died. Quick; called every moment."""
