"""Reassign: ask the packer, look at its answer, and make a plan of it or leave things be.

The packer runs outside of the step (it may take long at ten thousand partitions), so the group may
have changed when it answers: then it is asked again. An answer that is not worth its moves is
dropped, with the reason in the history.
"""

from penstock.controller.core.decisions import Code
from penstock.controller.core.effects import Pack
from penstock.controller.core.group_management import enter as manage_group
from penstock.controller.core.inputs import Packed, PackingFailed
from penstock.controller.core.load import available, owner_of, problem_of, view
from penstock.controller.core.plan import adopt, changes, with_real_consumers
from penstock.controller.core.policy import after_plan
from penstock.controller.core.state import Phase
from penstock.controller.core.step_draft import StepDraft
from penstock.controller.core.transitions import go
from penstock.messages import Direction
from penstock.model import ConsumerId, TopicPartition
from penstock.model.shortened_list import shortened_list
from penstock.packing import Packing


def enter(draft: StepDraft, code: Code, explanation: str, *, is_urgent: bool) -> None:
    draft.change(packing_code=code, packing_explanation=explanation, packing_urgent=is_urgent)
    ask(draft)


def ask(draft: StepDraft) -> None:
    """Put the question to the packer, or give up when there is none to put."""
    consumers_max = _consumers_max(draft)
    if not draft.state.partitions or consumers_max < 1:
        _leave(draft, Code.NOTHING_TO_GAIN, "there is no consumer to be had")
        return
    settings = draft.state.settings
    number = draft.state.packing_number + 1
    draft.change(packing_number=number, packing_consumers=frozenset(available(draft)))
    problem = problem_of(draft, view(draft), consumers_max)
    draft.do(Pack(number, settings.algorithm, settings.algorithm_knob, problem))


def _consumers_max(draft: StepDraft) -> int:
    """How many consumers the packer may use: no growth while it is paused or fails."""
    number = len(available(draft))
    maximum = draft.state.settings.consumers_max
    if draft.now_ms < draft.state.creation_blocked_until_ms:
        return min(maximum, number)
    if draft.state.is_paused(Direction.UP):
        return min(maximum, max(number, 1))
    return maximum


def tick(draft: StepDraft) -> None:
    if draft.now_ms - draft.state.phase_since_ms > draft.state.settings.packing_ms_max:
        _leave(draft, Code.PACKING_FAILED, "the packer did not answer in time")


def failed(draft: StepDraft, given: PackingFailed) -> None:
    if given.number != draft.state.packing_number:
        draft.count("late_packing")
        return
    _leave(draft, Code.PACKING_FAILED, f"the packer failed: {given.reason[:80]}")


def packed(draft: StepDraft, given: Packed) -> None:
    """Judge the answer."""
    if given.number != draft.state.packing_number:
        draft.count("late_packing")
        return
    answer = dict(given.packing.assignment.owners)
    existing = draft.state.partitions
    # Any other number the packer made up: also one that a consumer happens to have who is leaving.
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
    if code is Code.FEWER_WOULD_DO:
        saved = len({owner_of(draft, p) for p in existing}) - len(set(target.values()))
        if saved < draft.state.settings.consumers_saved_min:
            explanation = f"the packer saves {max(saved, 0)} consumers, too few for the moves"
            _leave(draft, Code.NOTHING_TO_GAIN, explanation)
            return
    _say_what_cannot_be_helped(draft, given.packing)
    target = with_real_consumers(draft, target)
    if not changes(draft, target):
        _leave(draft, Code.NOTHING_TO_GAIN, f"{explanation}, but no better assignment was found")
        return
    adopt(draft, target, code, explanation, is_urgent=draft.state.packing_urgent)
    go(draft, Phase.GROUP_MANAGEMENT, "a plan is made")
    manage_group(draft)


def _kept_in_place(
    draft: StepDraft, target: dict[TopicPartition, ConsumerId]
) -> dict[TopicPartition, ConsumerId]:
    """While everything is paused, only what nobody reads gets a new place."""
    return {p: owner_of(draft, p) or consumer for p, consumer in target.items()}


def _say_what_cannot_be_helped(draft: StepDraft, packing: Packing) -> None:
    if packing.oversize:
        names = shortened_list([str(partition) for partition in packing.oversize])
        draft.decide(
            Code.OVERSIZE_PARTITION, f"faster than a whole consumer, alone on one: {names}"
        )
    if packing.overloaded:
        names = shortened_list([str(consumer) for consumer in packing.overloaded])
        draft.decide(Code.MAXIMUM_BINDS, f"the maximum of consumers overloads {names}")


def _leave(draft: StepDraft, code: Code, explanation: str) -> None:
    draft.decide(code, explanation)
    trigger = after_plan(draft.state.trigger, _asked_for(draft), draft.now_ms, changed=False)
    draft.change(packing_number=draft.state.packing_number + 1, trigger=trigger)
    go(draft, Phase.SENTINEL, "no better plan")


def _asked_for(draft: StepDraft) -> Code:
    """Why the packer was asked."""
    code = draft.state.packing_code
    if code is None:
        raise ValueError("a packing was asked for without a reason")
    return code
