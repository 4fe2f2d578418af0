"""The four control topics: what each must be, and what is wrong with one that is not. Pure."""

from penstock.topics.control_topics import (
    ControlTopic,
    Finding,
    SeenTopic,
    Verdict,
    compare,
    control_topics,
)

__all__ = ["ControlTopic", "Finding", "SeenTopic", "Verdict", "compare", "control_topics"]
