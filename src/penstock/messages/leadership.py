"""What a controller writes about itself: its claim to lead, heartbeats, and its end.

The claim's offset in the controller's partition becomes the controller's epoch, so epochs only
rise. A heartbeat that came back through the log shows that the controller can hear its consumers.
"""

from typing import ClassVar

from penstock.messages.fields import Message, Ordinal, Sentence


class LeadershipClaim(Message):
    """Written once when a controller starts, before all its other messages."""

    topic_role: ClassVar[str] = "controller"
    header_fields: ClassVar[tuple[str, ...]] = ()

    claimed_by: Sentence = ""


class ControllerHeartbeat(Message):
    """Written by the leading controller to its own partition and to the consumers' topic.

    It reads both: the heartbeat passes through the log like every consumer's report. A consumer is
    silent when so many heartbeats came back without a message of its own in between. A standby
    listens to the controller's own partition, to which no consumer can write.
    """

    topic_role: ClassVar[str] = "controller"
    also_on: ClassVar[tuple[str, ...]] = ("consumer",)
    header_fields: ClassVar[tuple[str, ...]] = ("controller_epoch",)

    controller_epoch: Ordinal
    heartbeat_number: Ordinal


class LeadershipEnd(Message):
    """Written by a controller that ends in order, so that a standby need not wait."""

    topic_role: ClassVar[str] = "controller"
    header_fields: ClassVar[tuple[str, ...]] = ("controller_epoch",)

    controller_epoch: Ordinal
