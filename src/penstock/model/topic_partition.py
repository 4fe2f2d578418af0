"""One partition of one topic: the unit that is measured, packed and moved.

Topic names must use Kafka's alphabet, so that a name is safe in a file path or a log line.
"""

import re
from typing import NamedTuple, Self

TOPIC_NAME_LENGTH_MAX = 249
PARTITION_MAX = 2**31 - 1
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def is_topic_name(text: str) -> bool:
    """Whether Kafka itself would accept `text` as the name of a topic."""
    return (
        len(text) <= TOPIC_NAME_LENGTH_MAX
        and text not in {".", ".."}
        and _TOPIC_NAME.fullmatch(text) is not None
    )


class _Named(NamedTuple):
    topic: str
    partition: int


class TopicPartition(_Named):
    """A tuple: it is the key of most mappings, and tuples are hashed and compared quickly."""

    __slots__ = ()

    def __new__(cls, topic: str, partition: int) -> Self:
        if not is_topic_name(topic):
            raise ValueError(f"not a Kafka topic name: {topic!r}")
        if not 0 <= partition <= PARTITION_MAX:
            raise ValueError(f"not a Kafka partition number: {partition!r}")
        return super().__new__(cls, topic, partition)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The inverse of `str`: the part after the last dash is the partition."""
        topic, dash, number = text.rpartition("-")
        if not dash or not number.isascii() or not number.isdigit():
            raise ValueError(f"expected topic-partition, for instance orders-0, got {text!r}")
        return cls(topic, int(number))
