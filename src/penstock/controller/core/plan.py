"""From the packer's answer to a plan: who gets which real consumer, what moves, what it costs.

The packer names consumers as it likes. Numbers that are not ours become spares first, then
consumers to be created. A plan covers every existing partition exactly once (S6).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.controller.core.decisions import Code
from penstock.controller.core.housekeeping import idle
from penstock.controller.core.load import available, owner_of
from penstock.controller.core.membership import want
from penstock.controller.core.policy import after_plan
from penstock.controller.core.state import HoldingStatus, Plan
from penstock.controller.core.step_draft import StepDraft
from penstock.model import ConsumerId, TopicPartition


@dataclass(frozen=True, slots=True)
class Cost:
    """What a plan does to the group."""

    moves: int
    moved_bytes_per_s: float
    starts: int
    created: int


def with_real_consumers(
    draft: StepDraft, answer: Mapping[TopicPartition, ConsumerId]
) -> dict[TopicPartition, ConsumerId]:
    """Give the packer's new consumers numbers of ours: the warm ones first."""
    known = set(available(draft))
    foreign = sorted(set(answer.values()) - known)
    taken = set(answer.values())
    warm = [consumer for consumer in idle(draft) if consumer not in taken]
    names = {consumer: consumer for consumer in known}
    for consumer in foreign:
        names[consumer] = warm.pop(0) if warm else want(draft)
    return {partition: names[consumer] for partition, consumer in answer.items()}


def open_partitions(
    draft: StepDraft, target: Mapping[TopicPartition, ConsumerId]
) -> frozenset[TopicPartition]:
    """The tracker of the notes: partitions that are not in their final state."""
    found = set()
    for partition, consumer in target.items():
        holding = draft.holdings.get(partition)
        is_final = (
            holding is not None
            and holding.consumer == consumer
            and holding.status is HoldingStatus.OWNED
        )
        if not is_final and not (holding is None and partition in draft.parked):
            found.add(partition)
    return frozenset(found)


def cost_of(draft: StepDraft, target: Mapping[TopicPartition, ConsumerId]) -> Cost:
    speeds = draft.state.write_speeds
    moving = [
        partition
        for partition, consumer in target.items()
        if (holding := draft.holdings.get(partition)) is not None and holding.consumer != consumer
    ]
    created = {c for c in target.values() if not draft.is_ready(c)}
    return Cost(
        moves=len(moving),
        moved_bytes_per_s=math.fsum(speeds[partition] for partition in moving),
        starts=sum(1 for partition in target if partition not in draft.holdings),
        created=len(created),
    )


def changes(draft: StepDraft, target: Mapping[TopicPartition, ConsumerId]) -> bool:
    """Whether the target differs from where everything belongs now, or from where it is."""
    return any(owner_of(draft, p) != c for p, c in target.items()) or bool(
        open_partitions(draft, target)
    )


def adopt(
    draft: StepDraft,
    target: Mapping[TopicPartition, ConsumerId],
    code: Code,
    explanation: str,
    *,
    is_urgent: bool,
) -> None:
    """Make it the plan, under the next number, and say what it costs."""
    cost = cost_of(draft, target)
    number = draft.state.plan_number + 1
    draft.forget_open()
    draft.change(
        plan_number=number,
        plan=Plan(
            number=number,
            code=code,
            explanation=explanation,
            target=target,
            open=open_partitions(draft, target),
            made_ms=draft.now_ms,
            is_urgent=is_urgent,
        ),
        trigger=after_plan(draft.state.trigger, code, draft.now_ms, changed=True),
    )
    consumers = len(set(target.values()))
    draft.decide(
        Code.PLAN_MADE,
        f"plan {number} ({code.value}): {explanation}; {len(target)} partitions on {consumers} "
        f"consumers, {cost.moves} moves of {cost.moved_bytes_per_s:.0f} bytes/s, "
        f"{cost.starts} starts, {cost.created} consumers to come",
        moves=cost.moves,
        moved_bytes_per_s=cost.moved_bytes_per_s,
    )
    draft.save()
