"""The message with which a controller claims leadership.

Its offset in the controller's partition becomes the controller's epoch, so epochs only rise.
"""

from typing import ClassVar

from penstock.messages.fields import Message, Sentence


class LeadershipClaim(Message):
    """Written once when a controller starts, before all its other messages."""

    topic_role: ClassVar[str] = "controller"
    header_fields: ClassVar[tuple[str, ...]] = ()

    claimed_by: Sentence = ""
