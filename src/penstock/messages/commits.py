"""Messages between consumers: batches that one of them commits for several.

They bring a commit about sooner and decide nothing: the log of the table does. What an offer can
name is bounded by its form. Ledger entries are named by topic id and partition, so they are of the
reader's own group; files are named below the folder of the batch, which is of the sender.
"""

from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints, field_validator, model_validator

from penstock.messages.fields import (
    ConsumerNumber,
    Count,
    EpochText,
    Message,
    Offset,
    Ordinal,
    PartitionRow,
    TopicId,
    TopicName,
    Value,
)
from penstock.model.commit_partitions import answers_partition, offers_partition

OFFERED_PARTITIONS_MAX = 200
OFFERED_FILES_MAX = 24
PATH_LENGTH_MAX = 1_000
# Its quotes are escaped in a message, and take twice the space.
STATISTICS_LENGTH_MAX = 6_000
PARTITION_VALUES_MAX = 4
BATCHES_PER_ANSWER_MAX = 500

_NO_CONTROL = r"^[^\x00-\x1f\x7f]*$"
# The last part of a batch's folder, see `batch_folder`. It begins with no dot, so it is not `..`.
BatchName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$")]
# The same with its writer.
WriterBatch = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9]{1,10}-[0-9]{1,20}/[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}$"),
]
PathText = Annotated[
    str, StringConstraints(pattern=_NO_CONTROL, min_length=1, max_length=PATH_LENGTH_MAX)
]
ShortText = Annotated[str, StringConstraints(pattern=_NO_CONTROL, max_length=100)]
Statistics = Annotated[
    str, StringConstraints(pattern=_NO_CONTROL, max_length=STATISTICS_LENGTH_MAX)
]
Signature = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
TableMark = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]


class OfferedRange(PartitionRow):
    """A range of a batch: what the ledger must hold now, and what it will hold."""

    topic_id: TopicId
    ledger_offset: Offset | None = None
    start: Offset
    end: Offset
    # Under which epoch, and of which controller topic; both or none.
    authority: TopicId | None = None
    epoch: EpochText | None = None
    leader_epoch: Count | None = None

    @model_validator(mode="after")
    def _goes_on(self) -> "OfferedRange":
        """The ledger only grows."""
        ledger = -1 if self.ledger_offset is None else self.ledger_offset
        if self.start < ledger or self.end < self.start or self.end <= ledger:
            raise ValueError("the range does not go on from the ledger")
        if (self.authority is None) != (self.epoch is None):
            raise ValueError("an epoch needs the topic that gave it")
        return self


class PartitionValue(Value):
    """A column by which the table is partitioned. Without a value it is null."""

    column: ShortText
    value: ShortText | None = None


class OfferedFile(Value):
    """A Parquet file, by its path below the batch's folder."""

    path: PathText
    size_bytes: Count
    modified_at_ms: Count
    records: Count
    partition_values: Annotated[
        tuple[PartitionValue, ...], Field(max_length=PARTITION_VALUES_MAX)
    ] = ()
    statistics: Statistics

    @field_validator("path")
    @classmethod
    def _stays_below(cls, value: str) -> str:
        if any(part in {"", ".", ".."} for part in value.split("/")):
            raise ValueError("the path leaves the folder of its batch")
        return value


class BetweenConsumers(Message):
    """A message from a consumer to those that write to the same table."""

    topic_role: ClassVar[str] = "commit"
    header_fields: ClassVar[tuple[str, ...]] = ("table", "consumer_id", "incarnation")

    table: TopicName
    consumer_id: ConsumerNumber
    incarnation: Ordinal

    @property
    def mailbox(self) -> int:
        return answers_partition(self.table)


class OfferedBatch(BetweenConsumers):
    """A batch that is written and waits for its commit."""

    batch: BatchName
    # Tells the table as the sender knows it from one with other columns or rules.
    table_mark: TableMark
    ranges: Annotated[
        tuple[OfferedRange, ...], Field(min_length=1, max_length=OFFERED_PARTITIONS_MAX)
    ]
    files: Annotated[tuple[OfferedFile, ...], Field(max_length=OFFERED_FILES_MAX)] = ()
    # By all other fields and a key that lies beside the table: HMAC with SHA-256.
    signature: Signature

    @property
    def mailbox(self) -> int:
        return offers_partition(self.table)


class CommitterPresence(BetweenConsumers):
    """The sender reads what is offered for the table, and commits it; or does so no more."""

    # How long its commits take.
    commit_ms: Count
    is_leaving: bool = False


class CommitAnswer(BetweenConsumers):
    """These batches are in this version, and these are not: their writers look for themselves."""

    version: Count
    committed: Annotated[tuple[WriterBatch, ...], Field(max_length=BATCHES_PER_ANSWER_MAX)] = ()
    refused: Annotated[tuple[WriterBatch, ...], Field(max_length=BATCHES_PER_ANSWER_MAX)] = ()
