"""Controller to consumer: start, stop, and tell me your state.

A command may be sent again at any time with the same content: a consumer that has obeyed it says
so again and does nothing else.
"""

from typing import Annotated, ClassVar

from pydantic import Field

from penstock.messages.fields import (
    PARTITIONS_PER_MESSAGE_MAX,
    ConsumerNumber,
    EpochRow,
    Message,
    Ordinal,
    ToConsumer,
    TopicId,
)
from penstock.model import ConsumerId


class PartitionToStart(EpochRow):
    """The epoch is new: the start of this partition, at this consumer, and no other."""

    topic_id: TopicId | None = None


class PartitionToStop(EpochRow):
    """The epoch that ends. A consumer that holds a lower one ends that too."""


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


class StateQuery(Message):
    """Say what you own, once the commands before this query have taken effect.

    It names no incarnation: the controller asks because it does not know.
    """

    topic_role: ClassVar[str] = "query"
    header_fields: ClassVar[tuple[str, ...]] = ("consumer_id", "controller_epoch")

    consumer_id: ConsumerNumber
    controller_epoch: Ordinal
    query_number: Ordinal

    @property
    def addressee(self) -> ConsumerId:
        return ConsumerId(self.consumer_id)

    @property
    def mailbox(self) -> int:
        return self.consumer_id
