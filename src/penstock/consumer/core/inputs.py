"""Everything that can reach a consumer's ownership."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from penstock.messages import (
    CycleMeasurement,
    FailedPartition,
    ReportedPartition,
    StartConsumingCommand,
    StateQuery,
    StopConsumingCommand,
    StopReason,
)
from penstock.model import Epoch, TopicPartition


@dataclass(frozen=True, slots=True)
class Input:
    pass


@dataclass(frozen=True, slots=True)
class CommandRead(Input):
    """A command from the mailbox. Those read together are given with stops first."""

    command: StartConsumingCommand | StopConsumingCommand


@dataclass(frozen=True, slots=True)
class QueryRead(Input):
    query: StateQuery


@dataclass(frozen=True, slots=True)
class LedgerRead(Input):
    """The lake's ledger was read for a partition that is to be started.

    `last_epoch` is the epoch under which the last commit was made, if the ledger names it.
    """

    partition: TopicPartition
    epoch: Epoch
    next_offset: int
    last_epoch: Epoch | None = None


@dataclass(frozen=True, slots=True)
class BatchBegan(Input):
    """A batch with these partitions is running: they cannot be stopped until it ends."""

    partitions: Collection[TopicPartition]


@dataclass(frozen=True, slots=True)
class BatchEnded(Input):
    """The batch is over. What was committed is in the ledger; what was refused is not ours.

    A partition that is in neither was dropped whole, and is read again from where it was.
    """

    committed: Mapping[TopicPartition, int] = field(default_factory=dict)
    refused: Collection[TopicPartition] = ()
    # Those that were in it; None is all that are in a batch. What is settled meanwhile is not.
    partitions: Collection[TopicPartition] | None = None


@dataclass(frozen=True, slots=True)
class PartitionFailed(Input):
    """A partition cannot be read on: it is stopped, the others go on."""

    partition: TopicPartition
    reason: StopReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ShutdownAsked(Input):
    """SIGTERM or SIGINT."""


@dataclass(frozen=True, slots=True)
class ReportDue(Input):
    """The period is over. What was measured comes along; what is unknown is absent."""

    measured: Mapping[TopicPartition, ReportedPartition] = field(default_factory=dict)
    capacity_log_bytes_per_s: float | None = None
    behind_records: int | None = None
    behind_log_bytes: int | None = None
    deployment_version: int | None = None
    cycle: CycleMeasurement | None = None
    failed: tuple[FailedPartition, ...] = ()
