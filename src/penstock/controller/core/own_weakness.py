"""Whether a consumer that carries little is weak by itself, or slowed by what all of them share.

What is shared, a disk or a Spark server, slows all of them down, and is no capacity (see `growth`).
A consumer that is far behind while others carry clearly more at the same time is not slowed by
that: it runs on a smaller machine, and its partitions belong elsewhere.

Loads, backlogs and capacities are weighted here, so that topics of any cost can be compared.
"""

from collections.abc import Mapping

from penstock.controller.core.backlog import backlog_of
from penstock.controller.core.capacity import ALIKE, Capacities, capacities_of
from penstock.controller.core.step_draft import StepDraft
from penstock.messages import ConsumerReport
from penstock.model import ConsumerId, TopicPartition

# So many times as far as a group may be behind: all may be behind for a moment.
FAR_BEHIND = 3
# One alone may do well by chance.
PEERS_MIN = 2


def is_weak_itself(draft: StepDraft, message: ConsumerReport, carried_bytes_per_s: float) -> bool:
    """Whether the sender, which carries so much, is far behind while others carry more."""
    usual, planned_ms = capacities_of(draft.state), draft.state.trigger.repacked_at_ms
    tolerated_s = draft.state.settings.behind_tolerated_ms / 1_000
    behind = _weighted(backlog_of(message), usual)
    if planned_ms is None or behind < FAR_BEHIND * tolerated_s * carried_bytes_per_s:
        return False
    passed_s = max(tolerated_s, (draft.now_ms - planned_ms) / 1_000)
    others = (c for c, record in draft.consumers.now.items() if record.has_carried)
    carry_more = sum(
        _carried_at_least(draft, consumer, usual, passed_s) > ALIKE * carried_bytes_per_s
        for consumer in others
    )
    return carry_more >= PEERS_MIN


def _carried_at_least(
    draft: StepDraft, consumer: ConsumerId, usual: Capacities, passed_s: float
) -> float:
    """What is written to it, less what it did not carry since the last plan."""
    speeds = draft.state.write_speeds
    written = _weighted({p: speeds.get(p, 0.0) for p in draft.held_by(consumer)}, usual)
    return written - _weighted(draft.consumers[consumer].behind_by_partition, usual) / passed_s


def _weighted(by_partition: Mapping[TopicPartition, float], usual: Capacities) -> float:
    return sum(value * usual.weights.get(p.topic, 1.0) for p, value in by_partition.items())
