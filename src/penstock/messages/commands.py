"""Messages from the controller to a consumer: start, stop, and a query of its state.

The controller may repeat a command at any time. A consumer that has already obeyed it repeats its
acknowledgement and does nothing else.
"""

from typing import Annotated, ClassVar

from pydantic import Field

from penstock.messages.fields import (
    PARTITIONS_PER_MESSAGE_MAX,
    EpochRow,
    ForOneConsumer,
    Ordinal,
    ToConsumer,
    TopicId,
)


class PartitionToStart(EpochRow):
    """The epoch is new and belongs to this one start."""

    topic_id: TopicId | None = None


class PartitionToStop(EpochRow):
    """The epoch that ends. A consumer with a lower epoch ends that one too."""


class StartConsumingCommand(ToConsumer):
    """Begin to read these partitions, each from the offset that the lake's ledger holds."""

    partitions: Annotated[
        tuple[PartitionToStart, ...], Field(min_length=1, max_length=PARTITIONS_PER_MESSAGE_MAX)
    ]


class StopConsumingCommand(ToConsumer):
    """Stop reading these partitions once the running batch is committed or dropped whole."""

    partitions: Annotated[
        tuple[PartitionToStop, ...], Field(min_length=1, max_length=PARTITIONS_PER_MESSAGE_MAX)
    ]


class StateQuery(ForOneConsumer):
    """Asks a consumer what it owns, after the commands before this query have taken effect.

    It has no incarnation, because the controller does not know it yet. After its answer a consumer
    refuses commands of earlier plans, so that a delayed command (from another topic) cannot make
    the answer untrue.
    """

    topic_role: ClassVar[str] = "query"
    header_fields: ClassVar[tuple[str, ...]] = ("consumer_id", "controller_epoch", "plan_number")

    controller_epoch: Ordinal
    plan_number: Ordinal
    query_number: Ordinal
