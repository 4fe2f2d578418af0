"""Every type of message. The codec refuses any other type."""

from penstock.messages.commands import StartConsumingCommand, StateQuery, StopConsumingCommand
from penstock.messages.commits import CommitAnswer, CommitterPresence, OfferedBatch
from penstock.messages.events import (
    CommandRefusedEvent,
    StartConsumingEvent,
    StateQueryResponse,
    StopConsumingEvent,
)
from penstock.messages.fields import Message
from penstock.messages.leadership import ControllerHeartbeat, LeadershipClaim, LeadershipEnd
from penstock.messages.report import ConsumerReport
from penstock.messages.service import (
    ChangeSettings,
    DropChanges,
    Pause,
    Resume,
    ServiceAnswer,
    UpdateDeployments,
)
from penstock.messages.write_speed import WriteSpeedMeasurement

MESSAGE_TYPES: tuple[type[Message], ...] = (
    StartConsumingCommand,
    StopConsumingCommand,
    StateQuery,
    StartConsumingEvent,
    StopConsumingEvent,
    CommandRefusedEvent,
    StateQueryResponse,
    ConsumerReport,
    LeadershipClaim,
    ControllerHeartbeat,
    LeadershipEnd,
    WriteSpeedMeasurement,
    UpdateDeployments,
    ChangeSettings,
    DropChanges,
    Pause,
    Resume,
    ServiceAnswer,
    OfferedBatch,
    CommitterPresence,
    CommitAnswer,
)
TYPE_BY_NAME: dict[str, type[Message]] = {kind.__name__: kind for kind in MESSAGE_TYPES}
