"""Messages from a consumer to the controller: started, stopped, refused, and its state.

Events name the plan they answer, so that the controller recognises an answer to an older plan. They
are written to the consumer topic, which the controller reads.
"""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from penstock.messages.fields import (
    PARTITIONS_PER_MESSAGE_MAX,
    PARTS_MAX,
    Count,
    EpochRow,
    FromConsumer,
    Offset,
    Ordinal,
    Sentence,
    check_parts,
)


class StopReason(StrEnum):
    """Why a partition is no longer read. Only COMMANDED was requested by the controller."""

    COMMANDED = "commanded"
    SHUTDOWN = "shutdown"
    LEDGER_REFUSED = "ledger_refused"
    OFFSET_OUT_OF_RANGE = "offset_out_of_range"
    TRANSFORMATION_FAILED = "transformation_failed"
    TOPIC_MADE_AGAIN = "topic_made_again"
    TOPIC_DELETED = "topic_deleted"
    LOG_TRUNCATED = "log_truncated"
    NOT_PERMITTED = "not_permitted"
    SCHEMA_CHANGED = "schema_changed"
    TABLE_NOT_SERVED = "table_not_served"
    TOPIC_WITHOUT_ID = "topic_without_id"


class RefusalReason(StrEnum):
    """Why a consumer refuses a command."""

    STALE_CONTROLLER_EPOCH = "stale_controller_epoch"
    STALE_PLAN = "stale_plan"
    STALE_PARTITION_EPOCH = "stale_partition_epoch"
    OTHER_INCARNATION = "other_incarnation"
    OTHER_CONSUMER = "other_consumer"
    SHUTTING_DOWN = "shutting_down"
    # The record was not written in a transaction of the leading controller.
    NOT_FROM_LEADER = "not_from_leader"


class StartedPartition(EpochRow):
    """`next_offset` is where reading begins, from the ledger."""

    next_offset: Offset | None = None


class StoppedPartition(EpochRow):
    """`next_offset` is the ledger's offset after the last commit, if known."""

    next_offset: Offset | None = None
    reason: StopReason = StopReason.COMMANDED
    detail: Sentence = ""


class RefusedPartition(EpochRow):
    """The epoch that was refused."""


class OwnedPartition(EpochRow):
    """One partition that the consumer owns. Without `next_offset` its ledger is not read yet."""

    next_offset: Offset | None = None


class StartConsumingEvent(FromConsumer):
    """These partitions are being read."""

    partitions: Annotated[
        tuple[StartedPartition, ...], Field(min_length=1, max_length=PARTITIONS_PER_MESSAGE_MAX)
    ]


class StopConsumingEvent(FromConsumer):
    """These partitions are no longer read, and nothing of them is in flight."""

    partitions: Annotated[
        tuple[StoppedPartition, ...], Field(min_length=1, max_length=PARTITIONS_PER_MESSAGE_MAX)
    ]


class CommandRefusedEvent(FromConsumer):
    """A refused command and the reason. The command's own numbers are in `refused_...`."""

    refused_event_type: Annotated[str, Field(pattern=r"^[A-Za-z]{1,40}$")]
    refused_controller_epoch: Count
    refused_plan_number: Count
    reason: RefusalReason
    # How many this incarnation has refused for this reason, where it tells only some of them.
    refused_times: Ordinal = 1
    partitions: Annotated[
        tuple[RefusedPartition, ...], Field(max_length=PARTITIONS_PER_MESSAGE_MAX)
    ] = ()


class StateQueryResponse(FromConsumer):
    """What this consumer owns, after every command before the query has taken effect.

    A start whose ledger cannot be read is named without `next_offset`.
    """

    query_controller_epoch: Ordinal
    query_number: Ordinal
    part: Annotated[int, Field(ge=1, le=PARTS_MAX)] = 1
    parts: Annotated[int, Field(ge=1, le=PARTS_MAX)] = 1
    owned: Annotated[tuple[OwnedPartition, ...], Field(max_length=PARTITIONS_PER_MESSAGE_MAX)] = ()

    @model_validator(mode="after")
    def _parts_are_counted_from_one(self) -> Self:
        check_parts(self)
        return self
