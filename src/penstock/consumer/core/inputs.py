"""Everything that can reach a consumer's core. Each input says when it was read.

`now_ms` is the process's monotonic clock: only differences of it mean anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.errors import PenstockError
from penstock.messages import (
    StartConsumingCommand,
    StateQuery,
    StopConsumingCommand,
    StopReason,
    WaitsFor,
)
from penstock.model import Epoch, TopicPartition


class InterruptedCallError(Exception):
    """A person or the runtime ends what runs."""


# The process itself is in no state to go on, whatever it was asked for.
BROKEN = (MemoryError, InterruptedCallError)
Command = StartConsumingCommand | StopConsumingCommand


@dataclass(frozen=True, slots=True)
class Input:
    now_ms: int


@dataclass(frozen=True, slots=True)
class Tick(Input):
    """Time has passed.

    `is_delivery_stuck` says that messages wait for Kafka, so that a report would only be late.
    """

    is_delivery_stuck: bool = False


@dataclass(frozen=True, slots=True)
class MessagesRead(Input):
    """What was read from the mailbox together: stops take effect first, queries last.

    What is in `not_from_leader` was not written in a transaction of the leading controller.
    """

    messages: tuple[Command | StateQuery, ...]
    not_from_leader: tuple[Command | StateQuery, ...] = ()


@dataclass(frozen=True, slots=True)
class CallFailed(Input):
    """Something the core asked for failed. Only a `BROKEN` consumer ends by it."""

    error: Exception


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """Where reading goes on. `ledger_offset` is None for a partition that was never carried.

    `last_epoch` is the epoch of the last commit, if the ledger names one of our controller.
    `leader_epoch` is that of Kafka's leader at the last commit, and `leader_epoch_end` where its
    log ends by now: negative if Kafka does not know the epoch, None if that is not known.
    """

    topic_id: str
    ledger_offset: int | None
    next_offset: int
    last_epoch: Epoch | None = None
    leader_epoch: int | None = None
    leader_epoch_end: int | None = None

    @property
    def is_truncated(self) -> bool:
        """Whether Kafka has lost records that were carried, even if others took their offsets."""
        end, offset = self.leader_epoch_end, self.ledger_offset
        return end is not None and offset is not None and end < offset


@dataclass(frozen=True, slots=True)
class LedgerRead(Input):
    """Answers `ReadLedger`. A partition that is in neither map does not exist in Kafka.

    One about which Kafka or the lake cannot say what is needed is in `failures`; `waits_for` says
    which of them it was, and `shared` if it is away for all and not for these alone.
    """

    asked: Mapping[TopicPartition, Epoch]
    entries: Mapping[TopicPartition, LedgerEntry]
    failures: Mapping[TopicPartition, PenstockError] = field(default_factory=dict)
    waits_for: WaitsFor = WaitsFor.KAFKA
    shared: WaitsFor | None = None


@dataclass(frozen=True, slots=True)
class LedgerNotRead(CallFailed):
    """`waits_for` is what did not answer: a ledger entry needs the lake and Kafka.

    `shared` is the same if it is away for all.
    """

    asked: Mapping[TopicPartition, Epoch]
    waits_for: WaitsFor = WaitsFor.LAKE
    shared: WaitsFor | None = None


@dataclass(frozen=True, slots=True)
class EndsRead(Input):
    """Answers `ReadEnds`: how far the committed records of each partition reach.

    A partition that cannot be looked up (no leader, no right) is in `failures`; the others go on.
    `leader_epochs` are those of the leaders that answered. `topic_ids` names the topics that were
    described anew: None for one that is gone.
    """

    ends: Mapping[TopicPartition, int]
    failures: Mapping[TopicPartition, PenstockError] = field(default_factory=dict)
    leader_epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    topic_ids: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EndsNotRead(CallFailed):
    pass


@dataclass(frozen=True, slots=True)
class LogSizesRead(Input):
    """Answers `ReadLogSizes`. Partitions with an empty log are missing."""

    bytes_per_offset: Mapping[TopicPartition, float]


@dataclass(frozen=True, slots=True)
class LogSizesNotRead(CallFailed):
    pass


@dataclass(frozen=True, slots=True)
class StartOffsetsRead(Input):
    """Answers `ReadStartOffsets`: the first offset that each log still holds."""

    starts: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class StartOffsetsNotRead(CallFailed):
    pass


@dataclass(frozen=True, slots=True)
class SparkStarted(Input):
    pass


@dataclass(frozen=True, slots=True)
class SparkNotStarted(CallFailed):
    pass


@dataclass(frozen=True, slots=True)
class PartitionFailure:
    """What a batch did not carry of one partition.

    `reason` is None for a failure that passes; it is then unknown whether the batch was committed.
    LEDGER_REFUSED means that another consumer writes the partition; any other reason lasts.
    `shared` is what is away for all; None for a failure of these records or this table.
    """

    error: PenstockError
    reason: StopReason | None = None
    is_spark_lost: bool = False
    shared: WaitsFor | None = None
    # The batch was too large for Spark's memory.
    is_out_of_memory: bool = False


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Where the time of one batch, or of several, went."""

    read_s: float = 0.0
    transform_s: float = 0.0
    write_s: float = 0.0
    commit_s: float = 0.0

    def __add__(self, other: "StageTimes") -> "StageTimes":
        return StageTimes(
            self.read_s + other.read_s,
            self.transform_s + other.transform_s,
            self.write_s + other.write_s,
            self.commit_s + other.commit_s,
        )


@dataclass(frozen=True, slots=True)
class BatchEnded(Input):
    """Answers `CarryBatch`.

    `committed` holds the new ledger offsets, which may lie before the end of a range. A partition
    that is in neither map was dropped whole and is read again from where it was.
    """

    committed: Mapping[TopicPartition, int] = field(default_factory=dict)
    failures: Mapping[TopicPartition, PartitionFailure] = field(default_factory=dict)
    records: int = 0
    decoded_bytes: int = 0
    # How long all writers of the busiest table need to commit once.
    commit_round_s: float = 0.0
    times: StageTimes = StageTimes()


@dataclass(frozen=True, slots=True)
class BatchCrashed(CallFailed):
    """The batch raised what no failure of a partition explains."""


@dataclass(frozen=True, slots=True)
class TablesKept(Input):
    """Answers `KeepTables`. `has_more`: it ended because it had taken its time."""

    processor_s: float = 0.0
    has_more: bool = False


@dataclass(frozen=True, slots=True)
class TablesNotKept(CallFailed):
    """Some tables may have been kept all the same."""

    processor_s: float = 0.0


@dataclass(frozen=True, slots=True)
class OrphansNotRemoved(CallFailed):
    """`RemoveOrphans` failed; its success needs no answer."""


@dataclass(frozen=True, slots=True)
class ShutdownAsked(Input):
    """SIGTERM or SIGINT. Asked twice, the running batch is not waited for."""

    signal: str = "SIGTERM"
