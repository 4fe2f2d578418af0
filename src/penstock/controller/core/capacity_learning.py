"""What reports teach about the capacity.

A consumer's full batches show what it carries; those of one topic alone show it for that topic. A
consumer that only keeps up shows that it does not carry less than this. What a consumer measures
under contention is not learned (see `growth`). A figure that differs little from the known one
changes nothing, so that the group stays calm.
"""

from collections.abc import Iterable, Mapping
from typing import TypeGuard

from penstock.controller.core.capacity import (
    SAME_SHARE,
    Source,
    alike,
    capacities_of,
    measured_together,
    speeds_by_topic,
)
from penstock.controller.core.growth import learned_capacity
from penstock.controller.core.state import KnownCapacity
from penstock.controller.core.step_draft import StepDraft
from penstock.messages import ConsumerReport, TopicCapacity
from penstock.model import ConsumerId
from penstock.packing.problem import CAPACITY_BYTES_PER_S_MIN

# A figure for several topics says nothing about those that take less than this share of its time:
# what the others took by chance would be taken for theirs.
TELLING_SHARE = 0.2


def learn(draft: StepDraft, message: ConsumerReport) -> Mapping[str, float]:
    """What the sender carries of each topic alone, after its report."""
    known = draft.consumers[message.sender].capacity_by_topic
    found = dict(known)
    for row in _rows(draft, message):
        if row.topic in draft.state.written_by_topic:
            learned = _of_topic(draft, found.get(row.topic), row)
            if learned is not None and not _is_same(learned, found.get(row.topic)):
                found[row.topic] = learned
                _note(draft, row.topic, message.sender, learned)
    return known if found == known else found


def is_slowed(draft: StepDraft, message: ConsumerReport, own: Mapping[str, float]) -> bool:
    """Whether the sender measures clearly less than is known of it (`own`: of each topic alone).

    That is so where a lower figure was taken for contention, and not learned.
    """
    usual = capacities_of(draft.state)
    if message.topic_capacities:
        return any(
            _is_possible(row.capacity_log_bytes_per_s)
            and row.capacity_log_bytes_per_s
            < (1 - SAME_SHARE) * (own.get(row.topic) or usual.of(row.topic))
            for row in message.topic_capacities
        )
    reported = message.capacity_log_bytes_per_s
    if not _is_possible(reported):
        return False
    owned = (row.topic_partition for row in message.owned)
    mixture = speeds_by_topic(draft.state.write_speeds, owned)
    seconds = sum(speed / (own.get(topic) or usual.of(topic)) for topic, speed in mixture.items())
    return reported * seconds < (1 - SAME_SHARE) * sum(mixture.values())


def _rows(draft: StepDraft, message: ConsumerReport) -> Iterable[TopicCapacity]:
    """What the report says of topics alone; a figure for all that it has is one for its topic."""
    reported, least = message.capacity_log_bytes_per_s, message.at_least_log_bytes_per_s
    if message.topic_capacities or (reported is None and least is None):
        return message.topic_capacities
    topics = {row.topic for row in message.owned}
    if len(topics) == 1:
        return [
            TopicCapacity(
                topic=topics.pop(),
                capacity_log_bytes_per_s=reported,
                at_least_log_bytes_per_s=least,
            )
        ]
    _learn_together(draft, message)
    return ()


def _of_topic(draft: StepDraft, known: float | None, row: TopicCapacity) -> float | None:
    if _is_possible(row.capacity_log_bytes_per_s):
        return learned_capacity(draft, known, row.capacity_log_bytes_per_s)
    believed = known or capacities_of(draft.state).of(row.topic)
    return _raised(believed, row.at_least_log_bytes_per_s) or known


def _learn_together(draft: StepDraft, message: ConsumerReport) -> None:
    """A figure for several topics together: what is not measured alone takes the rest of the time.

    Each of those changes by the same share. It is replaced as soon as one is measured alone.
    """
    state = draft.state
    mixture = speeds_by_topic(state.write_speeds, (row.topic_partition for row in message.owned))
    written = sum(mixture.values())
    if not written:
        return
    usual = capacities_of(state)
    seconds = {topic: speed / usual.of(topic) for topic, speed in mixture.items()}
    alone = {t for t in mixture if t in state.capacities and state.capacities[t].is_of_it_alone}
    together = mixture.keys() - alone
    is_known = all(t in state.capacities for t in together)
    believed = written / sum(seconds.values())
    reported, least = message.capacity_log_bytes_per_s, message.at_least_log_bytes_per_s
    learned: float | None
    if _is_possible(reported):
        learned = learned_capacity(draft, believed if is_known else None, reported)
    else:
        learned = _raised(believed, least)
    if learned is None or _is_same(learned, believed):
        return
    left_s = written / learned - sum(seconds[topic] for topic in alone)
    together_s = sum(seconds[topic] for topic in together)
    if together_s < TELLING_SHARE * sum(seconds.values()) or left_s <= 0:
        return
    factor = left_s / together_s
    changed = {
        topic: alike(max(CAPACITY_BYTES_PER_S_MIN, usual.of(topic) / factor), Source.TOGETHER)
        for topic in together
    }
    _keep(draft, {**state.capacities, **changed})


def _is_possible(bytes_per_s: float | None) -> TypeGuard[float]:
    """What no settings file could have is no capacity: packing would fail with it."""
    return bytes_per_s is not None and bytes_per_s >= CAPACITY_BYTES_PER_S_MIN


def _raised(believed: float, at_least: float | None) -> float | None:
    """The lower bound, where it is clearly higher than what was believed."""
    is_higher = at_least is not None and at_least > believed * (1 + SAME_SHARE)
    return at_least if is_higher else None


def _is_same(learned: float, known: float | None) -> bool:
    return known is not None and abs(learned / known - 1) <= SAME_SHARE


def _note(draft: StepDraft, topic: str, consumer: ConsumerId, capacity: float) -> None:
    """The topic's capacity is the middle of what the consumers of the group have measured."""
    others = (r for c, r in draft.consumers.now.items() if c != consumer)
    measured = [r.capacity_by_topic[topic] for r in others if topic in r.capacity_by_topic]
    together = measured_together([*measured, capacity])
    _keep(draft, {**draft.state.capacities, topic: together})


def _keep(draft: StepDraft, capacities: Mapping[str, KnownCapacity]) -> None:
    draft.change(capacities=capacities)
    if draft.state.settings.capacity_is_measured:
        draft.save()
