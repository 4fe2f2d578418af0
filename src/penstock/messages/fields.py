"""The base classes of messages, and the bounded types of their fields.

Everything is strict: a quoted number is not a number, NaN is not a speed, and a topic name uses
Kafka's alphabet. An unknown value is absent, never zero.
"""

from functools import lru_cache
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from penstock.model import ConsumerId, Epoch, TopicPartition
from penstock.model.epoch import INTEGER_MAX
from penstock.model.offset_range import OFFSET_MAX

# A message with this many partitions stays under MESSAGE_BYTES_MAX whatever the names and numbers
# are; tests/behaviour/messages proves it for every kind. Longer lists are split by the writer.
PARTITIONS_PER_MESSAGE_MAX = 1_000
# Kafka's own default for message.max.bytes is 1,048,588, headers and framing included.
MESSAGE_BYTES_MAX = 1_000_000
PARTS_MAX = 1_000
PARTITIONS_REMEMBERED = 16_384
_CONSUMER_HEADERS = ("consumer_id", "incarnation", "controller_epoch", "plan_number")

_TOPIC_PATTERN = r"^(?:\.{0,2}[a-zA-Z0-9_-][a-zA-Z0-9._-]*|\.{3}[a-zA-Z0-9._-]*)$"

TopicName = Annotated[str, StringConstraints(pattern=_TOPIC_PATTERN, min_length=1, max_length=249)]
TopicId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{22}$")]
PartitionNumber = Annotated[int, Field(ge=0, le=2**31 - 1)]
ConsumerNumber = Annotated[int, Field(ge=1, le=2**31 - 1)]
Offset = Annotated[int, Field(ge=0, le=OFFSET_MAX)]
Count = Annotated[int, Field(ge=0, le=INTEGER_MAX)]
Ordinal = Annotated[int, Field(ge=1, le=INTEGER_MAX)]
EpochText = Annotated[
    str, StringConstraints(pattern=r"^(?:0|[1-9][0-9]{0,14})\.(?:0|[1-9][0-9]{0,14})$")
]
Quantity = Annotated[float, Field(ge=0, le=1e18, allow_inf_nan=False)]
SENTENCE_LENGTH_MAX = 100
ANSWER_LENGTH_MAX = 400
# One line for people. No control characters, so no log line can be forged with it.
_ONE_LINE = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$"
Sentence = Annotated[str, StringConstraints(pattern=_ONE_LINE, max_length=SENTENCE_LENGTH_MAX)]
# An answer may list what would have been right.
AnswerText = Annotated[str, StringConstraints(pattern=_ONE_LINE, max_length=ANSWER_LENGTH_MAX)]
RequestName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}$")]


# The same few partitions and epochs are named in every report, and read from it several times.
_partition_named = lru_cache(maxsize=PARTITIONS_REMEMBERED)(TopicPartition)
_epoch_named = lru_cache(maxsize=PARTITIONS_REMEMBERED)(Epoch.parse)


class Value(BaseModel):
    """A frozen, strict value: the base of messages and of the rows in them."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False, ser_json_inf_nan="constants"
    )


class PartitionRow(Value):
    """A row about one partition."""

    topic: TopicName
    partition: PartitionNumber

    @property
    def topic_partition(self) -> TopicPartition:
        return _partition_named(self.topic, self.partition)


class EpochRow(PartitionRow):
    """A row about one partition under one epoch."""

    epoch: EpochText

    @property
    def partition_epoch(self) -> Epoch:
        return _epoch_named(self.epoch)


class Message(Value):
    """The base of all messages. The header `event_type` is the name of the class.

    `topic_role` is the topic's name without the prefix, and `also_on` has further topics on which
    it is accepted. `header_fields` are also copied into
    headers, so that Kafka tools and the controller's checks can read them without parsing.
    """

    topic_role: ClassVar[str]
    also_on: ClassVar[tuple[str, ...]] = ()
    header_fields: ClassVar[tuple[str, ...]] = ()

    @property
    def mailbox(self) -> int:
        """The partition to write to: 0 is the controller's, and the only one of other topics."""
        return 0

    @property
    def event_type(self) -> str:
        return type(self).__name__


class FromConsumer(Message):
    """A message from a consumer: its id, its incarnation, and the highest plan it has obeyed."""

    topic_role: ClassVar[str] = "consumer"
    # Where consumers of 0.1.0 write it: a new controller leads them until they are rolled out.
    also_on: ClassVar[tuple[str, ...]] = ("controller",)
    header_fields: ClassVar[tuple[str, ...]] = _CONSUMER_HEADERS

    consumer_id: ConsumerNumber
    # Higher is newer: the process takes the larger of its stored one plus 1 and the wall clock.
    incarnation: Ordinal
    # Numbers the messages of this incarnation. The controller drops those that arrive out of order,
    # so that a late report never contradicts a newer acknowledgement.
    sequence: Ordinal
    # The highest ones that this consumer has obeyed; 0 at first.
    controller_epoch: Count
    plan_number: Count

    @property
    def sender(self) -> ConsumerId:
        return ConsumerId(self.consumer_id)


class ForOneConsumer(Message):
    """A message of the controller in the mailbox of one consumer."""

    consumer_id: ConsumerNumber

    @property
    def mailbox(self) -> int:
        return self.consumer_id


class ToConsumer(ForOneConsumer):
    """A command of the controller: its epoch and plan, and the consumer and incarnation."""

    topic_role: ClassVar[str] = "controller"
    header_fields: ClassVar[tuple[str, ...]] = _CONSUMER_HEADERS

    incarnation: Ordinal
    controller_epoch: Ordinal
    plan_number: Ordinal


def check_parts(values: Any) -> Any:
    """Parts are counted from 1 to `parts`."""
    if values.part > values.parts:
        raise ValueError(f"part {values.part} of {values.parts}")
    return values
