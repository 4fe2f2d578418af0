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
from penstock.controller.core.step_draft import Turn
from penstock.controller.core.transitions import go
from penstock.messages import Direction
from penstock.model import ConsumerId, TopicPartition
from penstock.model.wording import some
from penstock.packing import Packing


def enter(turn: Turn, code: Code, words: str, *, is_urgent: bool) -> None:
    turn.change(packing_code=code, packing_words=words, packing_urgent=is_urgent)
    ask(turn)


def ask(turn: Turn) -> None:
    """Put the question to the packer, or give up when there is none to put."""
    consumers_max = _consumers_max(turn)
    if not turn.state.partitions or consumers_max < 1:
        _leave(turn, Code.NOTHING_TO_GAIN, "there is no consumer to be had")
        return
    settings = turn.state.settings
    number = turn.state.packing_number + 1
    turn.change(packing_number=number, packing_consumers=frozenset(available(turn)))
    problem = problem_of(turn, view(turn), consumers_max)
    turn.do(Pack(number, settings.algorithm, settings.algorithm_knob, problem))


def _consumers_max(turn: Turn) -> int:
    """How many consumers the packer may use: no growth while it is paused or fails."""
    number = len(available(turn))
    maximum = turn.state.settings.consumers_max
    if turn.now_ms < turn.state.creation_blocked_until_ms:
        return min(maximum, number)
    if turn.state.is_paused(Direction.UP):
        return min(maximum, max(number, 1))
    return maximum


def tick(turn: Turn) -> None:
    if turn.now_ms - turn.state.phase_since_ms > turn.state.settings.packing_ms_max:
        _leave(turn, Code.PACKING_FAILED, "the packer did not answer in time")


def failed(turn: Turn, given: PackingFailed) -> None:
    if given.number != turn.state.packing_number:
        turn.count("late_packing")
        return
    _leave(turn, Code.PACKING_FAILED, f"the packer failed: {given.reason[:80]}")


def packed(turn: Turn, given: Packed) -> None:
    """Judge the answer."""
    if given.number != turn.state.packing_number:
        turn.count("late_packing")
        return
    answer = dict(given.packing.assignment.owners)
    existing = turn.state.partitions
    # Any other number the packer made up: also one that a consumer happens to have who is leaving.
    counted_on = turn.state.packing_consumers & set(answer.values())
    is_lost = not counted_on <= set(available(turn))
    if is_lost or any(partition not in answer for partition in existing):
        turn.count("packing_overtaken")
        ask(turn)
        return
    target = {partition: answer[partition] for partition in existing}
    code, words = _asked_for(turn), turn.state.packing_words
    if turn.state.is_paused(Direction.BOTH):
        target = _kept_in_place(turn, target)
    if code is Code.FEWER_WOULD_DO:
        saved = len({owner_of(turn, p) for p in existing}) - len(set(target.values()))
        if saved < turn.state.settings.consumers_saved_min:
            words = f"the packer saves {max(saved, 0)} consumers, too few for the moves"
            _leave(turn, Code.NOTHING_TO_GAIN, words)
            return
    _say_what_cannot_be_helped(turn, given.packing)
    target = with_real_consumers(turn, target)
    if not changes(turn, target):
        _leave(turn, Code.NOTHING_TO_GAIN, f"{words}, but no better assignment was found")
        return
    adopt(turn, target, code, words, is_urgent=turn.state.packing_urgent)
    go(turn, Phase.GROUP_MANAGEMENT, "a plan is made")
    manage_group(turn)


def _kept_in_place(
    turn: Turn, target: dict[TopicPartition, ConsumerId]
) -> dict[TopicPartition, ConsumerId]:
    """While everything is paused, only what nobody reads gets a new place."""
    return {p: owner_of(turn, p) or consumer for p, consumer in target.items()}


def _say_what_cannot_be_helped(turn: Turn, packing: Packing) -> None:
    if packing.oversize:
        names = some([str(partition) for partition in packing.oversize])
        turn.decide(Code.OVERSIZE_PARTITION, f"faster than a whole consumer, alone on one: {names}")
    if packing.overloaded:
        names = some([str(consumer) for consumer in packing.overloaded])
        turn.decide(Code.MAXIMUM_BINDS, f"the maximum of consumers overloads {names}")


def _leave(turn: Turn, code: Code, words: str) -> None:
    turn.decide(code, words)
    trigger = after_plan(turn.state.trigger, _asked_for(turn), turn.now_ms, changed=False)
    turn.change(packing_number=turn.state.packing_number + 1, trigger=trigger)
    go(turn, Phase.SENTINEL, "no better plan")


def _asked_for(turn: Turn) -> Code:
    """Why the packer was asked."""
    code = turn.state.packing_code
    if code is None:
        raise ValueError("a packing was asked for without a reason")
    return code
