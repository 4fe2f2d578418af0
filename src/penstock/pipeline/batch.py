"""The values that go into a batch and come out of it. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from penstock.errors import PenstockError
from penstock.model import Epoch, OffsetRange, TopicPartition

NO_TOPIC_ID = "A" * 22  # sixteen bytes of zero, as Kafka writes them


@dataclass(frozen=True, order=True, slots=True)
class Writer:
    """A consumer in one incarnation. Every start of its process takes a new one."""

    consumer_id: int
    incarnation: int

    def __str__(self) -> str:
        return f"{self.consumer_id}-{self.incarnation}"


@dataclass(frozen=True, slots=True)
class Claim:
    """The epoch under which a partition is carried, and the controller topic that gave it.

    Epochs are comparable only within one controller topic (`authority` is its id). If that topic
    is lost and made again its epochs start again, and the old ones no longer count.
    """

    authority: str
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class PlannedRange:
    """A range to carry, and the ledger entry from which it was planned.

    `ledger_offset` is what the ledger must still hold when the batch commits; None for a partition
    that was never carried. It differs from the range's start only where a gap was skipped.
    """

    range: OffsetRange
    topic_id: str
    ledger_offset: int | None = None
    claim: Claim | None = None
    # The epoch of the leader whose log reached to the range's end; None if it did not say.
    leader_epoch: int | None = None

    def __post_init__(self) -> None:
        if self.ledger_offset is not None and self.range.start < self.ledger_offset:
            raise ValueError(f"{self.range} begins before the ledger's {self.ledger_offset}")

    def __lt__(self, other: "PlannedRange") -> bool:
        return (self.range, self.topic_id) < (other.range, other.topic_id)

    @property
    def partition(self) -> TopicPartition:
        return self.range.partition

    @property
    def has_topic_id(self) -> bool:
        """Brokers without topic ids answer with none, or with one that is all zeros."""
        return bool(self.topic_id.strip(NO_TOPIC_ID[0]))

    def application_id(self, group: str) -> str:
        return application_id(group, self.topic_id, self.partition)


def application_id(group: str, topic_id: str, partition: TopicPartition) -> str:
    """The name of a partition's ledger entry. A topic that is made again has another id."""
    return f"{group}/{topic_id}/{partition.partition}"


def epoch_ids(application_id: str, authority: str) -> tuple[str, str]:
    """The two ledger entries that hold the epoch of a partition's last commit."""
    return (
        f"epoch/{application_id}/{authority}/controller",
        f"epoch/{application_id}/{authority}/number",
    )


def leader_epoch_id(application_id: str) -> str:
    """The ledger entry that holds the Kafka leader's epoch at the offset; see `stored_epoch`."""
    return f"leader-epoch/{application_id}"


def stored_epoch(leader_epoch: int | None) -> int:
    """One more than the epoch, as an entry cannot be removed: 0 says that it is not known."""
    return 0 if leader_epoch is None else leader_epoch + 1


@dataclass(frozen=True, slots=True)
class Timings:
    """How long a batch took.

    Spark reads, transforms and writes in one pass, which is `write_s`. `read_s` and `transform_s`
    are the time the driver needed to prepare it.
    """

    read_s: float = 0.0
    transform_s: float = 0.0
    write_s: float = 0.0
    commit_s: float = 0.0

    def __add__(self, other: "Timings") -> "Timings":
        return Timings(
            self.read_s + other.read_s,
            self.transform_s + other.transform_s,
            self.write_s + other.write_s,
            self.commit_s + other.commit_s,
        )


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What happened to every range of a batch: carried, failed, or dropped to be planned again."""

    carried: Mapping[TopicPartition, int] = field(default_factory=dict)
    failures: Mapping[TopicPartition, PenstockError] = field(default_factory=dict)
    dropped: frozenset[TopicPartition] = frozenset()
    records: int = 0
    decoded_bytes: int = 0
    dead_letters: int = 0
    files: int = 0
    file_bytes: int = 0
    # How long all writers of a table need to commit once, where that is longest.
    commit_round_s: float = 0.0
    timings: Timings = Timings()

    def __add__(self, other: "BatchResult") -> "BatchResult":
        return BatchResult(
            carried={**self.carried, **other.carried},
            failures={**self.failures, **other.failures},
            dropped=self.dropped | other.dropped,
            records=self.records + other.records,
            decoded_bytes=self.decoded_bytes + other.decoded_bytes,
            dead_letters=self.dead_letters + other.dead_letters,
            files=self.files + other.files,
            file_bytes=self.file_bytes + other.file_bytes,
            commit_round_s=max(self.commit_round_s, other.commit_round_s),
            timings=self.timings + other.timings,
        )


def batch_folder(group: str, writer: Writer, number: int, reference_range: PlannedRange) -> str:
    """Where a batch's files go, below the table's root.

    The name holds the writer, one partition of the batch (the reference range) and the ledger
    entry that this partition was planned from. Once the ledger has moved past that entry, the
    batch can no longer commit. So orphans can be told from the files of a paused writer without a
    clock (see orphans.py).
    """
    place = ledger_position_text(
        reference_range.topic_id, reference_range.partition, reference_range.ledger_offset
    )
    return f"data/{group}/{writer}/{number}.{place}"


def ledger_position_text(
    topic_id: str, partition: TopicPartition, ledger_offset: int | None
) -> str:
    offset = "new" if ledger_offset is None else ledger_offset
    return f"{topic_id}.{partition.partition}.{offset}"


def reference_range_of(planned: Iterable[PlannedRange]) -> PlannedRange:
    return min(planned)


def all_failed(planned: Iterable[PlannedRange], error: PenstockError) -> BatchResult:
    return BatchResult(failures={one.partition: error for one in planned})
