"""Everything a consumer's core remembers, as one frozen value."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.consumer.core.effects import RangeToCarry
from penstock.consumer.core.ownership import Ownership
from penstock.consumer.core.pace import Allowance, CapacityEstimate, Pace
from penstock.consumer.core.partition_progress import PartitionProgress, WorkDone
from penstock.consumer.core.settings import CoreSettings
from penstock.consumer.core.topic_capacity import TopicCapacities
from penstock.messages import FailedPartition, WaitsFor
from penstock.model import TopicPartition


@dataclass(frozen=True)
class LedgerLookup:
    """A ledger entry that must be read before its partition can be read."""

    since_ms: int
    not_before_ms: int = 0
    failures: int = 0
    # What was away for all when it failed last; None if the failure was its own.
    shared: WaitsFor | None = None

    @property
    def was_put_off(self) -> bool:
        """Whether it was tried in vain."""
        return self.not_before_ms > 0


@dataclass(frozen=True)
class RunningBatch:
    ranges: tuple[RangeToCarry, ...]
    size_bytes: float
    # Records were left for the next batch.
    leaves_records: bool
    # There was more than it could carry, and not only more than the capacity that is set.
    is_full: bool
    began_ms: int
    # From when its time counts for the capacity: the end of the last batch if it followed at once.
    since_ms: int
    # It holds one topic alone, to show what that costs.
    is_alone: bool = False


@dataclass(frozen=True)
class BatchState:
    """When to look for records, how many to take, and the batch that runs."""

    pace: Pace
    allowance: Allowance
    idle_wait_ms: int
    # Of all that it owned of these topics together; with others it is another mixture.
    capacity: CapacityEstimate = field(default_factory=CapacityEstimate)
    capacity_topics: frozenset[str] = frozenset()
    topic_capacities: TopicCapacities = field(default_factory=TopicCapacities)
    next_look_ms: int = 0
    is_looking: bool = False
    # Something became readable while a look was under way, which did not ask for it.
    looks_again: bool = False
    running: RunningBatch | None = None
    number: int = 0
    ended_ms: int | None = None
    # Over the last batch that carried anything, for partitions whose log size is not known.
    decoded_bytes_per_offset: float | None = None


@dataclass(frozen=True)
class LogSizes:
    is_reading: bool = False
    next_ms: int = 0
    # The last attempt failed: Kafka may refuse to tell them.
    is_refused: bool = False


@dataclass(frozen=True)
class Spark:
    is_ready: bool = False
    # In a row.
    failures: int = 0


@dataclass(frozen=True)
class Shutdown:
    """By when the running batch is dropped, and by when the process must have ended."""

    deadline_ms: int
    # None once the batch was interrupted.
    drop_batch_ms: int | None


@dataclass(frozen=True)
class ConsumerState:
    settings: CoreSettings
    ownership: Ownership
    batches: BatchState
    report_due_ms: int
    reported_ms: int
    # None while the tables are being kept, or when upkeep is disabled.
    upkeep_due_ms: int | None
    # When to remove what an earlier incarnation left behind; empty after a controlled shutdown.
    orphan_removals_ms: tuple[int, ...] = ()
    progress: Mapping[TopicPartition, PartitionProgress] = field(default_factory=dict)
    # Partitions given up because they cannot be read, until they are started again.
    failed: Mapping[TopicPartition, FailedPartition] = field(default_factory=dict)
    lookups: Mapping[TopicPartition, LedgerLookup] = field(default_factory=dict)
    is_reading_ledger: bool = False
    log_sizes: LogSizes = LogSizes()
    # What is away, and since when.
    waits: Mapping[WaitsFor, int] = field(default_factory=dict)
    spark: Spark = Spark()
    work: WorkDone = field(default_factory=WorkDone)
    shutdown: Shutdown | None = None
    # The time that the last `WaitUntil` named.
    wake_ms: int | None = None
