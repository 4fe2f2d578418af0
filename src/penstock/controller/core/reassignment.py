"""Reassign: ask the packer, then make a plan of its answer or keep the assignment.

The packer runs outside of the step (it may take long at ten thousand partitions). When the group
has changed by the time it answers, it is asked again. An answer that is not worth its moves is
dropped, with the reason in the history.
"""

from collections.abc import Mapping
from dataclasses import replace

from penstock.controller.core.decisions import Code
from penstock.controller.core.effects import Pack
from penstock.controller.core.group_management import enter as manage_group
from penstock.controller.core.group_management import has_lost_a_target
from penstock.controller.core.growth import most_consumers
from penstock.controller.core.inputs import Packed, PackingFailed
from penstock.controller.core.load import (
    available,
    group_load,
    owner_of,
    problem_of,
    usual_capacity,
)
from penstock.controller.core.plan import adopt, changes, reason_of, with_real_consumers
from penstock.controller.core.state import Phase
from penstock.controller.core.step_draft import StepDraft
from penstock.controller.core.transitions import go
from penstock.messages import Direction
from penstock.model import Assignment, ConsumerId, TopicPartition
from penstock.model.sentences import counted, shortened_list
from penstock.packing import Packing
from penstock.packing.same_size import same_size_or_larger
from penstock.packing.trigger import Reason, after_repack
from penstock.packing.worthwhile import highest_overload, is_worthwhile


def enter(draft: StepDraft, code: Code, explanation: str) -> None:
    draft.change(packing_code=code, packing_explanation=explanation)
    ask(draft)


def ask(draft: StepDraft) -> None:
    """Ask the packer, or give up when there is nothing to ask about."""
    consumers_max = _consumers_max(draft)
    if not draft.state.write_speeds or consumers_max < 1:
        _leave(draft, Code.NOTHING_TO_GAIN, "no consumer can be created now")
        return
    number = draft.state.packing_number + 1
    draft.change(packing_number=number, packing_consumers=frozenset(available(draft)))
    problem = problem_of(draft, consumers_max, reason_of(_asked_for(draft)))
    draft.do(Pack(number, draft.state.settings.algorithm, problem))


def _consumers_max(draft: StepDraft) -> int:
    """How many consumers the packer may use: no growth while it is paused or creations fail."""
    number = len(available(draft))
    maximum = most_consumers(draft)
    if draft.now_ms < draft.state.creation_blocked_until_ms:
        return min(maximum, number)
    if draft.state.is_paused(Direction.UP):
        return min(maximum, max(number, 1))
    return maximum


def tick(draft: StepDraft) -> None:
    if draft.now_ms - draft.state.phase_since_ms > draft.state.settings.packing_timeout_ms:
        _leave(draft, Code.PACKING_FAILED, "the packer did not answer in time")


def failed(draft: StepDraft, given: PackingFailed) -> None:
    if given.number != draft.state.packing_number:
        draft.count("late_packing")
        return
    _leave(draft, Code.PACKING_FAILED, f"the packer failed: {given.reason[:80]}")


def packed(draft: StepDraft, given: Packed) -> None:
    """Make a plan of the packer's answer, if it is still right and worth its moves."""
    if given.number != draft.state.packing_number:
        draft.count("late_packing")
        return
    answer = dict(given.packing.assignment.owners)
    existing = draft.state.write_speeds
    # Ignore names invented by the packer when looking for lost consumers: one of them may be the
    # number of a consumer that is leaving.
    counted_on = draft.state.packing_consumers & set(answer.values())
    is_lost = not counted_on <= set(available(draft))
    if is_lost or any(partition not in answer for partition in existing):
        draft.count("packing_overtaken")
        ask(draft)
        return
    target = {partition: answer[partition] for partition in existing}
    code, explanation = _asked_for(draft), draft.state.packing_explanation
    if draft.state.is_paused(Direction.BOTH):
        target = _kept_in_place(draft, target)
    _record_overload(draft, given.packing)
    # Judged with the consumers that will really have the partitions: one that takes the place of a
    # new one may be weaker.
    target = _not_smaller(draft, reason_of(code), with_real_consumers(draft, target))
    if (why_not := _why_not_worthwhile(draft, reason_of(code), target)) is not None:
        _leave(draft, Code.NOTHING_TO_GAIN, f"{explanation}, but {why_not}")
        return
    if not changes(draft, target):
        _leave(draft, Code.NOTHING_TO_GAIN, f"{explanation}, but no better assignment was found")
        return
    adopt(draft, target, code, explanation)
    go(draft, Phase.GROUP_MANAGEMENT, "a plan is made")
    manage_group(draft)


def _why_not_worthwhile(
    draft: StepDraft, reason: Reason, target: Mapping[TopicPartition, ConsumerId]
) -> str | None:
    group = group_load(draft)
    policy = replace(draft.state.settings.policy, capacity_bytes_per_s=usual_capacity(draft))
    after = _by_consumer(target)
    if is_worthwhile(policy, group, reason, after):
        return None
    if reason is Reason.FEWER_WOULD_DO:
        return f"the best packing found needs {len(after)} of {len(group.load_by_consumer)}"
    if all(owner_of(draft, partition) == consumer for partition, consumer in target.items()):
        return "no better assignment was found"
    left, before = highest_overload(policy, group, after), highest_overload(policy, group)
    return (
        f"the best packing found leaves the most loaded consumer at {left:.0%} of its capacity, "
        f"which is now {before:.0%}: less than {policy.relief_min:.0%} are gained"
    )


def _not_smaller(
    draft: StepDraft, reason: Reason, target: Mapping[TopicPartition, ConsumerId]
) -> dict[TopicPartition, ConsumerId]:
    """Only a plan for fewer consumers empties one that works."""
    after = same_size_or_larger(
        draft.state.settings.policy, group_load(draft), reason, _by_consumer(target)
    )
    return {partition: after.owners[partition] for partition in target}


def _by_consumer(target: Mapping[TopicPartition, ConsumerId]) -> Assignment:
    owned: dict[ConsumerId, list[TopicPartition]] = {}
    for partition, consumer in target.items():
        owned.setdefault(consumer, []).append(partition)
    return Assignment(owned)


def _kept_in_place(
    draft: StepDraft, target: dict[TopicPartition, ConsumerId]
) -> dict[TopicPartition, ConsumerId]:
    """While everything is paused, only partitions without a reader get a consumer."""
    return {p: owner_of(draft, p) or consumer for p, consumer in target.items()}


def _record_overload(draft: StepDraft, packing: Packing) -> None:
    """What no packing can help goes into the history, once."""
    if packing.oversize:
        names = shortened_list([str(partition) for partition in packing.oversize])
        explanation = f"more than one consumer's capacity, each on its own: {names}"
        _record_once(draft, Code.OVERSIZE_PARTITION, explanation)
    if packing.overloaded:
        names = shortened_list([str(consumer) for consumer in packing.overloaded])
        most = draft.state.settings.consumers_max
        explanation = f"with at most {counted(most, 'consumer')} these are over capacity: {names}"
        _record_once(draft, Code.MAXIMUM_BINDS, explanation)


def _record_once(draft: StepDraft, code: Code, explanation: str) -> None:
    """Not again while it is the last that was said of it."""
    said = [one.explanation for one in draft.state.history if one.code is code]
    if said[-1:] != [explanation]:
        draft.decide(code, explanation)


def _leave(draft: StepDraft, code: Code, explanation: str) -> None:
    draft.decide(code, explanation)
    reason = reason_of(_asked_for(draft))
    trigger = after_repack(draft.state.trigger, reason, draft.now_ms, changed=False)
    draft.change(packing_number=draft.state.packing_number + 1, trigger=trigger)
    if draft.open and not has_lost_a_target(draft):
        go(draft, Phase.GROUP_MANAGEMENT, "no better plan than the present one")
    else:
        go(draft, Phase.SENTINEL, "no better plan")


def _asked_for(draft: StepDraft) -> Code:
    """Why the packer was asked."""
    code = draft.state.packing_code
    if code is None:
        raise ValueError("a packing was asked for without a reason")
    return code
