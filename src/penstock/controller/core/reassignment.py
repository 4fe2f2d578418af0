"""Reassign: ask the packer, then make a plan of its answer or keep the assignment.

The packer runs outside of the step (it may take long at ten thousand partitions). When the group
has changed by the time it answers, it is asked again. An answer that is not worth its moves is
dropped, with the reason in the history.
"""

from penstock.controller.core.decisions import Code
from penstock.controller.core.effects import Pack
from penstock.controller.core.group_management import enter as manage_group
from penstock.controller.core.inputs import Packed, PackingFailed
from penstock.controller.core.load import available, owner_of, problem_of
from penstock.controller.core.plan import adopt, changes, reason_of, with_real_consumers
from penstock.controller.core.state import Phase
from penstock.controller.core.step_draft import StepDraft
from penstock.controller.core.transitions import go
from penstock.messages import Direction
from penstock.model import ConsumerId, TopicPartition
from penstock.model.sentences import counted, shortened_list
from penstock.packing import Packing
from penstock.packing.trigger import after_repack, is_worthwhile


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
    problem = problem_of(draft, consumers_max)
    draft.do(Pack(number, draft.state.settings.algorithm, problem))


def _consumers_max(draft: StepDraft) -> int:
    """How many consumers the packer may use: no growth while it is paused or creations fail."""
    number = len(available(draft))
    maximum = draft.state.settings.consumers_max
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
    before, after = len({owner_of(draft, p) for p in existing}), len(set(target.values()))
    if not is_worthwhile(draft.state.settings.policy, reason_of(code), before, after):
        explanation = f"{explanation}, but the best packing found needs {after} of {before}"
        _leave(draft, Code.NOTHING_TO_GAIN, explanation)
        return
    _record_overload(draft, given.packing)
    target = with_real_consumers(draft, target)
    if not changes(draft, target):
        _leave(draft, Code.NOTHING_TO_GAIN, f"{explanation}, but no better assignment was found")
        return
    adopt(draft, target, code, explanation)
    go(draft, Phase.GROUP_MANAGEMENT, "a plan is made")
    manage_group(draft)


def _kept_in_place(
    draft: StepDraft, target: dict[TopicPartition, ConsumerId]
) -> dict[TopicPartition, ConsumerId]:
    """While everything is paused, only partitions without a reader get a consumer."""
    return {p: owner_of(draft, p) or consumer for p, consumer in target.items()}


def _record_overload(draft: StepDraft, packing: Packing) -> None:
    """What no packing can help goes into the history."""
    if packing.oversize:
        names = shortened_list([str(partition) for partition in packing.oversize])
        draft.decide(
            Code.OVERSIZE_PARTITION, f"more than one consumer's capacity, each on its own: {names}"
        )
    if packing.overloaded:
        names = shortened_list([str(consumer) for consumer in packing.overloaded])
        most = draft.state.settings.consumers_max
        explanation = f"with at most {counted(most, 'consumer')} these are over capacity: {names}"
        draft.decide(Code.MAXIMUM_BINDS, explanation)


def _leave(draft: StepDraft, code: Code, explanation: str) -> None:
    draft.decide(code, explanation)
    reason = reason_of(_asked_for(draft))
    trigger = after_repack(draft.state.trigger, reason, draft.now_ms, changed=False)
    draft.change(packing_number=draft.state.packing_number + 1, trigger=trigger)
    go(draft, Phase.SENTINEL, "no better plan")


def _asked_for(draft: StepDraft) -> Code:
    """Why the packer was asked."""
    code = draft.state.packing_code
    if code is None:
        raise ValueError("a packing was asked for without a reason")
    return code
