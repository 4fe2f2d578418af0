"""Group Management: carry out the plan.

Consumers that the plan needs are created. A partition that moves is stopped at its consumer as soon
as the next one is up, and started there when the stop is acknowledged or the consumer is fenced. A
partition without a reader is started at once. Every acknowledged start takes its partition off the
tracker; when the tracker is empty, consumers that own nothing are removed.

A plan is overtaken when a consumer that it needs is lost, or when another consumer is over
capacity: an overload does not wait for a slow hand-over. A plan against an overload that ends
before the plan has moved anything is dropped.
"""

from collections.abc import Iterable

from penstock.controller.core.decisions import Code
from penstock.controller.core.housekeeping import remove_the_idle
from penstock.controller.core.load import group_load, held_by_whom
from penstock.controller.core.membership import AVAILABLE, create_what_is_wanted
from penstock.controller.core.plan import keep_in_place
from penstock.controller.core.state import HoldingStatus, Phase, Plan, by_name
from penstock.controller.core.step_draft import StepDraft
from penstock.controller.core.transitions import go
from penstock.model import ConsumerId, TopicPartition
from penstock.packing.trigger import is_over_capacity


def enter(draft: StepDraft) -> None:
    create_what_is_wanted(draft)
    advance(draft, draft.open)


def advance(draft: StepDraft, partitions: Iterable[TopicPartition]) -> None:
    """Send the next command for each of these partitions, if one is due."""
    plan = draft.state.plan
    if plan is None:
        raise ValueError("group management without a plan")
    still_open = draft.open
    for partition in sorted((p for p in partitions if p in still_open), key=by_name):
        _advance_one(draft, plan, partition)
    if not draft.open:
        _finish(draft, plan)


def _advance_one(draft: StepDraft, plan: Plan, partition: TopicPartition) -> None:
    target = plan.target[partition]
    holding = draft.holdings.get(partition)
    if holding is None:
        if partition in draft.parked:
            draft.close(partition)
        elif draft.is_ready(target):
            draft.start(partition, target)
    elif holding.consumer == target:
        # The plan before stopped it where this plan wants it: the stop must be finished first.
        if holding.status is HoldingStatus.OWNED:
            draft.close(partition)
    elif holding.status is not HoldingStatus.STOPPING and draft.is_ready(target):
        draft.stop(partition)


def drop_without_reason(draft: StepDraft) -> bool:
    """Drop a plan against an overload that is over before the plan has moved anything.

    Else an absurd measurement would go on creating consumers long after it was corrected.
    """
    plan = draft.state.plan
    if plan is None or plan.code is not Code.OVER_CAPACITY or draft.awaits_answers:
        return False
    if any(p not in draft.holdings and p not in draft.parked for p in plan.target):
        return False
    group = group_load(draft, held_by_whom)
    if not group.is_fresh or group.is_behind or is_over_capacity(group):
        return False
    draft.decide(Code.PLAN_DROPPED, f"plan {plan.number} is dropped: no consumer is over capacity")
    keep_in_place(draft, plan)
    go(draft, Phase.SENTINEL, "the reason for the plan is gone")
    return True


def has_lost_a_target(draft: StepDraft) -> bool:
    """Whether the consumer that an open partition should go to is lost."""
    plan = draft.state.plan
    if plan is None:
        return False
    gone = {c for c in set(plan.target.values()) if not _is_coming(draft, c)}
    return bool(gone) and any(plan.target[partition] in gone for partition in draft.open)


def _is_coming(draft: StepDraft, consumer: ConsumerId) -> bool:
    record = draft.consumers.get(consumer)
    return record is not None and record.status in AVAILABLE


def _finish(draft: StepDraft, plan: Plan) -> None:
    took_ms = draft.now_ms - plan.made_ms
    draft.decide(Code.PLAN_DONE, f"plan {plan.number} is done after {took_ms} ms")
    remove_the_idle(draft)
    draft.save()
    go(draft, Phase.SENTINEL, "every partition is in its final state")
