"""The interface between the controller and what runs the consumers.

Every call may be repeated: creating a consumer that exists and deleting one that does not are no
errors. A deleted consumer is no longer deployed, but its process may still run for a while; safety
never depends on its end. The back-end restarts a consumer that dies, and `repair` reports it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from penstock.errors import PenstockError
from penstock.model import ConsumerId

# A consumer that was restarted this often counts as failed, on every back-end.
# No setting: it is a word in the status; a failed consumer is still restarted.
FAILED_AFTER_RESTARTS = 5


class DeploymentError(PenstockError):
    """A call to the back-end failed. `is_retryable`: the same call may succeed later."""

    def __init__(self, message: str, *, remedy: str = "", is_retryable: bool = True) -> None:
        super().__init__(message, remedy=remedy)
        self.is_retryable = is_retryable


class StillEndingError(DeploymentError):
    """The consumer is still ending; call `delete` again to see whether it has ended."""


@dataclass(frozen=True, slots=True)
class DeploymentTemplate:
    """How consumers are deployed. Every change has a new version; settings fill what is absent."""

    version: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    transformations: Mapping[str, str] = field(default_factory=dict)
    spark_settings: Mapping[str, str] = field(default_factory=dict)
    image: str | None = None
    cpu_millicores: int | None = None
    memory_megabytes: int | None = None
    # The settings of its consumers (a copy for local ones, on Kubernetes a ConfigMap), and the
    # digest of what in them concerns consumers.
    settings_file: str | None = None
    settings_digest: str = ""
    # What the settings had when a request changed a transformation, an option of Spark, or the
    # image.
    instead_of: Mapping[str, str] = field(default_factory=dict)
    # On Kubernetes: what pods of this version are made of. Empty: what the controller's settings
    # say.
    pod_plan: Mapping[str, Any] = field(default_factory=dict)
    # The digest of a start that was rolled back; another start with it is not tried again.
    failed_digest: str = ""


def template_of(content: object) -> DeploymentTemplate:
    """A template that was kept as JSON; ValueError for what is none."""
    try:
        found = DeploymentTemplate(**content)  # type: ignore[arg-type] # checked below
    except TypeError as error:
        raise ValueError(str(error)) from None
    texts = (found.environment, found.transformations, found.spark_settings, found.instead_of)
    is_sound = (
        _is_count(found.version)
        and all(
            one is None or _is_count(one) for one in (found.cpu_millicores, found.memory_megabytes)
        )
        and all(one is None or isinstance(one, str) for one in (found.image, found.settings_file))
        and isinstance(found.settings_digest, str)
        and all(_is_texts(one) for one in texts)
    )
    if not is_sound:
        raise ValueError("a field of the template is of another type")
    return found


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_texts(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(one, str) for one in value.values())


class DeploymentState(StrEnum):
    # It starts when others have started.
    WAITING = "waiting"
    RUNNING = "running"
    # It ended by itself and restarts now or soon.
    RESTARTING = "restarting"
    # It keeps ending, or cannot be started; `detail` has the reason.
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class DeployedConsumer:
    """One consumer as the back-end sees it."""

    consumer: ConsumerId
    version: int
    state: DeploymentState
    restarts: int = 0
    detail: str = ""
    # It has never run so far: it has no place yet, its image is still being fetched, or it waits
    # until others have started.
    is_starting: bool = False


@dataclass(frozen=True, slots=True)
class Incident:
    """An unrequested change of a consumer, such as a restart.

    `has_ended` says that the process which ran until now is certainly gone, and that no later one
    has reported yet.
    """

    consumer: ConsumerId
    explanation: str
    has_ended: bool = False


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """Whether consumers of a template could work, tried before there are any.

    `refusal` says why they could not, and `exit_code` whose fault that is. `note` says why it was
    not tried. `doubt` says what works but is probably a mistake (no record would become a row), or
    that the trial did not come to its end. `warning` says that some partitions would stop, which
    is no reason against a roll-out: they may not be carried now either. `capacities` is what one
    consumer carries of topics, in bytes of log a second, where that was asked for and found out;
    of those `at_least` it carries so much or more.
    """

    refusal: str = ""
    exit_code: int = 0
    note: str = ""
    doubt: str = ""
    warning: str = ""
    capacities: Mapping[str, float] = field(default_factory=dict)
    at_least: frozenset[str] = frozenset()


class DeploymentBackend(Protocol):
    """Sees and touches only consumers that carry the group's label."""

    # Whether a list has all that are deployed at its moment.
    lists_are_current: bool

    def list_consumers(self) -> Mapping[ConsumerId, DeployedConsumer]:
        """Every consumer of the group, in ascending order."""

    def create(self, consumer: ConsumerId, template: DeploymentTemplate) -> None:
        """Deploy the consumer. If it is already deployed, leave it unchanged."""

    def delete(self, consumer: ConsumerId) -> None:
        """Shut the consumer down within its grace period. Its state directory stays."""

    def try_out(self, template: DeploymentTemplate) -> TrialOutcome:
        """Try the lake and the transformations as consumers of this template would use them."""

    def repair(self) -> Sequence[Incident]:
        """Restart what died and return the incidents. Quick; called several times a second."""
