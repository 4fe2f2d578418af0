"""The messages of every control topic, and the codec that parses untrusted bytes. Pure."""

from penstock.messages.assembly import PartAssembler, cut, in_parts, joined
from penstock.messages.codec import SCHEMA_VERSION, Encoded, SchemaVersion, decode, encode
from penstock.messages.commands import (
    PartitionToStart,
    PartitionToStop,
    StartConsumingCommand,
    StateQuery,
    StopConsumingCommand,
)
from penstock.messages.events import (
    CommandRefusedEvent,
    OwnedPartition,
    RefusalReason,
    RefusedPartition,
    StartConsumingEvent,
    StartedPartition,
    StateQueryResponse,
    StopConsumingEvent,
    StoppedPartition,
    StopReason,
)
from penstock.messages.fields import (
    MESSAGE_BYTES_MAX,
    PARTITIONS_PER_MESSAGE_MAX,
    FromConsumer,
    Message,
    ToConsumer,
)
from penstock.messages.leadership import LeadershipClaim
from penstock.messages.refusal import Refusal, RefusalCode
from penstock.messages.report import (
    ConsumerPhase,
    ConsumerReport,
    CycleMeasurement,
    FailedPartition,
    PreviousShutdown,
    ReportedPartition,
)
from penstock.messages.service import (
    ChangeSettings,
    DeploymentResources,
    Direction,
    Pause,
    Resume,
    ServiceAnswer,
    ServiceOutcome,
    ServiceRequest,
    UpdateDeployments,
)
from penstock.messages.whole_measurement import WholeMeasurement
from penstock.messages.write_speed import PartitionSpeed, SpeedSource, WriteSpeedMeasurement

__all__ = [
    "MESSAGE_BYTES_MAX",
    "PARTITIONS_PER_MESSAGE_MAX",
    "SCHEMA_VERSION",
    "ChangeSettings",
    "CommandRefusedEvent",
    "ConsumerPhase",
    "ConsumerReport",
    "CycleMeasurement",
    "DeploymentResources",
    "Direction",
    "Encoded",
    "FailedPartition",
    "FromConsumer",
    "LeadershipClaim",
    "Message",
    "OwnedPartition",
    "PartAssembler",
    "PartitionSpeed",
    "PartitionToStart",
    "PartitionToStop",
    "Pause",
    "PreviousShutdown",
    "Refusal",
    "RefusalCode",
    "RefusalReason",
    "RefusedPartition",
    "ReportedPartition",
    "Resume",
    "SchemaVersion",
    "ServiceAnswer",
    "ServiceOutcome",
    "ServiceRequest",
    "SpeedSource",
    "StartConsumingCommand",
    "StartConsumingEvent",
    "StartedPartition",
    "StateQuery",
    "StateQueryResponse",
    "StopConsumingCommand",
    "StopConsumingEvent",
    "StopReason",
    "StoppedPartition",
    "ToConsumer",
    "UpdateDeployments",
    "WholeMeasurement",
    "WriteSpeedMeasurement",
    "cut",
    "decode",
    "encode",
    "in_parts",
    "joined",
]
