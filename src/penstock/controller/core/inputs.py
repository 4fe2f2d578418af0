"""Everything that can reach the core, each with the time it arrived.

`now_ms` is the monotonic clock of the process. Messages are decoded already, and those that came in
parts are joined.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.messages import FromConsumer, ServiceRequest
from penstock.model import ConsumerId, TopicPartition
from penstock.packing import Packing
from penstock.settings.sections import Settings


@dataclass(frozen=True, slots=True)
class Input:
    now_ms: int


@dataclass(frozen=True, slots=True)
class Tick(Input):
    """Time has passed. The wall clock serves pauses and the times of the day that are excluded."""

    unix_ms: int = 0
    # How far the clock of `packing.time_zone` is ahead of UTC now.
    utc_offset_s: int = 0


@dataclass(frozen=True, slots=True)
class Deployed:
    """A listed consumer: its version, and whether the deployment says that it still starts."""

    version: int = 0
    is_starting: bool = False


@dataclass(frozen=True, slots=True)
class DeploymentsListed(Input):
    """The deployments with the group's label."""

    consumers: Mapping[ConsumerId, Deployed]
    # Whether it has all that are deployed now. The list of a cluster may be a little old.
    is_current: bool = False


@dataclass(frozen=True, slots=True)
class ListingFailed(Input):
    """The deployments could not be listed. An old list would be worse than none."""

    reason: str


@dataclass(frozen=True, slots=True)
class CreationFailed(Input):
    """A consumer could not be deployed."""

    consumer: ConsumerId
    reason: str


@dataclass(frozen=True, slots=True)
class ConsumerIncident(Input):
    """Something happened to a consumer's deployment.

    `has_ended` says that its former process is certainly gone: a death that is confirmed.
    """

    consumer: ConsumerId
    explanation: str
    has_ended: bool = False


@dataclass(frozen=True, slots=True)
class ConsumerDeleted(Input):
    """The deployment is gone, or never was. Its process may still run for a while."""

    consumer: ConsumerId


@dataclass(frozen=True, slots=True)
class ConsumerMessageRead(Input):
    """A message from a consumer; `offset` is how far the log of the claims reaches, if known.

    `unix_ms` is the wall clock's time; None where there is none.
    """

    message: FromConsumer
    offset: int | None = None
    unix_ms: int | None = None


@dataclass(frozen=True, slots=True)
class HeartbeatReturned(Input):
    """A controller's heartbeat, read after all that was written before it; `offset` as above."""

    controller_epoch: int
    number: int
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class LogExtent:
    """From where to where a log reaches, and the mean size of a record; None is unknown."""

    start_offset: int | None
    end_offset: int
    log_bytes_per_record: float | None = None


@dataclass(frozen=True, slots=True)
class SpeedsMeasured(Input):
    """The newest complete measurement; None where a partition's speed is not known."""

    bytes_per_s: Mapping[TopicPartition, float | None]
    age_ms: int = 0
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    logs: Mapping[TopicPartition, LogExtent] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Packed(Input):
    """The packer's answer to the effect `Pack` of the same number."""

    number: int
    packing: Packing


@dataclass(frozen=True, slots=True)
class PackingFailed(Input):
    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class NewSettings:
    """The operator's settings, read again, and what consumers get of them."""

    settings: Settings
    consumers_file: str | None = None
    consumers_digest: str = ""
    # What pods are made of, where consumers are pods.
    pod_plan: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """For people."""
        image = self.pod_plan.get("settings", {}).get("image")
        named = [f"image {image}"] if image else []
        named += [f"settings {self.consumers_file}"] if self.consumers_file else []
        return ", ".join(named)


@dataclass(frozen=True, slots=True)
class Requested(Input):
    """An operator's request from the service topic; with new settings if it asks for them."""

    request: ServiceRequest
    new_settings: NewSettings | None = None
    # Why there are none, though the request asks for them.
    not_read: str = "this controller cannot read its settings again; restart it"


@dataclass(frozen=True, slots=True)
class DeploymentTried(Input):
    """The answer to the effect `TryDeployment` of the same version.

    `refusal` says why its consumers could not work. `note` says why that is not known.
    """

    version: int
    refusal: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class LeadershipLost(Input):
    """The broker fenced our producer: a newer controller leads."""


@dataclass(frozen=True, slots=True)
class LeadershipConfirmed(Input):
    """Answers `AskWhoLeads`: the broker took a transaction of ours."""


@dataclass(frozen=True, slots=True)
class MessageRefused(Input):
    """A message that does not count, and that somebody should know of: it is another group's."""

    explanation: str


INPUT_TYPES: tuple[type[Input], ...] = (
    Tick,
    DeploymentsListed,
    ListingFailed,
    CreationFailed,
    ConsumerIncident,
    ConsumerDeleted,
    ConsumerMessageRead,
    HeartbeatReturned,
    SpeedsMeasured,
    Packed,
    PackingFailed,
    Requested,
    DeploymentTried,
    LeadershipLost,
    LeadershipConfirmed,
    MessageRefused,
)
