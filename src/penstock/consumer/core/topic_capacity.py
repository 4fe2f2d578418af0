"""What this consumer carries of each topic: shown by batches that hold nothing else.

Topics cost differently: a transformation, compression, small records. A batch of several topics
does not show which of them took the time. So while a consumer of several topics is behind, it now
and then makes a batch of one of them alone. Two such batches never follow each other, and each
takes about as long as an ordinary one: the other topics wait for one batch.

Batches of several topics can still disprove what was measured: when they take less time than it
says, the consumer is quicker than it was, until a full batch shows otherwise.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from penstock.consumer.core.pace import PARTIAL_BATCHES_NEEDED, CapacityEstimate, Pace
from penstock.consumer.core.ranges import Waiting
from penstock.model import TopicPartition
from penstock.model.changed import changed

# A topic is measured alone this often, and again after this time. The first of these batches are
# small, and only show how large the next one can be.
_BATCHES_ALONE = 8
_ALONE_AGAIN_MS = 300_000
# Nothing is measured alone before a Spark session is as old as this many batches behind a backlog:
# Java, Spark's Python workers and what starts beside them slow the first half minute down.
_BATCHES_TO_WARM_UP = 8
_WARM_UP_MS_MAX = 40_000
# A topic whose last batch alone is longer ago than this is not being measured any more.
_IS_MEASURED_MS = 60_000
# By how much one of them may be larger than the one before.
_CHANGE_MAX = 4.0
# Batches that are quicker than expected by less than this share disprove nothing.
_SAME_SHARE = 0.1
# By so much can they raise what was measured. A topic that was right is then too high, until the
# consumer is behind again: then full batches count.
_QUICKER_MAX = 4.0


def owned_topics(owned: Iterable[TopicPartition]) -> frozenset[str]:
    return frozenset(partition.topic for partition in owned)


@dataclass(frozen=True)
class TopicCapacities:
    by_topic: Mapping[str, CapacityEstimate] = field(default_factory=dict)
    # How often each topic was measured alone lately, and when last.
    alone: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    # The topics of which this Spark session has carried a batch: the first one is slower.
    warm: frozenset[str] = frozenset()
    was_alone: bool = False
    # When the Spark session has warmed up, and by when a first topic is measured alone.
    warm_from_ms: int = 0
    tried_by_ms: int = 0
    # Of ordinary batches of several topics since the last full one: the seconds that they were
    # expected to take by what is known of each topic alone, and the seconds that they took.
    expected: tuple[tuple[float, float], ...] = ()
    # By how much they were quicker.
    quicker: float = 1.0

    def after(
        self, log_bytes: Mapping[str, float], seconds: float, *, was_full: bool
    ) -> "TopicCapacities":
        """After a batch with so many bytes of each topic."""
        there = log_bytes.keys()
        if not there <= self.warm:
            return changed(self, warm=self.warm.union(there))
        found = changed(self, expected=(), quicker=1.0) if was_full else self
        if len(there) != 1:
            return found if was_full else self._after_several(log_bytes, seconds)
        (topic,) = there
        estimate = self._estimate(topic).after(log_bytes[topic], seconds, was_full=was_full)
        return changed(found, by_topic={**found.by_topic, topic: estimate})

    def _after_several(self, log_bytes: Mapping[str, float], seconds: float) -> "TopicCapacities":
        """A figure that is too low would stay: who only keeps up measures no topic alone again."""
        if seconds <= 0:
            return self
        # A topic of which nothing is known may have taken no time at all.
        known = {topic: speed for topic in log_bytes if (speed := self.shown(topic)) is not None}
        expected_s = sum(log_bytes[topic] / speed for topic, speed in known.items())
        expected = (*self.expected, (expected_s, seconds))[-PARTIAL_BATCHES_NEEDED:]
        quicker = sum(one for one, _ in expected) / sum(one for _, one in expected)
        if len(expected) < PARTIAL_BATCHES_NEEDED or quicker <= 1 + _SAME_SHARE:
            return changed(self, expected=expected)
        return changed(self, expected=(), quicker=min(_QUICKER_MAX, self.quicker * quicker))

    def shown(self, topic: str) -> float | None:
        """What it carries of this topic, in log bytes a second; None while that is not known."""
        alone = self._estimate(topic).log_bytes_per_s
        return None if alone is None else alone * self.quicker

    def _estimate(self, topic: str) -> CapacityEstimate:
        return self.by_topic.get(topic, CapacityEstimate())

    def cold(self, now_ms: int, batch_ms: int) -> "TopicCapacities":
        """A new Spark session has carried nothing yet; `batch_ms`: of a batch behind a backlog."""
        warm_up_ms = min(_BATCHES_TO_WARM_UP * batch_ms, _WARM_UP_MS_MAX)
        return changed(
            self,
            warm=frozenset(),
            warm_from_ms=now_ms + warm_up_ms,
            tried_by_ms=now_ms + 2 * warm_up_ms,
        )

    def begun(self, topic: str | None, now_ms: int) -> "TopicCapacities":
        """A batch begins, of this topic alone on purpose, or an ordinary one."""
        if topic is None:
            return changed(self, was_alone=False)
        times, at_ms = self.alone.get(topic, (0, now_ms))
        times = 1 if now_ms - at_ms >= _ALONE_AGAIN_MS else times + 1
        return changed(self, was_alone=True, alone={**self.alone, topic: (times, now_ms)})

    def to_measure(
        self, waiting: Mapping[TopicPartition, Waiting], pace: Pace, now_ms: int
    ) -> tuple[str, float] | None:
        """The topic to measure now, and the size of its batch; None when none is due."""
        if self.was_alone or not pace.full_in_a_row or not pace.is_warm:
            return None
        if now_ms < self.warm_from_ms:
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
        chosen = min(due, key=lambda topic: self._order(topic, there_bytes[topic]))
        return chosen, sizes[chosen]

    def _order(self, topic: str, there_bytes: float) -> tuple[bool, int, int, float, str]:
        """One topic after the other, because in turns a short backlog ends before any is known.

        The one that was begun, then the one with the least backlog. Known ones come in turns.
        """
        times, at_ms = self.alone.get(topic, (0, 0))
        if self._is_known(topic):
            return (True, times, at_ms, 0.0, topic)
        return (False, -times, 0, there_bytes, topic)

    def is_measuring(self, topics: Iterable[str], now_ms: int) -> bool:
        """Whether one of these topics will soon be known by batches of its own.

        Until then a figure for all of them would count for the topics as they are written, while
        what waits is another mixture: a backlog of a slow topic would make the consumer look weak.
        """
        topics = frozenset(topics)
        if now_ms < self.tried_by_ms and not self._has_tried:
            return len(topics) > 1 and not all(self._is_known(topic) for topic in topics)
        return any(
            0 < times < _BATCHES_ALONE
            and now_ms - at_ms < _IS_MEASURED_MS
            and not self._is_known(topic)
            for topic in topics
            for times, at_ms in [self.alone.get(topic, (0, 0))]
        )

    @property
    def _has_tried(self) -> bool:
        """Whether this Spark session has carried a batch to measure its topic."""
        return any(at_ms >= self.warm_from_ms for _, at_ms in self.alone.values())

    def _is_known(self, topic: str) -> bool:
        return self._estimate(topic).log_bytes_per_s is not None

    def _is_due(self, topic: str, now_ms: int) -> bool:
        times, at_ms = self.alone.get(topic, (0, 0))
        return times < _BATCHES_ALONE or now_ms - at_ms >= _ALONE_AGAIN_MS

    def _size(self, topic: str, pace: Pace, share: float) -> float:
        """A batch that takes about as long as an ordinary one.

        At first it is what the topic has in an ordinary one, which cannot take longer alone.
        """
        first = pace.budget_bytes * share
        known = self._estimate(topic)
        # The newest: a full one that was slow by chance would keep the next ones short for ever.
        carried = known.partial or known.full
        if not carried:
            return first
        size, seconds = carried[-1]
        wanted = size / seconds * pace.limits.backlog_batch_time_s
        return min(pace.limits.batch_bytes, max(first, min(wanted, _CHANGE_MAX * size)))
