"""What the controller knows. A value: `step` makes a new one and never changes an old one.

Mappings in here are plain dictionaries that nobody writes to after the step that made them. They
are copied only when a step changes them, so that a step costs what it touches.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from penstock.controller.core.decisions import Code, Decision
from penstock.controller.core.settings import ControllerSettings
from penstock.messages import Direction, StateQueryResponse, UpdateDeployments
from penstock.model import ConsumerId, Epoch, TopicPartition
from penstock.packing.trend import Trend
from penstock.packing.trigger import TriggerMemory


class Phase(StrEnum):
    """The states of the notes, and the one in which a newer controller leads."""

    SYNCHRONIZE = "Synchronize"
    SENTINEL = "Sentinel"
    REASSIGN = "Reassign"
    GROUP_MANAGEMENT = "Group Management"
    SUPERSEDED = "Superseded"


class HoldingStatus(StrEnum):
    """How far the start or the stop of one partition has come."""

    STARTING = "starting"
    OWNED = "owned"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class Holding:
    """One partition at one life of one consumer, under one epoch.

    A partition has at most one holding. A new start is made only when there is none, that is,
    after the stop was acknowledged or the holder was fenced (S4).
    """

    consumer: ConsumerId
    incarnation: int
    epoch: Epoch
    status: HoldingStatus
    since_ms: int
    sent_ms: int
    # Whether its reader ever said that it reads it. Only then does a report that does not name it
    # mean that it stopped: otherwise the start may still be on its way.
    is_acknowledged: bool = False


class ConsumerStatus(StrEnum):
    """Where a consumer is on its way."""

    QUERIED = "queried"  # it is deployed, and has not yet said what it owns
    WANTED = "wanted"  # a plan needs it; the limit on growth lets it wait
    CREATING = "creating"  # the deployment was asked for; it has not reported yet
    READY = "ready"
    LEAVING = "leaving"  # it gets no partition any more, and goes when it has none


@dataclass(frozen=True, slots=True)
class ConsumerRecord:
    status: ConsumerStatus
    since_ms: int
    incarnation: int = 0  # 0: not heard of yet
    sequence: int = 0
    heard_ms: int = 0
    deployment_version: int = 0
    capacity_bytes_per_s: float | None = None
    behind_bytes: int = 0
    behind_records: int = 0


@dataclass(frozen=True, slots=True)
class Departing:
    """A consumer whose deployment is being deleted. Its number is not used until it is gone."""

    since_ms: int
    sent_ms: int


@dataclass(frozen=True, slots=True)
class Parked:
    """A partition that its reader had to give up: when it may be tried again."""

    until_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The future assignment, and the partitions that are not in their final state yet."""

    number: int
    code: Code
    explanation: str
    target: Mapping[TopicPartition, ConsumerId]
    open: frozenset[TopicPartition]
    made_ms: int
    is_urgent: bool = False


@dataclass(frozen=True, slots=True)
class PauseRecord:
    direction: Direction
    until_unix_ms: int | None
    reason: str
    request_id: str


@dataclass(frozen=True, slots=True)
class RollOut:
    """A change of deployments, applied to one consumer after the other."""

    request: UpdateDeployments
    version: int
    total: int
    replacing: ConsumerId | None = None
    replacement: ConsumerId | None = None


@dataclass(frozen=True, slots=True)
class KnownSpeeds:
    """The newest complete measurement, with what was last known where it is silent."""

    measured_ms: int
    bytes_per_s: Mapping[TopicPartition, float]
    # How many measurements in a row did not name the partition.
    missing: Mapping[TopicPartition, int] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class State:
    phase: Phase
    controller_epoch: int
    plan_number: int
    settings: ControllerSettings
    # What requests have changed of the settings: it outlives a restart.
    overrides: Mapping[str, Any] = field(default_factory=dict)
    now_ms: int = 0
    phase_since_ms: int = 0
    ticked_ms: int = 0
    epochs_used: int = 0
    queries_sent: int = 0

    consumers: Mapping[ConsumerId, ConsumerRecord] = field(default_factory=dict)
    departing: Mapping[ConsumerId, Departing] = field(default_factory=dict)
    incarnation_floor: Mapping[ConsumerId, int] = field(default_factory=dict)

    holdings: Mapping[TopicPartition, Holding] = field(default_factory=dict)
    held_by: Mapping[ConsumerId, frozenset[TopicPartition]] = field(default_factory=dict)
    in_flight: frozenset[TopicPartition] = frozenset()
    parked: Mapping[TopicPartition, Parked] = field(default_factory=dict)

    speeds: KnownSpeeds | None = None
    plan: Plan | None = None
    pauses: tuple[PauseRecord, ...] = ()
    roll_out: RollOut | None = None
    requests: tuple[str, ...] = ()
    deployment_version: int = 0

    # Synchronisation.
    is_listed: bool = False
    is_confirming: bool = False
    is_confirmed: bool = False
    listed_ms: int = 0
    asked_ms: int = 0
    answers: Mapping[ConsumerId, StateQueryResponse] = field(default_factory=dict)

    # Reassignment: what was asked of the packer.
    packing_number: int = 0
    packing_code: Code | None = None
    packing_explanation: str = ""
    packing_urgent: bool = False
    # Who was there when the packer was asked: the numbers in its answer that mean somebody.
    packing_consumers: frozenset[ConsumerId] = frozenset()

    # What the trigger remembers, and where the speeds are heading.
    trigger: TriggerMemory = field(default_factory=TriggerMemory)
    trend: Trend = field(default_factory=Trend)
    creation_blocked_until_ms: int = 0
    creations_ms: tuple[int, ...] = ()
    idle_since_ms: int | None = None

    history: tuple[Decision, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def write_speeds(self) -> Mapping[TopicPartition, float]:
        """The write speed of every partition that exists, as the monitor last named them."""
        return {} if self.speeds is None else self.speeds.bytes_per_s

    def is_paused(self, direction: Direction) -> bool:
        return any(p.direction in {Direction.BOTH, direction} for p in self.pauses)


def by_name(partition: TopicPartition) -> tuple[str, int]:
    """The order in which partitions are gone through; a key is far cheaper than comparing."""
    return partition.topic, partition.partition
