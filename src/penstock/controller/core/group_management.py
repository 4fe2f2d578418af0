"""Group Management: carry out the plan.

Consumers that the plan needs are created. A partition that moves is stopped at its consumer as soon
as the next one is up, and started there when the stop is acknowledged or the consumer is fenced. A
partition without a reader is started at once. Every acknowledged start takes its partition off the
tracker; when the tracker is empty, consumers that own nothing are removed.

A partition without a reader does not wait for a consumer that is late to come up: one that is up
reads it meanwhile.

A plan is overtaken when a consumer that it needs is lost, when a partition that it does not know
has no reader, or when another consumer is over capacity: neither waits for a slow hand-over. A plan
against an overload that ends before the plan has moved anything is dropped.
"""

from collections.abc import Iterable

from penstock.controller.core.decisions import Code
from penstock.controller.core.housekeeping import remove_the_idle
from penstock.controller.core.load import available, group_load, held_by_whom
from penstock.controller.core.membership import AVAILABLE, create_what_is_wanted
from penstock.controller.core.plan import keep_in_place
from penstock.controller.core.state import ConsumerStatus, HoldingStatus, Phase, Plan, by_name
from penstock.controller.core.step_draft import StepDraft
from penstock.controller.core.transitions import go
from penstock.model import ConsumerId, TopicPartition
from penstock.model.sentences import counted, duration_text, shortened_list
from penstock.packing.trigger import is_over_capacity

# A new consumer is late after so many times the slowest of the recent starts. No setting: less
# would be a hand-over too much for a usual start, and more leaves partitions unread.
LATE_AFTER_STARTS = 2


def enter(draft: StepDraft) -> None:
    create_what_is_wanted(draft)
    advance(draft, draft.open)


def advance(draft: StepDraft, partitions: Iterable[TopicPartition]) -> None:
    """Send the next command for each of these partitions, if one is due."""
    plan = _plan(draft)
    still_open = draft.open
    for partition in sorted((p for p in partitions if p in still_open), key=by_name):
        _advance_one(draft, plan, partition)
    if not draft.open:
        _finish(draft, plan)


def _plan(draft: StepDraft) -> Plan:
    if draft.state.plan is None:
        raise ValueError("group management without a plan")
    return draft.state.plan


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


def read_meanwhile(draft: StepDraft) -> None:
    """Start partitions that wait for a late consumer at the least loaded ones that are up.

    The plan stays: they move on when their own consumer comes up.
    """
    plan = _plan(draft)
    late = {c for c in set(plan.target.values()) if _is_late(draft, c)}
    waiting = [
        partition
        for partition in draft.open
        if plan.target[partition] in late
        and partition not in draft.holdings
        and partition not in draft.parked
    ]
    up = {c: len(draft.held_by(c)) for c in available(draft) if draft.is_ready(c)}
    if not waiting or not up:
        return
    most = draft.state.settings.policy.partitions_per_consumer_max
    group = group_load(draft, held_by_whom)
    load = {consumer: group.load_by_consumer.get(consumer, 0.0) for consumer in up}
    started = 0
    for partition in sorted(waiting, key=by_name):
        not_full = [c for c in up if most is None or up[c] < most]
        if not not_full:
            break
        consumer = min(not_full, key=lambda c: (load[c], up[c], c))
        draft.start(partition, consumer)
        load[consumer] += group.load_bytes_per_s[partition]
        up[consumer] += 1
        started += 1
    if started:
        draft.decide(
            Code.READ_MEANWHILE,
            f"{counted(started, 'partition')} of consumers that are late to come up "
            f"({shortened_list([str(c) for c in sorted(late)])}): read by others meanwhile",
        )


def _is_late(draft: StepDraft, consumer: ConsumerId) -> bool:
    """Whether a consumer that has yet to come up takes longer than others did."""
    record = draft.consumers.get(consumer)
    if record is None or record.status is ConsumerStatus.READY:
        return False
    slowest_ms = max(draft.state.starts_took_ms, default=0)
    usual_ms = slowest_ms or draft.state.settings.creation_timeout_ms
    waited_ms = draft.heartbeat_time_ms - record.since_heartbeat_time_ms
    return waited_ms >= LATE_AFTER_STARTS * usual_ms


def has_unknown_unread(draft: StepDraft) -> bool:
    """Whether a partition that the plan does not know has no reader."""
    plan = draft.state.plan
    return plan is not None and any(
        p not in plan.target and p not in draft.holdings and p not in draft.parked
        for p in draft.state.write_speeds
    )


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
    took = duration_text((draft.now_ms - plan.made_ms) / 1_000)
    draft.decide(Code.PLAN_DONE, f"plan {plan.number} is done after {took}")
    remove_the_idle(draft)
    draft.save()
    go(draft, Phase.SENTINEL, "every partition is in its final state")
