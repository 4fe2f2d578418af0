"""What the controller knows. A value: `step` makes a new one and never changes an old one.

The mappings are plain dictionaries. Only the step that makes one writes to it, and a step copies
only those that it changes, so that a step costs what it touches.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from penstock.controller.core.carried_samples import CarriedSample
from penstock.controller.core.decisions import Code, Decision
from penstock.controller.core.heartbeat_state import HeartbeatState
from penstock.controller.core.inputs import LogExtent, NewSettings
from penstock.controller.core.settings import ControllerSettings, LiveChange
from penstock.messages import Direction, StateQueryResponse, UpdateDeployments
from penstock.model import ConsumerId, Epoch, TopicPartition
from penstock.packing.objective import Measured
from penstock.packing.peaks import Peaks
from penstock.packing.rises import Rises
from penstock.packing.speed_memory import SpeedMemory
from penstock.packing.trend import Trend
from penstock.packing.trigger import TriggerMemory
from penstock.settings.sections import Settings


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
    """One partition at one incarnation of one consumer, under one epoch.

    A partition has at most one holding. It is started again only when it has none: after its stop
    was acknowledged, or its consumer was fenced (S4).
    """

    consumer: ConsumerId
    incarnation: int
    epoch: Epoch
    status: HoldingStatus
    # When its start or stop was asked for, in heartbeat time; and when it was last sent.
    since_heartbeat_time_ms: int
    sent_ms: int
    # Whether its consumer ever confirmed the start. Only then does a report without the partition
    # mean that it stopped: before, the start may still be on its way.
    is_acknowledged: bool = False
    # Its start takes longer than `acknowledge` while others carry, and is explained: no plan waits.
    is_overdue: bool = False


class ConsumerStatus(StrEnum):
    """From the first mention of a consumer to its removal."""

    QUERIED = "queried"  # deployed; it has not answered yet what it owns
    WANTED = "wanted"  # a plan needs it; the limit on creations may delay it
    CREATING = "creating"  # its deployment is asked for; it has not reported yet
    READY = "ready"
    LEAVING = "leaving"  # gets no more partitions, and is removed when it has none


@dataclass(frozen=True)
class ConsumerRecord:
    status: ConsumerStatus
    # The times with `heartbeat_time` are in heartbeat time.
    since_heartbeat_time_ms: int
    incarnation: int = 0  # 0: it has not reported yet
    sequence: int = 0
    heard_ms: int = 0
    heard_heartbeat_time_ms: int = 0
    # When it last said what it waits for or works on, and what that was.
    explained_heartbeat_time_ms: int = 0
    occupation: str = ""
    is_new: bool = False  # synchronisation: the saved state says that it never reported
    # What the deployment's last list said, and when. None: it was not listed yet.
    is_starting: bool = False
    listed_heartbeat_time_ms: int | None = None
    # Until when it may have been starting, as far as the lists tell.
    starting_heartbeat_time_ms: int = 0
    deployment_version: int = 0
    # The topics that it has shown since its start to carry; a roll-out waits for all it has.
    proven_topics: frozenset[str] = frozenset()
    # How often in a row it ended soon after its start, before it had carried anything; whether it
    # has carried since its start, and when that was heard of.
    restarts_in_vain: int = 0
    has_carried: bool = False
    began_heartbeat_time_ms: int = 0
    # All that it carried since this controller began to count, through its restarts.
    carried_bytes: int = 0
    # How long its last batch took, and how long the one that runs has taken, without one that
    # waits for something; 0: there is none.
    last_batch_ms: int = 0
    running_batch_ms: int = 0
    # What it has shown to carry of each topic alone, in bytes of log a second.
    capacity_by_topic: Mapping[str, float] = field(default_factory=dict)
    is_slowed: bool = False  # it now measures clearly less than is known of it
    behind_bytes: int = 0
    behind_records: int = 0
    # Only partitions that are behind.
    behind_by_partition: Mapping[TopicPartition, float] = field(default_factory=dict)
    # The ledger's next offset of each partition, and how many records wait behind it, by the newest
    # report. A partition whose end the consumer has not read yet is only in the first.
    next_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    unread_records: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LakeSeen:
    """From when to when consumers carried without a gap, in heartbeat time: the lake was there."""

    since_heartbeat_time_ms: int = 0
    until_heartbeat_time_ms: int = 0


@dataclass(frozen=True, slots=True)
class SharedSilence:
    """Many consumers are silent together. In heartbeat time: since when, and the last give-up."""

    consumers: tuple[ConsumerId, ...]
    since_heartbeat_time_ms: int
    gave_up_heartbeat_time_ms: int


@dataclass(frozen=True, slots=True)
class Parked:
    """A partition that its consumer had to give up: when it is tried again."""

    until_ms: int
    reason: str
    # What the consumer said about it, for people.
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """The future assignment, and the partitions that are not in their final state yet."""

    number: int
    code: Code
    explanation: str
    target: Mapping[TopicPartition, ConsumerId]
    open: frozenset[TopicPartition]
    made_ms: int


@dataclass(frozen=True, slots=True)
class PauseRecord:
    direction: Direction
    until_unix_ms: int | None
    reason: str
    request_id: str


@dataclass(frozen=True, slots=True)
class BoundsRequest:
    """A settings request whose wanted numbers of consumers the group does not have yet."""

    request_id: str
    wanted: Mapping[str, int]
    # The pause that the last answer named as the reason for the wait, or nothing.
    held_by: str = ""


@dataclass(frozen=True, slots=True)
class RollOut:
    """A change of deployments, applied to one consumer after the other."""

    request: UpdateDeployments
    version: int
    total: int
    replacing: ConsumerId | None = None
    replacement: ConsumerId | None = None
    # Whether this controller asked for the trial of the new deployment, and whether it passed.
    is_asked: bool = False
    is_tried: bool = False
    # Partitions that the old consumers could not carry either.
    failed_before: frozenset[TopicPartition] = frozenset()
    # Settings that were read again for it, and those that a roll-back restores. Not saved: a new
    # controller starts with the settings of its own start.
    new_settings: NewSettings | None = None
    former_settings: Settings | None = None
    # What is wrong with the new deployment, and the version that a roll-back takes back.
    fault: str = ""
    undoes: int | None = None


@dataclass(frozen=True, slots=True)
class KnownCapacity:
    """What one consumer carries of a topic alone, and the least and most that consumers measured.

    `source` says how that is known (see `capacity.Source`).
    """

    bytes_per_s: float
    lowest_bytes_per_s: float
    highest_bytes_per_s: float
    source: str

    @property
    def is_of_it_alone(self) -> bool:
        return self.source == "measured"


@dataclass(frozen=True, slots=True)
class GrowthTrial:
    """A growth that has to show that it helps: what the group carried in all before it."""

    consumers_before: int
    consumers_after: int
    carried_bytes_per_s: float | None
    written_bytes_per_s: float
    # When its plan was done; None until then.
    settled_since_ms: int | None = None


@dataclass(frozen=True, slots=True)
class GrowthLimit:
    """Growth did not help: the group stays this small until then, or until the load changes."""

    consumers_max: int
    until_ms: int
    written_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class BacklogSample:
    """What waited in all at one moment, and what all consumers had carried until then."""

    at_ms: int
    carried_bytes: int
    records: int
    # None where it is unknown.
    log_bytes: float | None


@dataclass(frozen=True, slots=True)
class KnownSpeeds:
    """The newest complete measurement, with the last known speed where it has none."""

    measured_ms: int
    bytes_per_s: Mapping[TopicPartition, float]
    # How many measurements in a row did not name the partition.
    missing: Mapping[TopicPartition, int] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    # From where to where each log reaches, as far as the monitor knows.
    logs: Mapping[TopicPartition, LogExtent] = field(default_factory=dict)


@dataclass(frozen=True)
class State:
    phase: Phase
    controller_epoch: int
    plan_number: int
    # The operator's settings, before any request changed them; requests are checked against them.
    chosen: Settings
    settings: ControllerSettings
    # What requests have changed. Saved, so that a restart keeps it.
    overrides: Mapping[str, Any] = field(default_factory=dict)
    # By option, like the overrides: which request it was.
    override_origins: Mapping[str, LiveChange] = field(default_factory=dict)
    now_ms: int = 0
    phase_since_ms: int = 0
    ticked_ms: int = 0
    epochs_used: int = 0
    queries_sent: int = 0

    consumers: Mapping[ConsumerId, ConsumerRecord] = field(default_factory=dict)
    # Being deleted, and when that was last asked for: numbers are reused only after they are gone.
    departing: Mapping[ConsumerId, int] = field(default_factory=dict)
    incarnation_floor: Mapping[ConsumerId, int] = field(default_factory=dict)
    heartbeats: HeartbeatState = field(default_factory=HeartbeatState)
    shared_silence: SharedSilence | None = None
    lake_seen: LakeSeen = LakeSeen()
    # How long the latest starts of consumers took, in heartbeat time.
    starts_took_ms: tuple[int, ...] = ()

    holdings: Mapping[TopicPartition, Holding] = field(default_factory=dict)
    held_by: Mapping[ConsumerId, frozenset[TopicPartition]] = field(default_factory=dict)
    in_flight: frozenset[TopicPartition] = frozenset()
    parked: Mapping[TopicPartition, Parked] = field(default_factory=dict)
    # The ledger's next offset of partitions, as a consumer said it when it started or stopped them.
    ledger_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)

    speeds: KnownSpeeds | None = None
    speed_memory: SpeedMemory = field(default_factory=SpeedMemory)
    # How far loads rise, which peaks come again, what settings follow, since when. Not saved.
    rises: Rises = field(default_factory=Rises)
    peaks: Peaks = field(default_factory=Peaks)
    followed: Measured = field(default_factory=Measured)
    followed_ms: int | None = None
    # The established speeds of each topic's partitions together.
    written_by_topic: Mapping[str, float] = field(default_factory=dict)
    # What one consumer carries of each topic, as far as it is known. Saved.
    capacities: Mapping[str, KnownCapacity] = field(default_factory=dict)
    plan: Plan | None = None
    pauses: tuple[PauseRecord, ...] = ()
    # Times of the day in which the settings allow no change. Not saved.
    excluded: tuple[PauseRecord, ...] = ()
    roll_out: RollOut | None = None
    # What this controller was started with, while consumers are deployed otherwise. Not saved.
    due: NewSettings | None = None
    requests: tuple[str, ...] = ()
    # Settings requests that the group does not follow yet: answered when it does.
    bounds_requests: tuple[BoundsRequest, ...] = ()
    deployment_version: int = 0

    # Synchronisation.
    is_listed: bool = False
    # In heartbeat time: the first list of this synchronisation, and the last one.
    synchronising_since_heartbeat_time_ms: int = 0
    relisted_heartbeat_time_ms: int = 0
    is_confirming: bool = False
    is_confirmed: bool = False
    listed_ms: int = 0
    asked_ms: int = 0
    answers: Mapping[ConsumerId, StateQueryResponse] = field(default_factory=dict)

    # Reassignment: what the packer was asked, and why.
    packing_number: int = 0
    packing_code: Code | None = None
    packing_explanation: str = ""
    # The consumers of the question. Other numbers in the answer are names for new consumers.
    packing_consumers: frozenset[ConsumerId] = frozenset()

    # What the trigger remembers, and where the write speeds are heading.
    trigger: TriggerMemory = field(default_factory=TriggerMemory)
    trend: Trend = field(default_factory=Trend)
    # What all consumers have carried since this controller started, now and a while ago.
    carried_bytes: int = 0
    carried_samples: tuple[CarriedSample, ...] = ()
    # What waited a while ago and since, and whether the group fell behind by the newest of these.
    backlog_samples: tuple[BacklogSample, ...] = ()
    is_falling_behind: bool = False
    growth_trial: GrowthTrial | None = None
    growth_limit: GrowthLimit | None = None
    # Up to this many working consumers, what they measure counts as their capacity; 0: any number.
    capacity_size: int = 0
    confirmed_bytes_per_s: float = 0.0  # the usual capacity when that size was confirmed
    creation_blocked_until_ms: int = 0
    # When the deployments are listed again after a listing failed; nothing lists them before.
    list_again_ms: int | None = None
    # Whether a listing failed since the last one that succeeded.
    has_listing_failed: bool = False
    # Numbers whose creation failed, and until when others are used instead.
    avoided_numbers: Mapping[ConsumerId, int] = field(default_factory=dict)
    creations_ms: tuple[int, ...] = ()
    idle_since_ms: int | None = None

    # What a message said of a newer controller, until the broker has said who leads.
    doubted: str = ""
    asked_who_leads_ms: int | None = None

    history: tuple[Decision, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def write_speeds(self) -> Mapping[TopicPartition, float]:
        """The write speed of every partition that exists, as the monitor last named them."""
        return {} if self.speeds is None else self.speeds.bytes_per_s

    def is_paused(self, direction: Direction) -> bool:
        return any(p.direction in {Direction.BOTH, direction} for p in self.pauses + self.excluded)


def by_name(partition: TopicPartition) -> tuple[str, int]:
    """Sort key for partitions; far cheaper than comparing them."""
    return partition.topic, partition.partition
