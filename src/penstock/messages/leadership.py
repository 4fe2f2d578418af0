"""Controller to whoever reads along: I lead from here on.

Its offset in the controller's own partition is the controller's epoch: monotone by construction.
"""

from typing import ClassVar

from penstock.messages.fields import Message, Sentence


class LeadershipClaim(Message):
    """Written once at the start of a controller's life, before anything else it says."""

    topic_role: ClassVar[str] = "controller"
    header_fields: ClassVar[tuple[str, ...]] = ()

    claimed_by: Sentence = ""
