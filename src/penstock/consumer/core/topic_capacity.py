"""What this consumer carries of each topic: shown by batches that hold nothing else.

Topics cost differently: a transformation, compression, small records. A batch of several topics
does not show which of them took the time. So while a consumer of several topics is behind, it now
and then makes a batch of one of them alone. Two such batches never follow each other, and each
takes about as long as an ordinary one: the other topics wait for one batch.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from penstock.consumer.core.pace import CapacityEstimate, Pace
from penstock.consumer.core.ranges import Waiting
from penstock.model import TopicPartition

# A topic is measured alone this often, and again after this time. The first of these batches are
# small, and only show how large the next one can be.
_BATCHES_ALONE = 8
_ALONE_AGAIN_MS = 300_000
# By how much one of them may be larger than the one before.
_CHANGE_MAX = 4.0


def owned_topics(owned: Iterable[TopicPartition]) -> frozenset[str]:
    return frozenset(partition.topic for partition in owned)


@dataclass(frozen=True, slots=True)
class TopicCapacities:
    by_topic: Mapping[str, CapacityEstimate] = field(default_factory=dict)
    # How often each topic was measured alone lately, and when last.
    alone: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    # The topics of which this Spark session has carried a batch: the first one is slower.
    warm: frozenset[str] = frozenset()
    was_alone: bool = False

    def after(
        self, topics: Iterable[str], log_bytes: float, seconds: float, *, was_full: bool
    ) -> "TopicCapacities":
        """After a batch of these topics."""
        there = frozenset(topics)
        if len(there) != 1 or not there <= self.warm:
            return replace(self, warm=self.warm | there)
        (topic,) = there
        known = self.by_topic.get(topic, CapacityEstimate())
        estimate = known.after(log_bytes, seconds, was_full=was_full)
        return replace(self, by_topic={**self.by_topic, topic: estimate})

    def cold(self) -> "TopicCapacities":
        """A new Spark session has carried nothing yet."""
        return replace(self, warm=frozenset())

    def begun(self, topic: str | None, now_ms: int) -> "TopicCapacities":
        """A batch begins, of this topic alone on purpose, or an ordinary one."""
        if topic is None:
            return replace(self, was_alone=False)
        times, at_ms = self.alone.get(topic, (0, now_ms))
        times = 1 if now_ms - at_ms >= _ALONE_AGAIN_MS else times + 1
        return replace(self, was_alone=True, alone={**self.alone, topic: (times, now_ms)})

    def to_measure(
        self, waiting: Mapping[TopicPartition, Waiting], pace: Pace, now_ms: int
    ) -> tuple[str, float] | None:
        """The topic to measure now, and the size of its batch; None when none is due."""
        if self.was_alone or not pace.full_in_a_row or not pace.is_warm:
            return None
        there_bytes: dict[str, float] = {}
        partitions: dict[str, int] = {}
        for partition, one in waiting.items():
            if one.offsets:
                topic = partition.topic
                there_bytes[topic] = there_bytes.get(topic, 0.0) + one.size_bytes
                partitions[topic] = partitions.get(topic, 0) + 1
        if len(there_bytes) < 2:
            return None
        number = sum(partitions.values())
        sizes = {
            topic: self._size(topic, pace, partitions[topic] / number) for topic in there_bytes
        }
        due = [
            topic
            for topic, size in sizes.items()
            if there_bytes[topic] > size and self._is_due(topic, now_ms)
        ]
        if not due:
            return None
        chosen = min(due, key=lambda topic: (self.alone.get(topic, (0, 0)), topic))
        return chosen, sizes[chosen]

    def _is_due(self, topic: str, now_ms: int) -> bool:
        times, at_ms = self.alone.get(topic, (0, 0))
        return times < _BATCHES_ALONE or now_ms - at_ms >= _ALONE_AGAIN_MS

    def _size(self, topic: str, pace: Pace, share: float) -> float:
        """A batch that takes about as long as an ordinary one.

        At first it is what the topic has in an ordinary one, which cannot take longer alone.
        """
        first = pace.budget_bytes * share
        known = self.by_topic.get(topic, CapacityEstimate())
        carried = known.full or known.partial
        if not carried:
            return first
        size, seconds = carried[-1]
        wanted = size / seconds * pace.limits.backlog_batch_time_s
        return min(pace.limits.batch_bytes, max(first, min(wanted, _CHANGE_MAX * size)))
