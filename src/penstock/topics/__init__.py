"""The four control topics: what each must be, and what is wrong with one that is not. Pure."""

from penstock.topics.control_topics import (
    ControlTopic,
    SeenTopic,
    TopicFinding,
    TopicState,
    compare,
    control_topics,
)

__all__ = ["ControlTopic", "SeenTopic", "TopicFinding", "TopicState", "compare", "control_topics"]
