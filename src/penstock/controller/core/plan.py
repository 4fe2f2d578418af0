"""From the packer's answer to a plan. Every plan begins as `future - current`.

The packer invents names for new consumers: they become idle consumers first, then free numbers.
What the difference creates is wanted from then on. A plan covers every existing
partition exactly once (S6).
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from penstock.controller.core import growth
from penstock.controller.core.decisions import Code
from penstock.controller.core.housekeeping import idle, idle_wanted
from penstock.controller.core.load import available, group_load, held_by_whom, owner_of
from penstock.controller.core.membership import free_numbers, remove, want
from penstock.controller.core.state import ConsumerStatus, HoldingStatus, Plan
from penstock.controller.core.step_draft import StepDraft
from penstock.model import Assignment, ConsumerId, ConsumerListDiff, TopicPartition
from penstock.model.sentences import counted, speed_text
from penstock.packing.trigger import Reason, after_repack


def with_real_consumers(
    draft: StepDraft, answer: Mapping[TopicPartition, ConsumerId]
) -> dict[TopicPartition, ConsumerId]:
    """Replace the packer's new names: by idle consumers, by those it leaves empty, by new ones.

    A full group gets no new consumer (S7). Then the least loaded one takes the partitions.
    """
    known = available(draft)
    used = set(answer.values())
    unused = [consumer for consumer in idle(draft) if consumer not in used]
    unused += [consumer for consumer in known if consumer not in {*used, *unused}]
    names = {consumer: consumer for consumer in known}
    free, members = free_numbers(draft), list(known)
    for consumer in sorted(used - set(known)):
        if unused:
            names[consumer] = unused.pop(0)
        elif len(members) < draft.state.settings.consumers_max:
            names[consumer] = next(free)
            members.append(names[consumer])
        else:
            names[consumer] = _least_loaded(draft, members)
    return {partition: names[consumer] for partition, consumer in answer.items()}


def _least_loaded(draft: StepDraft, members: Iterable[ConsumerId]) -> ConsumerId:
    loads = group_load(draft).load_by_consumer
    return min(members, key=lambda consumer: (loads.get(consumer, 0.0), consumer))


def difference(draft: StepDraft, target: Mapping[TopicPartition, ConsumerId]) -> ConsumerListDiff:
    """`future - current`: consumers to create and to empty, partitions to stop and to start.

    `current` is what consumers hold and were not told to stop, so what is being stopped is started
    again even at the same consumer. Idle consumers and those being created are in both.
    """
    current: dict[ConsumerId, list[TopicPartition]] = {}
    for partition, holding in draft.holdings.now.items():
        if holding.status is not HoldingStatus.STOPPING and partition in target:
            current.setdefault(holding.consumer, []).append(partition)
    future: dict[ConsumerId, list[TopicPartition]] = {}
    for partition, consumer in target.items():
        future.setdefault(consumer, []).append(partition)
    idle_consumers: dict[ConsumerId, list[TopicPartition]] = {
        consumer: []
        for consumer in available(draft)
        if consumer not in current and draft.consumers[consumer].status is not ConsumerStatus.WANTED
    }
    return Assignment({**idle_consumers, **future}) - Assignment({**idle_consumers, **current})


def open_partitions(
    draft: StepDraft, target: Mapping[TopicPartition, ConsumerId]
) -> frozenset[TopicPartition]:
    """The tracker of the notes: partitions that are not in their final state.

    These are the starts of `future - current`, and starts that are sent and not acknowledged yet.
    A partition that failed and has no reader waits for its own time instead, and an overdue start
    for its consumer.
    """
    diff = difference(draft, target)
    started = {partition for partitions in diff.start.values() for partition in partitions}
    unfinished = {p for p in draft.in_flight if p in target and not draft.holdings[p].is_overdue}
    waiting = {p for p in started if p not in draft.holdings and p in draft.parked}
    return frozenset((started | unfinished) - waiting)


def changes(draft: StepDraft, target: Mapping[TopicPartition, ConsumerId]) -> bool:
    """Whether the target differs from where everything belongs now, or from where it is."""
    return any(owner_of(draft, p) != c for p, c in target.items()) or bool(
        open_partitions(draft, target)
    )


def reason_of(code: Code) -> Reason:
    """The trigger's reason for a plan. A lost consumer leaves partitions that no consumer reads."""
    return Reason(code.value) if code.value in set(Reason) else Reason.UNREAD_PARTITION


def adopt(
    draft: StepDraft, target: Mapping[TopicPartition, ConsumerId], code: Code, explanation: str
) -> None:
    """Make it the plan, under the next number, want its new consumers, and record what it costs."""
    diff = difference(draft, target)
    before = sum(1 for consumer in draft.consumers if draft.held_by(consumer))
    growth.begin(draft, before, len(set(target.values())))
    for consumer in diff.create:
        if consumer not in draft.consumers:  # an overtaken plan may want it already
            want(draft, consumer)
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
        ),
        trigger=after_repack(draft.state.trigger, reason_of(code), draft.now_ms, changed=True),
    )
    _forget_what_nobody_wants(draft)
    moved = math.fsum(draft.state.write_speeds[partition] for partition in diff.moves)
    starts = sum(len(partitions) for partitions in diff.start.values()) - len(diff.moves)
    draft.decide(
        Code.PLAN_MADE,
        f"plan {number} ({code.value}): {explanation}; {counted(len(target), 'partition')} on "
        f"{counted(len(set(target.values())), 'consumer')}, {counted(len(diff.moves), 'move')} of "
        f"{speed_text(moved)}, {counted(starts, 'start')}, {len(diff.create)} to create, "
        f"{len(diff.remove)} to empty",
        moves=len(diff.moves),
        moved_bytes_per_s=moved,
    )
    draft.save()


def _forget_what_nobody_wants(draft: StepDraft) -> None:
    """A consumer that only an overtaken plan wanted is not created."""
    kept = idle_wanted(draft)
    for consumer in idle(draft)[kept:]:
        if draft.consumers[consumer].status is ConsumerStatus.WANTED:
            remove(draft, consumer, "the plan that wanted it is overtaken")


def keep_in_place(draft: StepDraft, plan: Plan) -> None:
    """Give the plan up before it moved anything: every partition stays where it is."""
    draft.forget_open()
    target = {p: held_by_whom(draft, p) or c for p, c in plan.target.items()}
    draft.change(plan=replace(plan, target=target, open=frozenset()))
    _forget_what_nobody_wants(draft)
    draft.save()
