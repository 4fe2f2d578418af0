"""The basic types that all packages share. Pure."""

from penstock.model.assignment import Assignment
from penstock.model.consumer_id import ConsumerId
from penstock.model.consumer_list_diff import ConsumerListDiff
from penstock.model.control_topic_names import ControlTopicNames
from penstock.model.epoch import Epoch
from penstock.model.offset_range import OffsetRange
from penstock.model.topic_partition import TopicPartition

__all__ = [
    "Assignment",
    "ConsumerId",
    "ConsumerListDiff",
    "ControlTopicNames",
    "Epoch",
    "OffsetRange",
    "TopicPartition",
]
