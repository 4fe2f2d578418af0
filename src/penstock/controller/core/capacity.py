"""What a consumer carries: of each topic, of all topics as they are written now, and by itself.

A topic with a slow transformation costs more time for each byte than a plain one. So load is time:
the speed of a partition, divided by what one consumer carries of its topic alone. The packer, the
trigger and the checks have one unit, bytes a second: a partition counts with its speed times the
weight of its topic, which is the usual capacity over the capacity for the topic. The usual capacity
is what one consumer carries of all topics together as they are written, so the weighted load of the
whole group is its real one.

People see real bytes: what is written to a consumer's partitions, and what it carries of exactly
these. A capacity that a person has set is that of every topic, and every weight is 1.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from statistics import median_low
from typing import Any

from penstock.controller.core.state import ConsumerRecord, KnownCapacity, State
from penstock.model import ConsumerId, TopicPartition

# A figure that differs by less than this share from the known one is the same.
SAME_SHARE = 0.1
# A consumer is as strong as the others unless it is clearly not: what is measured is not exact.
_ALIKE = 1.25
# Of fewer known topics the middle says little about another one.
_TELLING_TOPICS = 3


class Source(StrEnum):
    """Where a capacity comes from."""

    SET = "set"
    MEASURED = "measured"
    # Only together with other topics, so that it is not known which of them takes the time.
    TOGETHER = "together"
    CALIBRATED = "calibrated"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class Capacities:
    """What one usual consumer carries, in bytes of log a second."""

    usual_bytes_per_s: float
    # Only of topics that are written or known, and only where they are measured.
    by_topic: Mapping[str, float]
    # By topic, where it is not 1.
    weights: Mapping[str, float]

    def of(self, topic: str) -> float:
        return self.usual_bytes_per_s / self.weights.get(topic, 1.0)

    def of_mixture(self, bytes_per_s_by_topic: Mapping[str, float]) -> float:
        """What one usual consumer carries of topics that are written at these speeds."""
        written = sum(bytes_per_s_by_topic.values())
        weighted = sum(
            speed * self.weights.get(topic, 1.0) for topic, speed in bytes_per_s_by_topic.items()
        )
        return self.usual_bytes_per_s * written / weighted if weighted else self.usual_bytes_per_s


def capacities_of(state: State) -> Capacities:
    """As they are set, or as far as they are known and else assumed."""
    first = state.settings.policy.capacity_bytes_per_s
    if not state.settings.capacity_is_measured:
        return Capacities(first, {}, {})
    known = {topic: one.bytes_per_s for topic, one in state.capacities.items()}
    return capacities_from(first, known, state.written_by_topic)


def capacities_from(
    first: float, known: Mapping[str, float], written: Mapping[str, float]
) -> Capacities:
    """What follows from the topics that are known, and what is `written` to each topic.

    `first` is what is assumed until anything is known.
    """
    if not known:
        return Capacities(first, {}, {})
    # A topic of which nothing is known counts like the middle of the others. While a group measures
    # its first topics, they would make the rest look slow: it would grow for nothing, and what it
    # measures then is slowed by the growth.
    middle = median_low(known.values())
    if len(known) < _TELLING_TOPICS:
        middle = max(first, middle)
    by_topic = {topic: known.get(topic, middle) for topic in written} or known
    if len(set(by_topic.values())) == 1:
        return Capacities(next(iter(by_topic.values())), by_topic, {})
    shares = written if sum(written.values()) else dict.fromkeys(by_topic, 1.0)
    seconds = sum(shares[topic] / capacity for topic, capacity in by_topic.items())
    usual = sum(shares[topic] for topic in by_topic) / seconds
    weights = {topic: usual / capacity for topic, capacity in by_topic.items()}
    return Capacities(usual, by_topic, weights)


def speeds_by_topic(
    speeds: Mapping[TopicPartition, float], partitions: Iterable[TopicPartition]
) -> dict[str, float]:
    """What is written to these partitions, by topic."""
    found: dict[str, float] = {}
    for partition in partitions:
        found[partition.topic] = found.get(partition.topic, 0.0) + speeds.get(partition, 0.0)
    return found


def strength_of(state: State, record: ConsumerRecord, usual: Capacities) -> float:
    """How much the consumer carries for each byte that a usual one does."""
    if not state.settings.capacity_is_measured:
        return 1.0
    ratios = [
        capacity / usual.of(topic)
        for topic, capacity in record.capacity_by_topic.items()
        if topic in usual.by_topic
    ]
    strength = median_low(ratios) if ratios else 1.0
    return 1.0 if 1 / _ALIKE <= strength <= _ALIKE else strength


def capacity_of_consumer(
    state: State, consumer: ConsumerId, usual: Capacities | None = None
) -> float:
    """What it carries of the partitions that it has, for people."""
    usual = usual or capacities_of(state)
    strength = strength_of(state, state.consumers[consumer], usual)
    if not usual.weights:
        # All topics cost the same: the mixture, a look at each partition, makes no difference.
        return usual.usual_bytes_per_s * strength
    mixture = speeds_by_topic(state.write_speeds, state.held_by.get(consumer, ()))
    return usual.of_mixture(mixture) * strength


def measured_by_consumer(state: State, consumer: ConsumerId) -> float | None:
    """What it has shown to carry of the partitions that it has; None when that is not known."""
    record = state.consumers[consumer]
    if not record.capacity_by_topic:
        return None
    held = speeds_by_topic(state.write_speeds, state.held_by.get(consumer, ()))
    known = {t: record.capacity_by_topic[t] for t in held if t in record.capacity_by_topic}
    if not known:
        return None
    written = sum(held[topic] for topic in known)
    if not written:
        return min(known.values())
    return written / sum(held[topic] / capacity for topic, capacity in known.items())


def source_of(state: State) -> Source:
    """Where the capacity that is planned with comes from: of several, the least certain."""
    if not state.settings.capacity_is_measured:
        return Source.SET
    found = {_source_of_topic(state, topic) for topic in state.written_by_topic}
    found = found or {_source_of_topic(state, topic) for topic in state.capacities}
    for source in (Source.ASSUMED, Source.CALIBRATED, Source.TOGETHER):
        if source in found:
            return source
    return Source.MEASURED if found else Source.ASSUMED


def _source_of_topic(state: State, topic: str) -> Source:
    known = state.capacities.get(topic)
    return Source.ASSUMED if known is None else Source(known.source)


def capacity_rows(state: State) -> dict[str, Any]:
    """For people and programs: what one consumer carries, of what, and how that is known."""
    usual = capacities_of(state)
    topics = sorted({*state.written_by_topic, *state.capacities})
    return {
        "bytes_per_s": usual.usual_bytes_per_s,
        "source": source_of(state).value,
        "topics": {topic: _topic_row(state, usual, topic) for topic in topics},
    }


def _topic_row(state: State, usual: Capacities, topic: str) -> dict[str, Any]:
    """A capacity that is set stands beside what was measured, where something was."""
    known = state.capacities.get(topic)
    is_set = not state.settings.capacity_is_measured
    return {
        "bytes_per_s": usual.of(topic),
        "source": (Source.SET if is_set else _source_of_topic(state, topic)).value,
        "measured_bytes_per_s": None if known is None else known.bytes_per_s,
        "lowest_bytes_per_s": None if known is None else known.lowest_bytes_per_s,
        "highest_bytes_per_s": None if known is None else known.highest_bytes_per_s,
    }


def first_capacities(
    saved: Mapping[str, KnownCapacity], calibrated: Mapping[str, float]
) -> dict[str, KnownCapacity]:
    """What a controller begins with: what was measured wins over what was calibrated."""
    tried_only = (Source.CALIBRATED, Source.ASSUMED)
    measured = {t: one for t, one in saved.items() if one.source not in tried_only}
    tried = {topic: alike(figure, Source.CALIBRATED) for topic, figure in calibrated.items()}
    return {**saved, **tried, **measured}


def alike(bytes_per_s: float, source: Source) -> KnownCapacity:
    """A figure without a spread."""
    return KnownCapacity(bytes_per_s, bytes_per_s, bytes_per_s, source.value)


def measured_together(measured: Iterable[float]) -> KnownCapacity:
    """What several consumers have measured of one topic: the middle one counts."""
    found = sorted(measured)
    return KnownCapacity(median_low(found), found[0], found[-1], Source.MEASURED.value)
