"""The values that go into a batch and come out of it. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from penstock.errors import PenstockError
from penstock.model import Epoch, OffsetRange, TopicPartition


@dataclass(frozen=True, order=True, slots=True)
class Writer:
    """Who carries: a consumer in one of its lives. Every start takes a new incarnation."""

    consumer_id: int
    incarnation: int

    def __str__(self) -> str:
        return f"{self.consumer_id}-{self.incarnation}"


@dataclass(frozen=True, slots=True)
class Claim:
    """Under which epoch a partition is carried, and whose epochs these are.

    Epochs are ordered only among those that one controller topic gave out (`authority` is its id):
    when that topic is lost and made again, its numbers begin again, and the old ones bind nobody.
    """

    authority: str
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class PlannedRange:
    """A range to carry, and the ledger entry from which it was planned.

    `ledger_offset` is what the ledger must still say when the batch commits; None for a partition
    the ledger has never seen. It differs from the range's start only where a hole was skipped.
    """

    range: OffsetRange
    topic_id: str
    ledger_offset: int | None = None
    claim: Claim | None = None

    def __post_init__(self) -> None:
        if self.ledger_offset is not None and self.range.start < self.ledger_offset:
            raise ValueError(f"{self.range} begins before the ledger's {self.ledger_offset}")

    def __lt__(self, other: "PlannedRange") -> bool:
        return (self.range, self.topic_id) < (other.range, other.topic_id)

    @property
    def partition(self) -> TopicPartition:
        return self.range.partition

    def application_id(self, group: str) -> str:
        return application_id(group, self.topic_id, self.partition)


def application_id(group: str, topic_id: str, partition: TopicPartition) -> str:
    """The name of a partition's entry in the ledger. A topic made again has another id."""
    return f"{group}/{topic_id}/{partition.partition}"


def epoch_ids(application_id: str, authority: str) -> tuple[str, str]:
    """Two more entries a partition: the epoch of its last commit, a number each.

    They stand beside the offset's entry, never among the partitions of a topic.
    """
    return (
        f"epoch/{application_id}/{authority}/controller",
        f"epoch/{application_id}/{authority}/number",
    )


@dataclass(frozen=True, slots=True)
class Timings:
    """Where a batch's time went.

    Records flow through Spark in one pass, so reading, transforming and writing them overlap: the
    pass is `write_s`; `read_s` and `transform_s` are what preparing it cost the driver.
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
    """What became of every range of a batch: carried, failed, or dropped to be planned anew."""

    carried: Mapping[TopicPartition, int] = field(default_factory=dict)
    failures: Mapping[TopicPartition, PenstockError] = field(default_factory=dict)
    dropped: frozenset[TopicPartition] = frozenset()
    records: int = 0
    decoded_bytes: int = 0
    dead_letters: int = 0
    files: int = 0
    file_bytes: int = 0
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
            timings=self.timings + other.timings,
        )


def batch_folder(group: str, writer: Writer, number: int, reference_range: PlannedRange) -> str:
    """Where a batch's files go, below the table's root.

    The name tells who wrote them and, by one partition of the batch (the witness) and the ledger
    entry it was planned from, whether the batch can still commit: once the ledger has moved past
    that entry, it never can. So files nobody names can be told from those of a paused writer
    without a clock (see orphans.py).
    """
    place = ledger_position_text(
        reference_range.topic_id, reference_range.partition, reference_range.ledger_offset
    )
    return f"data/{group}/{writer}/{number}.{place}"


def ledger_position_text(
    topic_id: str, partition: TopicPartition, ledger_offset: int | None
) -> str:
    said = "new" if ledger_offset is None else ledger_offset
    return f"{topic_id}.{partition.partition}.{said}"


def reference_range_of(planned: Iterable[PlannedRange]) -> PlannedRange:
    return min(planned)
