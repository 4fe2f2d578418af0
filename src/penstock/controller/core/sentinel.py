"""Sentinel: watch the group, keep its spares warm, and say when a reassignment is due.

The trigger of `packing.trigger` decides; constant speeds never move anything. Without a fresh
measurement the assignment stays as it is, except for partitions that no consumer reads.
"""

from dataclasses import replace

from penstock.controller.core import growth
from penstock.controller.core.decisions import Code
from penstock.controller.core.housekeeping import idle, idle_wanted, remove_the_idle
from penstock.controller.core.load import group_load
from penstock.controller.core.membership import create_what_is_wanted, want_one_more
from penstock.controller.core.reassignment import enter as reassign
from penstock.controller.core.requests import answer_when_within_bounds
from penstock.controller.core.roll_out import advance as advance_roll_out
from penstock.controller.core.start_roll_out import begin_what_is_due
from penstock.controller.core.state import Phase, State
from penstock.controller.core.step_draft import StepDraft
from penstock.controller.core.transitions import go
from penstock.messages import Direction
from penstock.packing.trigger import Reason, TriggerDecision, decide


def watch(draft: StepDraft) -> None:
    """Look at the group and begin at most one thing."""
    answer_when_within_bounds(draft)
    due = repack_due(draft)
    if due is not None:
        go(draft, Phase.REASSIGN, "a reassignment is due")
        reassign(draft, Code(due.reason.value), due.explanation)
        return
    begin_what_is_due(draft)
    if advance_roll_out(draft):
        return
    _keep_spares(draft)
    _let_the_idle_go(draft)
    create_what_is_wanted(draft)


def repack_due(draft: StepDraft) -> TriggerDecision | None:
    """The trigger's reason to repack, unless a pause, a silence or a failed creation holds it."""
    if not draft.state.write_speeds:
        return None
    state = draft.state
    group = group_load(draft)
    is_settled = state.phase is Phase.SENTINEL
    growth.judge(draft, group, is_settled=is_settled)
    policy = replace(state.settings.policy, consumers_max=growth.most_consumers(draft))
    trigger, decision = decide(policy, state.trigger, group, draft.now_ms)
    if not decision.repack:
        draft.change(trigger=trigger)
        return None
    if decision.reason is Reason.UNREAD_PARTITION:
        # Repairs are never paused. One that just failed for want of a consumer waits.
        return None if _is_waiting(draft.state, draft.now_ms) else decision
    shrinks = decision.reason in {Reason.FEWER_WOULD_DO, Reason.OVER_MAXIMUM}
    if draft.state.is_paused(Direction.DOWN if shrinks else Direction.UP):
        draft.count("held_by_pause")
        return None  # the memory stays as it is, so the trigger says the same when the pause ends
    if draft.state.shared_silence is not None:
        draft.count("held_by_silence")
        return None
    draft.change(trigger=trigger)
    return decision


def _is_waiting(state: State, now_ms: int) -> bool:
    """Whether there is no consumer, and none can be created at the moment."""
    return now_ms < state.creation_blocked_until_ms and not state.consumers


def _keep_spares(draft: StepDraft) -> None:
    if not draft.state.write_speeds or draft.state.is_paused(Direction.UP):
        return
    if draft.now_ms < draft.state.creation_blocked_until_ms:
        return
    for _ in range(idle_wanted(draft) - len(idle(draft))):
        want_one_more(draft)


def _let_the_idle_go(draft: StepDraft) -> None:
    """Remove idle consumers beyond the spares, after a grace period: a burst may follow."""
    surplus = len(idle(draft)) > idle_wanted(draft)
    if not surplus:
        draft.change(idle_since_ms=None)
    elif draft.state.idle_since_ms is None:
        draft.change(idle_since_ms=draft.now_ms)
    elif draft.now_ms - draft.state.idle_since_ms >= draft.state.settings.idle_grace_ms:
        remove_the_idle(draft)
        draft.change(idle_since_ms=None)
