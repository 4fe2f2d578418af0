"""What the control topics must be, and what is wrong with those of a cluster. Pure."""

from penstock.topics.control_topics import (
    ControlTopic,
    SeenTopic,
    TopicFinding,
    TopicState,
    compare,
    control_topics,
)

__all__ = ["ControlTopic", "SeenTopic", "TopicFinding", "TopicState", "compare", "control_topics"]
