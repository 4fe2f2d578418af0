"""One partition of one topic: the unit that is measured, packed and moved.

Topic names must use Kafka's alphabet, so that a name is safe in a file path or a log line.
"""

import re
from dataclasses import dataclass, field
from typing import Self

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


@dataclass(frozen=True, order=True, slots=True)
class TopicPartition:
    topic: str
    partition: int
    # Cached, because a step of the controller looks up each partition many times.
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not is_topic_name(self.topic):
            raise ValueError(f"not a Kafka topic name: {self.topic!r}")
        if not 0 <= self.partition <= PARTITION_MAX:
            raise ValueError(f"not a Kafka partition number: {self.partition!r}")
        object.__setattr__(self, "_hash", hash((self.topic, self.partition)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Self], tuple[str, int]]:
        """Pickle without the hash: string hashes differ between processes."""
        return type(self), (self.topic, self.partition)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The inverse of `str`: the part after the last dash is the partition."""
        topic, dash, number = text.rpartition("-")
        if not dash or not number.isascii() or not number.isdigit():
            raise ValueError(f"expected topic-partition, for instance orders-0, got {text!r}")
        return cls(topic, int(number))
